# holds: no_breach
# ends: any
import os

SCRIPT = b"#!/usr/bin/python3\nprint('started')\n"
with open("/tmp/program", "wb") as opened:
    opened.write(open("/usr/bin/python3", "rb").read(1 << 20))
with open("/tmp/script", "wb") as opened:
    opened.write(SCRIPT)
for name in ("program", "script"):
    os.chmod("/tmp/" + name, 0o755)
    if os.access("/tmp/" + name, os.X_OK):
        proved("executable " + name)
    try:
        os.execv("/tmp/" + name, [name])
    except OSError as error:
        print(error)
return "tried"
