# result: {"sum": 140, "seen": [0, 1, 2], "cancelled": true}
import asyncio


async def worker(name, queue, done):
    while True:
        item = await queue.get()
        await asyncio.sleep(0)
        done[item] = item**2
        queue.task_done()


async def main():
    queue, done = asyncio.Queue(maxsize=3), {}
    workers = [asyncio.create_task(worker(i, queue, done)) for i in range(2)]
    for n in range(8):
        await queue.put(n)
    await queue.join()
    for w in workers:
        w.cancel()
    await asyncio.gather(*workers, return_exceptions=True)
    lock, event, limit = asyncio.Lock(), asyncio.Event(), asyncio.Semaphore(2)
    seen = []

    async def waiter(n):
        await event.wait()
        async with limit, lock:
            seen.append(n)

    waiting = [asyncio.create_task(waiter(n)) for n in range(3)]
    await asyncio.sleep(0.01)
    event.set()
    await asyncio.gather(*waiting)
    return {"sum": sum(done.values()), "seen": seen, "cancelled": all(w.cancelled() for w in workers)}
