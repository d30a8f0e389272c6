# holds: victim_untouched
# ends: crashed
# uses: machine_code
import struct

local = b"overwritten" * 10
near = struct.pack("<QQ", address_of(local), 64)
far = struct.pack("<QQ", SECRET_ADDRESS, 64)
print(system_call(311, VICTIM, address_of(near), 1, address_of(far), 1, 0))
return "tried"
