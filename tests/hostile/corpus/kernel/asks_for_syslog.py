# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(103, 10, 0, 0) not in (-1, -38):
    proved("syslog")
return "tried"
