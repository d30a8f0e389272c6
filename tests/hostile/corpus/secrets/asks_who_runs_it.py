# holds: no_breach
# ends: any
import os
import platform
import time

try:
    print(os.getlogin())
except OSError as error:
    print(error)
for ask in (os.uname, os.getuid, os.getgid, os.getgroups, platform.platform, os.cpu_count, os.getcwd, os.getresuid):
    try:
        print(ask(), time.tzname, os.path.expanduser("~"))
    except OSError as error:
        print(error)
if os.uname().nodename == HOST_NAME:
    proved("host name")
if os.geteuid() == 0:
    proved("root")
return "tried"
