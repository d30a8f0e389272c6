# holds: in_time, nothing_left
# ends: crashed
import os

for attempt in (os.setsid, lambda: os.setpgid(0, 0), os.setpgrp, lambda: os.tcsetpgrp(0, os.getpid())):
    try:
        attempt()
    except OSError as error:
        print(error)
while True:
    pass
