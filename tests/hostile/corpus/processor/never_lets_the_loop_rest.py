# holds: in_time
# ends: crashed
import asyncio

while True:
    await asyncio.sleep(0)
