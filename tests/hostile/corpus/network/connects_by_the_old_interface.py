# holds: no_connection
# ends: any
# uses: memory_access, library_calls, executable_memory
import mmap
import struct

# 32-bit calls take 32-bit addresses: the arguments must lie low.
low = 0x10000000
library_call("mmap", low, 4096, 3, 0x32, -1, 0)
address = struct.pack("<H", 2) + struct.pack(">H", TCP_PORT) + bytes([127, 0, 0, 1]) + bytes(8)
struct.pack_into("<III", memory, low, 2, 1, 0)
handle = old_system_call(102, 1, low)
memory[low + 64 : low + 80] = address
struct.pack_into("<III", memory, low, handle & 0xFFFFFFFF, low + 64, 16)
print(handle, old_system_call(102, 3, low))
return "tried"
