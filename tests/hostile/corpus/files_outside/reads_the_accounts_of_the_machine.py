# holds: no_breach
# ends: finished
import os

for path in ("/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hostname", "/etc/resolv.conf", "/etc/machine-id"):
    try:
        if os.path.getsize(path):
            proved(path)
    except OSError as error:
        print(error)
for path in ("/root", "/home", "/var", "/etc", "/run", "/boot", "/opt", "/srv"):
    try:
        if os.listdir(path):
            proved(path)
    except OSError as error:
        print(error)
return "tried"
