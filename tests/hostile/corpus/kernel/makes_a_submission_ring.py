# holds: no_breach
# ends: any
# uses: memory_access, library_calls
parameters = bytes(120)
if system_call(425, 8, address_of(parameters)) >= 0:
    proved("io_uring")
if system_call(426, 0, 0, 0, 0, 0, 0) not in (-1,) or system_call(427, 0, 0, 0, 0) not in (-1,):
    proved("io_uring reached the kernel")
return "tried"
