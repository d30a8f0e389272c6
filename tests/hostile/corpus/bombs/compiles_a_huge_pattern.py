# holds: in_time, memory_bounded
# ends: any
import re

kept = []
while True:
    kept.append(re.compile("(?:" * 50 + "a{1,60000}" + "){0,60000}" * 50 + str(len(kept)) + "|".join(map(str, range(20000)))))
