# holds: worker_healthy, nothing_left
# ends: any
import faulthandler
import os
import signal

faulthandler.enable()
for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS, signal.SIGABRT, signal.SIGKILL):
    for attempt in (lambda: os.kill(os.getpid(), number), lambda: signal.raise_signal(number), lambda: os.kill(0, number)):
        try:
            attempt()
        except OSError as error:
            print(error)
os.abort()
