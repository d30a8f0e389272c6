# holds: nothing_left, no_breach
# ends: any
import os
import pickle


class Bomb:
    def __reduce__(self):
        return os.system, ("echo started",)


class Fork:
    def __reduce__(self):
        return os.fork, ()


for bomb in (Bomb(), Fork()):
    try:
        if pickle.loads(pickle.dumps(bomb)) not in (None, -1, 32512, 127 << 8):
            proved("program")
    except BaseException as error:
        print(type(error).__name__, error)
while os.getpid() != 1:
    os._exit(0)
return "tried"
