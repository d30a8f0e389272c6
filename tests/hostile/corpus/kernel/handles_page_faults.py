# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
for flags in (0, 1, 0x80000):
    if system_call(323, flags) != -1:
        proved("userfaultfd")
return "tried"
