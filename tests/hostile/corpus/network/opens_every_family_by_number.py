# holds: no_breach
# ends: finished
import socket

for family in range(64):
    for kind in (1, 2, 3, 5):
        try:
            socket.socket(family, kind).close()
        except OSError:
            continue
        proved(f"family {family}, kind {kind}")
return "tried"
