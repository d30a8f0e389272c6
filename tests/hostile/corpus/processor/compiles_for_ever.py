# holds: in_time
# ends: any
while True:
    compile("[" + ",".join(["1.5"] * 300_000) + "]", "x", "exec")
