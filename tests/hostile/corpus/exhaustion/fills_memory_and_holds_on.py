# holds: memory_bounded, in_time
# ends: any
kept = []
while True:
    try:
        while True:
            kept.append(bytearray(1 << 20))
    except MemoryError:
        continue
