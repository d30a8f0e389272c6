# holds: memory_bounded, in_time
# ends: any
kept = []
while True:
    kept.append([0] * 1_000_000)
