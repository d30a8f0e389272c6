# holds: secret_kept
# ends: finished
import os

for start in ("/", "/tmp", "/usr", "."):
    try:
        folder = os.open(start, os.O_RDONLY | os.O_DIRECTORY)
        handle = os.open("../../../.." + CANARY + "/secret.txt", os.O_RDONLY, dir_fd=folder)
        print(os.read(handle, 200))
    except OSError as error:
        print(start, error)
return "tried"
