# holds: nothing_left, no_breach, in_time
# ends: any
import asyncio
import concurrent.futures
import threading

home = threading.get_ident()


def inside():
    if threading.get_ident() != home:
        proved("another thread")


async def main():
    loop = asyncio.get_running_loop()
    for attempt in (
        lambda: loop.run_in_executor(None, inside),
        lambda: asyncio.to_thread(inside),
    ):
        try:
            await asyncio.wait_for(attempt(), 1)
        except BaseException as error:
            print(type(error).__name__, error)
    for kind in ("ThreadPoolExecutor", "ProcessPoolExecutor"):
        try:
            with getattr(concurrent.futures, kind)(4) as pool:
                print(list(pool.map(len, ["a", "bb"])))
                proved(kind)
        except BaseException as error:
            print(type(error).__name__, error)
    return "tried"
