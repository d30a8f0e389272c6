# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
import struct

wanted = struct.pack("<IIQ", 1, 120, 0) + bytes(104)
if system_call(298, address_of(wanted), 0, -1, -1, 0) != -1:
    proved("perf_event_open")
return "tried"
