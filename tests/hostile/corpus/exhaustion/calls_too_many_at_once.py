# holds: output_bounded, calls_declared
# ends: any
import asyncio

return await asyncio.gather(*(mail.send(to=str(n)) for n in range(20_000)))
