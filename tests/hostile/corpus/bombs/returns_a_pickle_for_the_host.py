# holds: files_unchanged, worker_healthy
# ends: any
import base64
import os
import pickle


class Bomb:
    def __reduce__(self):
        return os.mkdir, (CANARY + "/" + MARK,)


bomb = pickle.dumps(Bomb())
print(bomb)
os.write(2, bomb)
return {"py/object": "os.system", "__class__": "Bomb", "pickle": base64.b64encode(bomb).decode(), "raw": bomb.decode("latin-1")}
