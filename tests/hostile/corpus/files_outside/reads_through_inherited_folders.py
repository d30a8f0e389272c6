# holds: secret_kept
# ends: any
import os

for number in range(1024):
    for name in ("secret.txt", CANARY.lstrip("/") + "/secret.txt", "../" * 8 + CANARY.lstrip("/") + "/secret.txt"):
        try:
            print(os.read(os.open(name, os.O_RDONLY, dir_fd=number), 200))
        except OSError:
            pass
return "tried"
