# holds: nothing_left, no_breach
# ends: any
import os
import signal

for _ in range(8):
    try:
        if os.fork() == 0:
            proved("fork")
    except OSError as error:
        print(error)
while os.getpid() != 1:
    signal.pause()
return "tried"
