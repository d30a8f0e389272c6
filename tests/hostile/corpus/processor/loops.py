# holds: in_time
# ends: crashed
while True:
    pass
