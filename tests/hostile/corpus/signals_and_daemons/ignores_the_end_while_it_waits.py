# holds: in_time, nothing_left
# ends: any
import signal

for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXCPU):
    signal.signal(number, signal.SIG_IGN)
while True:
    try:
        await mail.send(to="again")
    except BaseException as error:
        print(error)
