# holds: worker_healthy, nothing_left
# ends: any
import faulthandler
import os
import signal

faulthandler.enable()
for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGSYS, signal.SIGABRT, signal.SIGKILL):
    os.kill(os.getpid(), number)
    signal.raise_signal(number)
os.abort()
