# holds: in_time, nothing_left
# ends: any
import signal

for attempt in (
    lambda: signal.alarm(1),
    lambda: signal.setitimer(signal.ITIMER_PROF, 0.001, 0.001),
    lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001),
):
    try:
        attempt()
    except OSError as error:
        print(error)
return await mail.send(to="somebody")
