# holds: secret_kept
# ends: finished
import os

for number in ["self", "thread-self", 1, 2, os.getpid(), os.getppid(), VICTIM]:
    for name in ("environ", "cmdline"):
        try:
            print(number, open(f"/proc/{number}/{name}", "rb").read())
        except OSError:
            pass
return "tried"
