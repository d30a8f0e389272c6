# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(428, -100, 0, 0) not in (-1, -38):
    proved("open_tree")
return "tried"
