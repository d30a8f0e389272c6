# holds: in_time
# ends: crashed
import asyncio

loop = asyncio.get_running_loop()


def again():
    loop.call_soon(again)
    loop.call_soon(again)


again()
await asyncio.Event().wait()
