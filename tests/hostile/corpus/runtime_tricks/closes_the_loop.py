# holds: worker_healthy, in_time
# ends: any
import asyncio

loop = asyncio.get_running_loop()
for attempt in (loop.stop, loop.close, lambda: loop.run_until_complete(mail.send(to="x")), loop.run_forever):
    try:
        attempt()
    except BaseException as error:
        print(type(error).__name__, error)
return await mail.send(to="somebody")
