# holds: output_bounded, host_memory_bounded, in_time
# ends: crashed
while True:
    print("x" * 1000)
