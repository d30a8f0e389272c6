# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(227, 0, 0) not in (-1, -38):
    proved("clock_settime")
return "tried"
