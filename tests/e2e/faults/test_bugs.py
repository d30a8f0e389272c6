"""A bug in a release waits for the release that mends it: no run fails by it, and none is undone."""

import asyncio

import pytest
from temporalio.client import WorkflowUpdateFailedError

from activities.tools.tools import Tools
from backstay.testing import Reply
from tests.engine import Scripts, engine, pending
from tests.requirements import promise
from workflows import ending
from workflows.calls.tool_calls import ToolCalls
from workflows.context.run_context import RunContext

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: ask}"
MAIL = Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "s", "body": "b"})])
ASK = Reply(calls=[("ask_person", {"question": "Go on?"})])


async def _bug(*_given, **_named):
    raise KeyError("a bug of this release")


async def _waiting_for_a_fix(handle):
    """Wait until a workflow task of the run has failed and is tried again."""
    async with asyncio.timeout(150):
        while (await handle.describe()).raw_description.pending_workflow_task.attempt < 2:
            await asyncio.sleep(0.1)


async def _failing(handle):
    """Wait until an activity of the run has failed and is tried again."""
    async with asyncio.timeout(150):
        while not any(a.attempt > 1 for a in (await handle.describe()).raw_description.pending_activities):
            await asyncio.sleep(0.1)


@promise("runs:own-bug")
@pytest.mark.parametrize(
    ("home", "name"),
    [
        pytest.param(ToolCalls, "perform", id="drive"),
        pytest.param(ending.Ending, "_stored", id="ending", marks=pytest.mark.thorough),
    ],
)
async def test_a_bug_in_the_workflow_waits_and_the_next_release_goes_on(temporal, tmp_path, monkeypatch, home, name):
    scripts = Scripts()
    task = scripts.task(MAIL, ASK)
    with monkeypatch.context() as release:
        release.setattr(home, name, _bug)
        async with engine(temporal, tmp_path, scripts, policy=POLICY) as opened:
            queue = opened.settings.task_queue
            handle = await opened.start(task)
            if home is not ToolCalls:
                (request,) = await pending(handle)
                decision = {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"}
                await handle.execute_update("decide", decision)
            await _waiting_for_a_fix(handle)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, task_queue=queue) as opened:
        if home is ToolCalls:
            (request,) = await pending(handle, within_s=150)
            await handle.execute_update(
                "decide", {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"}
            )
        result = await asyncio.wait_for(handle.result(), 150)
        assert (result["outcome"], result["undone"]) == ("completed", [])
        assert opened.mailbox.sent() == ["a@x.example"]


@promise("runs:bug-handler")
async def test_a_bug_in_a_handler_refuses_and_is_counted_and_the_run_goes_on(temporal, tmp_path, monkeypatch):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY) as opened:
        handle = await opened.start(scripts.task(ASK))
        (request,) = await pending(handle)
        with monkeypatch.context() as release:
            release.setattr(RunContext, "top_up", _bug)
            with pytest.raises(WorkflowUpdateFailedError) as refused:
                await handle.execute_update("top_up", {"max_steps": 1})
            status = await handle.query("status")
        assert (refused.value.cause.type, "KeyError" in refused.value.cause.message) == ("InternalError", True)
        assert status["refused"] == 1
        assert status["last_events"][-1]["name"] == "approval.refused"
        await handle.execute_update(
            "decide", {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"}
        )
        assert (await asyncio.wait_for(handle.result(), 150))["outcome"] == "completed"


@promise("runs:bug-activity")
async def test_a_bug_in_an_activity_is_tried_again_and_the_next_release_goes_on(temporal, tmp_path, monkeypatch):
    scripts = Scripts()
    task = scripts.task(MAIL)
    with monkeypatch.context() as release:
        release.setattr(Tools, "_call", _bug)
        async with engine(temporal, tmp_path, scripts, policy=POLICY, transient_seconds=60) as opened:
            queue = opened.settings.task_queue
            handle = await opened.start(task)
            await _failing(handle)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, task_queue=queue) as opened:
        result = await asyncio.wait_for(handle.result(), 150)
        assert result["outcome"] == "completed"
        assert opened.mailbox.sent() == ["a@x.example"]


@promise("runs:bug-activity")
@pytest.mark.thorough
async def test_a_bug_in_an_activity_that_lasts_is_asked_about(temporal, tmp_path, monkeypatch):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, transient_seconds=1) as opened:
        with monkeypatch.context() as release:
            release.setattr(Tools, "_call", _bug)
            handle = await opened.start(scripts.task(MAIL))
            (request,) = await pending(handle)
            assert (request["kind"], request["options"]) == ("outcome", ["retry", "reject"])
            assert "call_tool: KeyError in call_tool" in request["question"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert result["outcome"] == "completed"
        assert opened.mailbox.sent() == ["a@x.example"]
