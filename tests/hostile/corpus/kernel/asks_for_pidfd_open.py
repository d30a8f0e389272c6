# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(434, 1, 0) not in (-1, -38):
    proved("pidfd_open")
return "tried"
