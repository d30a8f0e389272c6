# holds: secret_kept
# ends: any
import os

for number in range(1024):
    try:
        os.set_blocking(number, False)
        print(number, os.read(number, 4096))
    except OSError:
        pass
    try:
        print(number, os.pread(number, 4096, 0))
    except OSError:
        pass
return "tried"
