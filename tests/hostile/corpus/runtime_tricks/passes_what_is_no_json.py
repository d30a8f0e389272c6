# holds: worker_healthy, calls_declared
# ends: any
said = []
for given in (object(), {1, 2}, b"x", float("nan"), "\ud800", (n for n in range(3)), 10**5000):
    try:
        said.append(repr(await mail.send(to=given))[:50])
    except Exception as error:
        said.append(type(error).__name__)
return said
