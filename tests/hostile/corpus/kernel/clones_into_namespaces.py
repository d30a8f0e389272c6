# holds: no_breach
# ends: any
# uses: memory_access, library_calls
import os

before = system_call(39)
answer = system_call(56, 0x10000000 | 17, 0, 0, 0, 0)
if answer >= 0:
    proved("clone")
if system_call(39) != before:
    os._exit(0)
return "tried"
