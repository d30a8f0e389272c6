"""A run that a stopped worker left behind touches no other run."""

import gc

from temporalio import workflow

from backstay.testing import Reply
from tests.e2e.flooding import POLICY
from tests.engine import Scripts, assert_no_task_failure, engine, pending, replayer
from tests.requirements import promise
from workflows import handlers

PAYMENT = Reply(calls=[("mail__send_email", {"to": "a@one.example", "subject": "s", "body": "b"})])


@promise("recovery:evicted")
async def test_runs_that_a_stopped_worker_left_behind_write_nothing_into_another_runs_history(
    temporal, tmp_path, monkeypatch
):
    scripts = Scripts()
    details = handlers.details
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    collected = []

    def collecting(*given):
        # What the worker left behind is collected at any moment, also while another run is at work.
        if not workflow.unsafe.is_replaying():
            collected.append(gc.collect())
        return details(*given)

    gc.collect()
    gc.disable()
    # What the process held before is nothing to look through again and again, for seconds.
    gc.freeze()
    try:
        async with engine(temporal, tmp_path / "first", scripts, policy=POLICY) as opened:
            waiting = [await opened.start(scripts.task(PAYMENT)) for _ in range(3)]
            for handle in waiting:
                await pending(handle)
        for handle in waiting:
            await handle.terminate()
        async with engine(temporal, tmp_path / "second", scripts, policy=POLICY) as opened:
            monkeypatch.setattr(handlers, "details", collecting)
            last = await opened.start(scripts.task(PAYMENT))
            await pending(last)
            history = await last.fetch_history()
            await last.terminate()
    finally:
        gc.unfreeze()
        gc.enable()
    monkeypatch.setattr(handlers, "details", details)
    assert collected[0] > 0
    assert_no_task_failure(history)
    await replayer(sandboxed=False).replay_workflow(history)
