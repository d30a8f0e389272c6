# holds: victim_untouched, worker_healthy
# ends: any
import os
import signal

for number in (signal.SIGSTOP, signal.SIGUSR1, signal.SIGTERM, signal.SIGKILL):
    for whom in (VICTIM, -VICTIM, os.getppid()):
        try:
            if whom > 1 or whom < -1:
                os.kill(whom, number)
        except OSError as error:
            print(error)
return "tried"
