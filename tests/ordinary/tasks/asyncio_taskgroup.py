# result: {"log": ["quick done", "slow done", "victim cancelled"], "lengths": [4, 5], "messages": ["broken"]}
import asyncio


async def fetch(name, delay, log):
    try:
        await asyncio.sleep(delay)
        log.append(f"{name} done")
        return len(name)
    except asyncio.CancelledError:
        log.append(f"{name} cancelled")
        raise


async def fail():
    await asyncio.sleep(0.01)
    raise RuntimeError("broken")


async def main():
    log = []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(fetch(n, d, log)) for n, d in (("slow", 0.03), ("quick", 0.01))]
    lengths = [t.result() for t in tasks]
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(fetch("victim", 5, log))
            group.create_task(fail())
    except* RuntimeError as failures:
        messages = [str(e) for e in failures.exceptions]
    async with asyncio.timeout(1):
        await asyncio.sleep(0)
    return {"log": log, "lengths": lengths, "messages": messages}
