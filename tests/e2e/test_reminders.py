import asyncio

from examples.mailbox.reminders import Reminders

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."


async def pending(handle):
    async with asyncio.timeout(40):
        while not (found := await handle.query("pending")):
            await asyncio.sleep(0.1)
    return found


async def test_the_reminders_are_asked_about_once_and_sent_once(open_engine):
    async with open_engine(Reminders()) as engine:
        handle = await engine.start(TASK)
        (request,) = await pending(handle)
        assert request["kind"] == "batch"
        assert engine.mailbox.sent() == []
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await handle.result()
        assert result["outcome"] == "completed", result
        assert sorted(engine.mailbox.sent()) == sorted(result["raw_outputs"]["recipients"])
        assert engine.mailbox.requests("send_email") == len(engine.mailbox.sent()) > 1
