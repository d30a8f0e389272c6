# holds: no_breach
# ends: any
import os

try:
    handle = os.memfd_create("x")
    os.write(handle, b"hello")
    proved("memory file")
except OSError as error:
    print(error)
return "tried"
