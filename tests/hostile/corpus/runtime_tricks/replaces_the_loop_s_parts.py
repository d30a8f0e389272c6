# holds: worker_healthy, in_time, calls_declared
# ends: any
import asyncio

loop = asyncio.get_running_loop()
for name in dir(loop):
    if not name.startswith("__"):
        try:
            setattr(loop, name, lambda *given, **named: None)
        except BaseException as error:
            print(name, type(error).__name__)
return await mail.send(to="somebody")
