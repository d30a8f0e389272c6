# holds: victim_untouched
# ends: crashed
# uses: memory_access, library_calls
import struct

local = b"overwritten" * 10
near = struct.pack("<QQ", address_of(local), 64)
far = struct.pack("<QQ", SECRET_ADDRESS, 64)
print(library_call("process_vm_writev", VICTIM, address_of(near), 1, address_of(far), 1, 0))
return "tried"
