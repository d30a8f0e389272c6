# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(173, 0, 1024, 1) not in (-1, -38):
    proved("ioperm")
return "tried"
