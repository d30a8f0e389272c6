# result: {"done": [0, 1, 4, "ValueError: bad 3", 16], "timed_out": true, "order": [16, 1, 0]}
import asyncio


async def work(n):
    await asyncio.sleep(0.01 * (5 - n))
    if n == 3:
        raise ValueError(f"bad {n}")
    return n * n


async def main():
    results = await asyncio.gather(*(work(n) for n in range(5)), return_exceptions=True)
    done = [r if isinstance(r, int) else f"{type(r).__name__}: {r}" for r in results]
    try:
        await asyncio.wait_for(asyncio.sleep(10), timeout=0.05)
        timed_out = False
    except asyncio.TimeoutError:
        timed_out = True
    order = []
    for finished in asyncio.as_completed([work(0), work(1), work(4)]):
        order.append(await finished)
    return {"done": done, "timed_out": timed_out, "order": order}
