# holds: worker_healthy, in_time
# ends: any
value = []
for _ in range(100_000):
    value = [value]
return value
