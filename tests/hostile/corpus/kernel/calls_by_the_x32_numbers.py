# holds: no_breach
# ends: any
# uses: memory_access, library_calls
for number in (41, 57, 101, 272, 165, 321, 310):
    if system_call(0x40000000 | number, 2, 1, 0) not in (-1, -38):
        proved(f"x32 {number}")
return "tried"
