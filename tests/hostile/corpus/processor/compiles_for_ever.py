# holds: in_time
# ends: any
while True:
    compile("+".join(["1"] * 200_000), "x", "exec")
