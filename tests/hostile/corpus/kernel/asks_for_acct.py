# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(163, 0) not in (-1, -38):
    proved("acct")
return "tried"
