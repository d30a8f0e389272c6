# holds: secret_kept, no_breach
# ends: finished
import os

for number in ("self", 1, os.getppid(), VICTIM):
    try:
        names = os.listdir(f"/proc/{number}/fd")
    except OSError as error:
        print(error)
        continue
    proved(f"descriptors of {number}: {names}")
    for name in names:
        try:
            print(os.readlink(f"/proc/{number}/fd/{name}"))
            print(os.read(os.open(f"/proc/{number}/fd/{name}", os.O_RDONLY | os.O_NONBLOCK), 200))
        except OSError:
            pass
return "tried"
