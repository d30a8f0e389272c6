# holds: secret_kept
# ends: finished
import os

for target in (CANARY + "/secret.txt", "../" * 10 + CANARY.lstrip("/") + "/secret.txt", "/proc/1/root" + CANARY + "/secret.txt"):
    try:
        os.symlink(target, "/tmp/link")
        print(open("/tmp/link").read())
    except OSError as error:
        print(error)
    finally:
        if os.path.lexists("/tmp/link"):
            os.unlink("/tmp/link")
return "tried"
