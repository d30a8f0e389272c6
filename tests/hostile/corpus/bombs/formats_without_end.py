# holds: memory_bounded, in_time
# ends: any
said = []
for attempt in (
    lambda: f"{1:>{10**12}}",
    lambda: "%*d" % (2**31 - 1, 1),
    lambda: "{:>9999999999}".format("x"),
    lambda: "x".ljust(10**13),
    lambda: b"x" * 10**14,
):
    try:
        said.append(len(attempt()))
        proved("huge text")
    except (MemoryError, ValueError, OverflowError) as error:
        said.append(type(error).__name__)
return said
