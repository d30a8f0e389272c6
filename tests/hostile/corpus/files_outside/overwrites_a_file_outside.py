# holds: files_unchanged
# ends: finished
import os

path = CANARY + "/keep.txt"
for attempt in (
    lambda: open(path, "w").write("overwritten"),
    lambda: open(path, "r+b").write(b"overwritten"),
    lambda: open(path, "a").write("appended"),
    lambda: os.truncate(path, 0),
    lambda: os.open(path, os.O_WRONLY | os.O_TRUNC),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return "tried"
