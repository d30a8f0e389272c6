# holds: in_time
# ends: crashed
return sum(range(10**12))
