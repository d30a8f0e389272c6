# holds: in_time, nothing_left, calls_declared
# ends: any
import atexit
import os
import threading

atexit.register(lambda: [None for _ in iter(int, 1)])
atexit.register(lambda: os.write(1, b"after the end"))
threading._register_atexit(lambda: [None for _ in iter(int, 1)])
return "registered"
