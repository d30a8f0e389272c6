# holds: in_time, worker_healthy, calls_declared
# ends: any
import sys


def trace(frame, event, argument):
    if "runner" in frame.f_code.co_filename:
        raise MemoryError("in the runner")
    return trace


sys.settrace(trace)
sys.setprofile(trace)
return await mail.send(to="somebody")
