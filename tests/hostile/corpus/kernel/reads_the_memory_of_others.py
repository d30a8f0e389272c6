# holds: secret_kept, victim_untouched
# ends: crashed
# uses: memory_access, library_calls
import struct

local = bytes(4096)
for target in (VICTIM, 1):
    near = struct.pack("<QQ", address_of(local), 4096)
    far = struct.pack("<QQ", SECRET_ADDRESS, 4096)
    if library_call("process_vm_readv", target, address_of(near), 1, address_of(far), 1, 0) > 0:
        print(local.partition(b"\0")[0])
return "tried"
