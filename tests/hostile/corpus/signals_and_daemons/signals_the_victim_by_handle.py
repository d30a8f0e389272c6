# holds: victim_untouched
# ends: any
import os
import signal

try:
    handle = os.pidfd_open(VICTIM)
    for number in (signal.SIGUSR1, signal.SIGSTOP, signal.SIGKILL):
        signal.pidfd_send_signal(handle, number)
except OSError as error:
    print(error)
return "tried"
