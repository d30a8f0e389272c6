# holds: nothing_left, no_breach
# ends: any
import os

try:
    import _posixsubprocess

    left, right = os.pipe()
    arguments = [
        [b"/usr/bin/python3", b"-c", b"import signal; signal.pause()"], [b"/usr/bin/python3"], True, (right,),
        None, None, -1, -1, -1, -1, -1, -1, left, right, True, True, -1, None, None, None, -1, None, True,
    ]
    for length in range(len(arguments), 15, -1):
        try:
            if _posixsubprocess.fork_exec(*arguments[:length]) > 0:
                proved("started")
        except (TypeError, ValueError):
            continue
        break
except (ImportError, OSError) as error:
    print(error)
return "tried"
