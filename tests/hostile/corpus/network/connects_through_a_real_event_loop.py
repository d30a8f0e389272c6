# holds: no_connection
# ends: any
import asyncio
import selectors


async def speak():
    reader, writer = await asyncio.open_connection("127.0.0.1", TCP_PORT)
    writer.write(b"hello from inside")
    await writer.drain()


try:
    asyncio.events._set_running_loop(None)
    asyncio.SelectorEventLoop(selectors.SelectSelector()).run_until_complete(speak())
except BaseException as error:
    print(type(error).__name__, error)
return "tried"
