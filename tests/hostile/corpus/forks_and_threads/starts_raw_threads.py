# holds: nothing_left, no_breach
# ends: any
import _thread

try:
    _thread.stack_size(32768)
    for _ in range(100):
        _thread.start_new_thread(_thread.allocate_lock().acquire, ())
        proved("thread")
except RuntimeError as error:
    print(error)
return "tried"
