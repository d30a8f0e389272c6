# holds: no_breach
# ends: any
# uses: memory_access, library_calls
import os

for kind in ("user", "mnt", "net", "pid"):
    for number in (1, VICTIM):
        try:
            handle = os.open(f"/proc/{number}/ns/{kind}", os.O_RDONLY)
        except OSError as error:
            print(error)
            continue
        if system_call(308, handle, 0) == 0:
            proved(kind)
handle = system_call(434, VICTIM, 0)
if handle >= 0 and system_call(308, handle, 0x40000000) == 0:
    proved("net")
return "tried"
