# holds: memory_bounded
# ends: any
for size in (1 << 33, 1 << 36, 1 << 40, 1 << 62):
    for make in (bytearray, lambda n: "x" * n, lambda n: [None] * n, lambda n: 1 << n):
        try:
            make(size)
            proved(f"{size} bytes")
        except (MemoryError, OverflowError) as error:
            print(type(error).__name__)
return "tried"
