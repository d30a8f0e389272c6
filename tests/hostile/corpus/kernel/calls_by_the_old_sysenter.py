# holds: no_breach
# ends: any
# uses: memory_access, library_calls, executable_memory
if enter_kernel(b"\x0f\x34", 20) > 0:
    proved("sysenter")
return "tried"
