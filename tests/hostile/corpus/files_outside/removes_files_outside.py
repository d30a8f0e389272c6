# holds: files_unchanged
# ends: finished
import os
import shutil

for attempt in (
    lambda: os.unlink(CANARY + "/keep.txt"),
    lambda: os.remove(CANARY + "/secret.txt"),
    lambda: os.rmdir(CANARY + "/folder"),
    lambda: shutil.rmtree(CANARY),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return "tried"
