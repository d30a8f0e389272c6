# holds: secret_kept, files_unchanged
# ends: finished
import os

for number in ("self", 1, os.getppid(), VICTIM):
    for way in ("root", "cwd", "root/proc/1/root", f"task/{number}/root"):
        base = f"/proc/{number}/{way}"
        try:
            print(open(base + CANARY + "/secret.txt").read())
        except OSError as error:
            print(error)
        try:
            open(base + CANARY + "/" + MARK, "w").write("was here")
        except OSError as error:
            print(error)
return "tried"
