# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
for answer in (
    system_call(248, address_of(b"user\0"), address_of(b"mark\0"), address_of(b"hello"), 5, -4),
    system_call(250, 0, -3, 1),
    system_call(249, address_of(b"user\0"), address_of(b"mark\0"), 0, -4),
):
    if answer >= 0:
        proved("keyring")
return "tried"
