# holds: in_time, nothing_left
# ends: crashed
import signal

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError) as error:
        print(number, error)
while True:
    pass
