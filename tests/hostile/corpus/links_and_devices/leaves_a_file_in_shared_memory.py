# holds: files_unchanged
# ends: finished
import os

for folder in ("/dev/shm", "/dev/mqueue", "/run/shm", "/var/tmp", "/var/run", "/run/lock"):
    try:
        os.makedirs(folder, exist_ok=True)
        with open(folder + "/" + MARK, "w") as opened:
            opened.write("was here")
    except OSError as error:
        print(error)
return "tried"
