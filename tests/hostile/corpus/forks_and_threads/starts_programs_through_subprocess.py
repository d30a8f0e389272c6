# holds: nothing_left, no_breach
# ends: any
try:
    import subprocess
except ImportError as error:
    return str(error)
for arguments in (["/usr/bin/python3", "-c", "import signal; signal.pause()"], ["/bin/sh", "-c", "sleep 1000"]):
    for options in ({}, {"start_new_session": True}, {"preexec_fn": print}, {"close_fds": False}):
        try:
            subprocess.Popen(arguments, **options)
            proved("started")
        except Exception as error:
            print(type(error).__name__, error)
return "tried"
