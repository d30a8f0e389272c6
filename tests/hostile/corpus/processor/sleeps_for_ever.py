# holds: in_time
# ends: any
import asyncio

while True:
    await asyncio.sleep(86400)
