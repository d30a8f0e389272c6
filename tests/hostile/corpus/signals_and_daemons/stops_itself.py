# holds: in_time, nothing_left
# ends: any
import os
import signal

for attempt in (
    lambda: os.kill(os.getpid(), signal.SIGSTOP),
    lambda: os.kill(os.getpid(), signal.SIGTSTP),
    lambda: signal.raise_signal(signal.SIGSTOP),
    lambda: os.killpg(0, signal.SIGSTOP),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return "went on"
