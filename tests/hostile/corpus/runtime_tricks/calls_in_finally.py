# holds: calls_declared, in_time
# ends: any
try:
    await mail.send(to="first")
    raise KeyboardInterrupt
finally:
    while True:
        await mail.send(to="again")
