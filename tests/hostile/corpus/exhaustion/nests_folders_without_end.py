# holds: files_unchanged, no_breach, in_time
# ends: any
import os

os.chdir("/tmp")
depth = 0
try:
    for depth in range(50_000):
        os.mkdir("d")
        os.chdir("d")
    proved(f"{depth} folders")
except OSError as error:
    print(depth, error)
return depth
