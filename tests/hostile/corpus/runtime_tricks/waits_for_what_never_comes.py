# holds: in_time, worker_healthy
# ends: any
import asyncio

await asyncio.get_running_loop().create_future()
