# holds: nothing_left, no_breach
# ends: any
# uses: memory_access, library_calls
import struct

import os
import signal

parent = system_call(39)
arguments = struct.pack("<QQQQQQQQQQQ", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
for number, given in ((57, ()), (56, (17, 0, 0, 0, 0)), (435, (address_of(arguments), 88))):
    answer = system_call(number, *given)
    if answer >= 0:
        proved(f"call {number}")
    if system_call(39) != parent:
        while True:
            signal.pause()
return "tried"
