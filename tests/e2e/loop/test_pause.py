"""Pause and resume: the run holds before its next step or call and answers all the while."""

import asyncio

from temporalio.api.sdk.v1 import WorkflowMetadata

from backstay.testing import Reply
from tests.engine import ended, pending
from tests.requirements import promise

READ = Reply(calls=[("mail__list_customers", {"limit": 1})])
SEND = Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "s", "body": "b"})])
FINISH = Reply(calls=[("finish", {"summary": "done"})])


async def event_named(handle, name):
    async with asyncio.timeout(150):
        while True:
            events = (await handle.query("timeline", {"after": 0}))["events"]
            if any(event["name"] == name for event in events):
                return
            await asyncio.sleep(0.1)


@promise("approvals:pause")
async def test_a_paused_run_makes_no_approved_call_until_it_is_resumed_and_answers_meanwhile(open_engine):
    async with open_engine([SEND, FINISH]) as engine:
        handle = await engine.start("write")
        await pending(handle)
        paused = await handle.execute_update("pause", {"reason": "lunch\u202e", "by": "ana", "event_id": "p1"})
        assert paused == {"paused": True}
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
        async with asyncio.timeout(150):
            while (await handle.query("status"))["state"] != "paused":
                await asyncio.sleep(0.1)
        assert await handle.query("pending") == []
        assert (await handle.query("undo_preview"))["count"] == 0
        before = (await handle.query("budget"))["active_seconds"]
        details = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
        assert f"Paused: lunch\\<U+202E\\>. Resume: `backstay resume {handle.id}`" in details.current_details
        # Signals wake the run's clock: time in which it is held is not its own.
        await handle.signal("approval", {"nobody": "asked"})
        await event_named(handle, "approval.refused")
        assert (await handle.query("budget"))["active_seconds"] == before
        assert (await handle.query("result")) is None
        assert engine.mailbox.requests("send_email") == 0
        assert len(engine.model.requests) == 1
        resumed = await handle.execute_update("resume", {"by": "ana", "reason": "back again"})
        assert resumed["paused"] is False
        result = await ended(handle)
    assert result["outcome"] == "completed"
    assert engine.mailbox.requests("send_email") == 1
    (went_on,) = [event for event in result["events"] if event["name"] == "run.resumed"]
    assert (went_on["text"], went_on["data"]["by"]) == ("back again", "ana")
    names = [event["name"] for event in result["events"]]
    assert names.index("run.paused") < names.index("run.resumed") < names.index("action.called")


@promise("approvals:pause")
async def test_a_run_paused_before_a_step_asks_the_model_nothing_until_it_is_resumed(open_engine):
    asked, go = asyncio.Event(), asyncio.Event()

    async def rules(conversation):
        if not conversation.calls():
            asked.set()
            await asyncio.wait_for(go.wait(), 150)
            return READ
        return FINISH

    async with open_engine(rules) as engine:
        handle = await engine.start("read")
        await asyncio.wait_for(asked.wait(), 150)
        await handle.execute_update("pause", {"reason": "wait"})
        go.set()
        async with asyncio.timeout(150):
            while (await handle.query("status"))["state"] != "paused":
                await asyncio.sleep(0.1)
        assert len(engine.model.requests) == 1
        assert engine.mailbox.requests("list_customers") == 0
        await handle.execute_update("resume")
        result = await ended(handle)
    assert result["outcome"] == "completed"
    assert len(engine.model.requests) == 2


@promise("undo:paused")
async def test_a_paused_run_can_still_be_undone_and_cancelled(open_engine):
    async with open_engine([SEND, SEND]) as engine:
        handle = await engine.start("write")
        await pending(handle)
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
        async with asyncio.timeout(150):
            while not (found := await handle.query("pending")) or found[0]["id"] != "r2":
                await asyncio.sleep(0.1)
        await handle.execute_update("pause", {"reason": "doubt"})
        undone = await handle.execute_update("undo", {"to_step": None, "by": "ana"})
        assert [effect["state"] for effect in undone["undone"]] == ["compensated"]
        assert engine.mailbox.sent() == []
        await handle.cancel()
        async with asyncio.timeout(150):
            while (result := await handle.query("result")) is None:
                await asyncio.sleep(0.1)
    assert result["outcome"] == "cancelled"
    assert engine.mailbox.requests("send_email") == 1
