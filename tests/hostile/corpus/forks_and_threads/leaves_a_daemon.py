# holds: nothing_left, no_breach
# ends: any
import os
import signal

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        proved("daemon")
        for number in range(3, 64):
            try:
                os.close(number)
            except OSError:
                pass
        for sign in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(sign, signal.SIG_IGN)
        while True:
            signal.pause()
    os._exit(0)
return "left a daemon"
