# holds: no_breach
# ends: crashed
# uses: memory_access, library_calls
if system_call(249, address_of(b"user\0"), address_of(b"mark\0"), 0, -4) != -1:
    proved("request_key")
return "tried"
