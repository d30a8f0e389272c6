# holds: nothing_left, no_breach
# ends: any
import os
import signal

for attempt in (os.forkpty, os.openpty, lambda: __import__("pty").fork()):
    try:
        attempt()
        proved("terminal")
    except (OSError, ImportError, AttributeError) as error:
        print(error)
while os.getpid() != 1:
    signal.pause()
return "tried"
