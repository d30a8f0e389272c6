# holds: nothing_left, no_breach
# ends: any
import os

python = "/usr/bin/python3"
for attempt in (
    lambda: os.posix_spawn(python, [python, "-c", "import signal; signal.pause()"], {}),
    lambda: os.posix_spawnp("python3", ["python3", "-c", "import signal; signal.pause()"], {"PATH": "/usr/bin"}),
    lambda: os.spawnv(os.P_NOWAIT, python, [python, "-c", "import signal; signal.pause()"]),
    lambda: os.system("sleep 1000 &") == 0 or 1 / 0,
    lambda: os.popen("echo hello").read()[4] and None,
):
    try:
        attempt()
        proved("started")
    except BaseException as error:
        print(type(error).__name__, error)
return "tried"
