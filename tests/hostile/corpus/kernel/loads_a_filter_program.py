# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
import struct

program = struct.pack("<BBhi", 0xB7, 0, 0, 0) + struct.pack("<BBhi", 0x95, 0, 0, 0)
licence = b"GPL\0"
attributes = struct.pack("<IIQQ", 1, 2, address_of(program), address_of(licence)) + bytes(100)
if system_call(321, 5, address_of(attributes), 72) != -1:
    proved("bpf")
return "tried"
