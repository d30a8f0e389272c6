# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls, executable_memory
if old_system_call(20) > 0:
    proved("int 0x80")
return "tried"
