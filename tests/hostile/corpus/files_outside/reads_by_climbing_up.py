# holds: secret_kept
# ends: finished
import os

for up in range(1, 24):
    try:
        with open("/tmp/" + "../" * up + CANARY.lstrip("/") + "/secret.txt") as opened:
            print(opened.read())
    except OSError:
        pass
    try:
        os.chdir("..")
        print(open(CANARY.lstrip("/") + "/secret.txt").read())
    except OSError:
        pass
return "tried"
