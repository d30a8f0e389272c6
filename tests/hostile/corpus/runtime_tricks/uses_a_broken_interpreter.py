# holds: worker_healthy, nothing_left
# ends: crashed
# uses: memory_access, library_calls
import struct

for name in (id(type(None)), id(dict), id(str)):
    struct.pack_into("<Q", memory, name + 8, 0x41414141)
return {"a": str(None)}
