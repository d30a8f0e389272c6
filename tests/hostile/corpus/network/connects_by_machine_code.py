# holds: no_connection
# ends: any
# uses: memory_access, library_calls
import struct

address = struct.pack("<H", 2) + struct.pack(">H", TCP_PORT) + bytes([127, 0, 0, 1]) + bytes(8)
handle = system_call(41, 2, 1, 0)
print(handle, system_call(42, handle, address_of(address), 16))
print(system_call(1, handle, address_of(b"hello from inside"), 17))
return "tried"
