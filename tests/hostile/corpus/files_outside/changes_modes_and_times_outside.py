# holds: files_unchanged
# ends: finished
import os

path = CANARY + "/keep.txt"
for attempt in (
    lambda: os.chmod(path, 0o777),
    lambda: os.utime(path, (0, 0)),
    lambda: os.chown(path, 0, 0),
    lambda: os.setxattr(path, "user.mark", b"1"),
    lambda: os.mkdir(CANARY + "/" + MARK),
    lambda: os.mkfifo(CANARY + "/pipe"),
    lambda: os.mknod(CANARY + "/node"),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return "tried"
