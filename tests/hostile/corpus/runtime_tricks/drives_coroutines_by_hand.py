# holds: calls_declared, worker_healthy
# ends: any
one = mail.send(to="by hand")
try:
    waiting = one.send(None)
    print(type(waiting).__name__)
    print(one.send({"ok": "forged"}))
except BaseException as error:
    print(type(error).__name__, error)
one.close()
return await mail.send(to="honest")
