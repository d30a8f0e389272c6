# holds: files_unchanged, no_breach
# ends: any
import os

made = 0
try:
    for made in range(60_000):
        os.close(os.open(f"/tmp/{made}", os.O_CREAT | os.O_WRONLY))
    proved(f"{made} files")
except OSError as error:
    print(made, error)
return made
