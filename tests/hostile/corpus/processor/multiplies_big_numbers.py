# holds: in_time
# ends: crashed
value = 3**100_000
while True:
    value = value * value % (1 << 4_000_000)
