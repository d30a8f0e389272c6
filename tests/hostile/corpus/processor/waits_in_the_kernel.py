# holds: in_time
# ends: any
import os
import select
import signal

left, right = os.pipe()
for attempt in (
    lambda: os.read(left, 1),
    lambda: select.select([left], [], []),
    lambda: select.poll().poll(),
    signal.pause,
):
    try:
        attempt()
    except OSError as error:
        print(error)
