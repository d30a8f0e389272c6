# holds: calls_declared, worker_healthy
# ends: any
import asyncio

mail.send(to="never awaited")
task = asyncio.ensure_future(mail.send(to="never looked at"))
return "finished early"
