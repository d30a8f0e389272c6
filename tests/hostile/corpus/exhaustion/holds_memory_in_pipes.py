# holds: memory_bounded, in_time
# ends: any
import fcntl
import os

pipes = []
try:
    while True:
        left, right = os.pipe()
        pipes.append((left, right))
        os.set_blocking(right, False)
        try:
            if fcntl.fcntl(right, 1031, 1 << 20) > 65536:
                proved("large pipe")
        except OSError as error:
            print(error)
        try:
            while True:
                os.write(right, bytes(65536))
        except BlockingIOError:
            pass
except OSError as error:
    print(len(pipes), error)
return "tried"
