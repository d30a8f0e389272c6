# holds: in_time, calls_declared
# ends: any
while True:
    await mail.send(to="again")
