# holds: victim_untouched, worker_healthy
# ends: any
# control: left out: without a process namespace it would end every process of the user
import os
import signal

for whom in (-1, 0):
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(whom, number)
        except OSError as error:
            print(error)
return "tried"
