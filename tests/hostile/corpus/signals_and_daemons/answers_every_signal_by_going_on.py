# holds: in_time, nothing_left
# ends: crashed
import signal


def go_on(number, frame):
    while True:
        pass


for number in range(1, 65):
    try:
        signal.signal(number, go_on)
    except (OSError, ValueError):
        pass
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
except OSError as error:
    print(error)
while True:
    pass
