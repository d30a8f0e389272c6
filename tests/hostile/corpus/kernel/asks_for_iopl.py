# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(172, 3) not in (-1, -38):
    proved("iopl")
return "tried"
