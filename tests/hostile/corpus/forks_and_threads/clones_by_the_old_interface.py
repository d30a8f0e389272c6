# holds: nothing_left, no_breach
# ends: any
# uses: memory_access, library_calls, executable_memory
import signal

parent = system_call(39)
for number, first in ((2, 0), (120, 17)):
    if old_system_call(number, first) >= 0:
        proved(f"old call {number}")
    if system_call(39) != parent:
        while True:
            signal.pause()
return "tried"
