# holds: files_unchanged, no_breach
# ends: any
import os

for size in (1 << 30, 1 << 40, 1 << 60):
    try:
        handle = os.open("/tmp/sparse", os.O_CREAT | os.O_RDWR)
        os.ftruncate(handle, size)
        proved(f"{size} bytes")
        os.posix_fallocate(handle, 0, size)
    except OSError as error:
        print(error)
return "tried"
