# holds: calls_declared, worker_healthy, in_time
# ends: any
import asyncio

for task in asyncio.all_tasks():
    task.cancel()
try:
    await mail.send(to="cancelled")
except asyncio.CancelledError:
    pass
asyncio.current_task().uncancel()
waiting = [asyncio.create_task(mail.send(to=str(n))) for n in range(3)]
await asyncio.sleep(0)
for task in waiting:
    task.cancel()
return [type(one).__name__ for one in await asyncio.gather(*waiting, return_exceptions=True)]
