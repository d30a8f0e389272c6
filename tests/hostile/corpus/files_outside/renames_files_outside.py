# holds: files_unchanged
# ends: finished
import os

for attempt in (
    lambda: os.rename(CANARY + "/keep.txt", CANARY + "/" + MARK),
    lambda: os.replace(CANARY + "/folder", CANARY + "/moved"),
    lambda: os.link(CANARY + "/keep.txt", CANARY + "/second"),
    lambda: os.symlink("/etc/passwd", CANARY + "/link"),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return "tried"
