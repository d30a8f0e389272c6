# holds: worker_healthy, in_time
# ends: any
import sys


class Evil:
    def write(self, text):
        raise KeyboardInterrupt

    flush = close = fileno = write


sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = Evil()
sys.excepthook = sys.unraisablehook = sys.displayhook = Evil
raise ValueError("to nobody")
