# holds: in_time, nothing_left
# ends: any
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGTSTP)
signal.raise_signal(signal.SIGSTOP)
os.killpg(0, signal.SIGSTOP)
return "went on"
