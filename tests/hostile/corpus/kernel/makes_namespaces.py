# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
for flag in (0x10000000, 0x40000000, 0x20000, 0x8000000, 0x4000000, 0x2000000, 0x80):
    if system_call(272, flag) == 0:
        proved(f"namespace {flag:x}")
return "tried"
