# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls, executable_memory
if enter_kernel(b"\x0f\x05", 39) > 0:
    proved("executable memory")
return "executed"
