# holds: files_unchanged, secret_kept
# ends: crashed
# uses: memory_access, library_calls
import os

os.mkdir("/tmp/m")
for source, target, kind, flags in (
    (b"/\0", b"/tmp/m\0", b"\0", 4096),
    (b"none\0", b"/tmp/m\0", b"proc\0", 0),
    (b"none\0", b"/\0", b"\0", 32),
    (b"none\0", b"/tmp/m\0", b"tmpfs\0", 0),
):
    if system_call(165, address_of(source), address_of(target), address_of(kind), flags, 0) == 0:
        print(os.listdir("/tmp/m"))
        proved("mount")
return "tried"
