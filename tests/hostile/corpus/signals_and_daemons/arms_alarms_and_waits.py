# holds: in_time, nothing_left
# ends: any
import signal

signal.alarm(1)
signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001)
signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
return await mail.send(to="somebody")
