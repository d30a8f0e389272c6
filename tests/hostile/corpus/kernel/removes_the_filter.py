# holds: no_breach
# ends: any
# uses: memory_access, library_calls
import struct

allow = struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000)
program = struct.pack("<HxxxxxxQ", 1, address_of(allow))
if system_call(317, 1, 0, address_of(program)) == 0:
    proved("seccomp")
if system_call(157, 22, 2, address_of(program)) == 0 or system_call(157, 4, 1) == 0:
    proved("prctl")
if system_call(41, 1, 1, 0) >= 0:
    proved("socket")
return "tried"
