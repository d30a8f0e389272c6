# holds: in_time, nothing_left
# ends: crashed
import os

os.closerange(0, 1024)
while True:
    pass
