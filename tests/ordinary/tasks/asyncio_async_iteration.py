# result: {"countdown": [2, 1, 0], "flat": [0, 1, 10, 11, 20, 21]}
import asyncio


class Countdown:
    def __init__(self, start):
        self.n = start

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.n == 0:
            raise StopAsyncIteration
        self.n -= 1
        await asyncio.sleep(0)
        return self.n


async def pages():
    for page in range(3):
        await asyncio.sleep(0.001)
        yield [page * 10 + i for i in range(2)]


async def solve():
    flat = [x async for page in pages() for x in page]
    return {"countdown": [n async for n in Countdown(3)], "flat": flat}
