# holds: nothing_left, no_breach
# ends: any
import os
import signal

while True:
    if os.fork() == 0:
        while True:
            signal.pause()
    proved("fork")
