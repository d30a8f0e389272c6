# holds: files_unchanged
# ends: finished
import os

for folder in (CANARY, CANARY + "/folder", "/", "/usr", "/usr/lib", "/etc", "/dev", "/dev/shm", "/var/tmp", "/run", "/proc"):
    try:
        with open(os.path.join(folder, MARK), "w") as opened:
            opened.write("was here")
    except OSError as error:
        print(error)
return "tried"
