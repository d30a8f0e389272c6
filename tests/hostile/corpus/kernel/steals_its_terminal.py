# holds: no_breach
# ends: any
import fcntl
import os

for number in range(64):
    for request in (0x5412, 0x541C, 0x540E, 0x5420):
        try:
            fcntl.ioctl(number, request, b"x")
            proved(f"ioctl {request:x}")
        except OSError:
            pass
return "tried"
