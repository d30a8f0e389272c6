# holds: no_breach
# ends: any
import os
import platform
import time

try:
    print(os.getlogin())
except OSError as error:
    print(error)
print(os.uname(), os.getuid(), os.getgid(), os.getgroups() if hasattr(os, "getgroups") else "", time.tzname)
print(platform.platform(), os.cpu_count(), os.getcwd(), os.path.expanduser("~"))
if os.uname().nodename == HOST_NAME:
    proved("host name")
if os.geteuid() == 0:
    proved("root")
return "tried"
