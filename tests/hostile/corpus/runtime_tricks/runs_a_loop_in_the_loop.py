# holds: worker_healthy, in_time
# ends: any
import asyncio

try:
    asyncio.events._set_running_loop(None)
    print(asyncio.run(mail.send(to="inner")))
except BaseException as error:
    print(type(error).__name__, error)
return await mail.send(to="outer")
