# holds: memory_bounded, in_time
# ends: any
kept = {}
number = 0
while True:
    number += 1
    kept[str(number)] = {number: (number, [number])}
