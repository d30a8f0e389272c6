# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(312, 1, 1, 0, 0, 0) not in (-1, -38):
    proved("kcmp")
return "tried"
