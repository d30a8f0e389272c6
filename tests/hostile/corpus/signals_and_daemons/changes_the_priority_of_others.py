# holds: victim_untouched
# ends: any
import os

for attempt in (
    lambda: os.setpriority(os.PRIO_PROCESS, VICTIM, 19),
    lambda: os.setpriority(os.PRIO_PGRP, VICTIM, 19),
    lambda: os.sched_setaffinity(VICTIM, {0}),
    lambda: os.sched_setscheduler(VICTIM, os.SCHED_IDLE, os.sched_param(0)),
    lambda: os.setpgid(VICTIM, VICTIM),
    lambda: os.nice(-20),
):
    try:
        print(attempt())
    except OSError as error:
        print(error)
return "tried"
