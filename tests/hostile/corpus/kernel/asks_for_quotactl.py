# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(179, 0, 0, 0, 0) not in (-1, -38):
    proved("quotactl")
return "tried"
