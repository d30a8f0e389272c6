"""A run that leaves a worker's memory touches no other run there."""

import asyncio
import gc

from temporalio import workflow

from backstay.testing import Reply
from tests.e2e.flooding import POLICY
from tests.engine import Scripts, assert_no_task_failure, engine, pending, replayer
from tests.requirements import promise
from workflows import handlers

PAYMENT = Reply(calls=[("mail__send_email", {"to": "a@one.example", "subject": "s", "body": "b"})])


@promise("recovery:evicted")
async def test_runs_that_were_evicted_while_they_waited_write_nothing_into_another_runs_history(
    temporal, tmp_path, monkeypatch
):
    scripts = Scripts()
    details = handlers.details

    def collecting(*given):
        # What an evicted run leaves behind is collected at any moment, also while another run is at work.
        if not workflow.unsafe.is_replaying():
            gc.collect()
        return details(*given)

    async with engine(temporal, tmp_path, scripts, policy=POLICY, cached=1) as opened:
        gc.disable()
        # What the process held before is nothing to look through again and again, for seconds.
        gc.freeze()
        try:
            waiting = [await opened.start(scripts.task(PAYMENT)) for _ in range(3)]
            for handle in waiting:
                await pending(handle)
            monkeypatch.setattr(handlers, "details", collecting)
            last = await opened.start(scripts.task(PAYMENT))
            await pending(last)
            for _ in range(3):
                await last.signal("approval", {"request_id": "r1", "verdict": "approve", "by": "eve"})
            async with asyncio.timeout(30):
                while (await last.query("status"))["refused"] < 3:
                    await asyncio.sleep(0.1)
        finally:
            gc.unfreeze()
            gc.enable()
        history = await last.fetch_history()
        for handle in (*waiting, last):
            await handle.terminate()
    monkeypatch.setattr(handlers, "details", details)
    assert_no_task_failure(history)
    await replayer(sandboxed=False).replay_workflow(history)
