# holds: victim_untouched
# ends: any
# uses: memory_access, library_calls
import struct

for number in (10, 19, 9):
    information = struct.pack("<iii", number, 0, -1) + bytes(116)
    system_call(62, VICTIM, number)
    system_call(234, VICTIM, VICTIM, number)
    system_call(129, VICTIM, number, address_of(information))
return "tried"
