"""A run whose history grows long continues as a new execution, and nobody who looks at it can tell."""

import asyncio
import uuid

import pytest
from temporalio.client import WorkflowFailureError

from activities.runs.runs import RunActivities
from backstay.client import Backstay
from backstay.testing import Reply
from store.opening import open_store
from tests import signing
from tests.engine import Scripts, assert_no_task_failure, engine, pending, replayer, through_switches, update
from tests.requirements import promise
from workflows.context import carrying

KEY = "the key that workers and gateways share"
ANA = "ana@example.com"
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@one.example"}}, approvers: ["ana@example.com"]}]
"""
STEPS = 12
EVENTS = 60


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


async def executions_of(opened, workflow_id):
    """Return the histories of all executions of a run, the first one first; the list of workflows may lack some yet."""
    described = await opened.client.get_workflow_handle(workflow_id).describe()
    run_id, histories = described.raw_description.workflow_execution_info.first_run_id, []
    while run_id:
        histories.append(await opened.client.get_workflow_handle(workflow_id, run_id=run_id).fetch_history())
        last = histories[-1].events[-1]
        # One that failed is followed by another one where it is repeated by a schedule.
        ends = (
            last.workflow_execution_continued_as_new_event_attributes,
            last.workflow_execution_failed_event_attributes,
        )
        run_id = next((end.new_execution_run_id for end in ends if end.new_execution_run_id), "")
    return histories


@promise("runs:endless")
@pytest.mark.thorough
async def test_a_long_run_continues_as_new_executions_and_keeps_all_it_had(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "MOST_EVENTS", EVENTS)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        steps = [mail(f"n{number}@free.example") for number in range(STEPS)]
        task = scripts.task(*steps, mail("last@one.example"), budget={"max_steps": 30})
        backstay = Backstay(opened.client, task_queue=opened.settings.task_queue, approver_key=KEY)
        run = await backstay.start(task)
        seen = [event.n async for event in _until_asked(run)]
        (request,) = await run.pending()
        await run.top_up(by=ANA, max_steps=1, key=KEY.encode())
        await run.approve(request.id, by=ANA)
        result = await run.result()
        assert (result.outcome, result.budget.max_steps) == ("completed", 31)
        assert (result.usage["steps"], result.usage["tool_calls"]) == (STEPS + 2, STEPS + 1)
        assert [effect.n for effect in result.effects] == list(range(1, STEPS + 2))
        assert len(opened.mailbox.sent()) == STEPS + 1
        assert seen == list(range(1, len(seen) + 1))

        histories = await executions_of(opened, run.id)
        assert len(histories) >= 3
        assert all(len(history.events) < 2 * EVENTS for history in histories)
        for history in histories:
            assert_no_task_failure(history)
            await replayer(sandboxed=False).replay_workflow(history)

        async with open_store(database_url=None, home=opened.settings.home) as store:
            rows = [await store.runs.get(run.id, history.run_id) for history in histories]
            (row,) = {row.run for row in rows}
            events = await store.events.of_run(row)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        undone = await run.undo(by=ANA)
        assert [effect.state for effect in undone] == ["compensated"] * (STEPS + 1)
        assert opened.mailbox.sent() == []


async def _until_asked(run):
    """Yield the events until a person is asked about something."""
    async for event in run.events():
        yield event
        if event.name == "approval.asked":
            return


@promise("runs:endless")
async def test_an_event_id_and_a_request_of_an_earlier_execution_are_known_in_a_later_one(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_EVENTS", EVENTS)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        steps = [mail("first@one.example"), *(mail(f"n{n}@free.example") for n in range(STEPS)), mail("b@one.example")]
        handle = await opened.start(scripts.task(*steps, budget={"max_steps": 30}))
        (request,) = await pending(handle)
        yes = {"request_id": request["id"], "verdict": "approve", "by": ANA, "event_id": "click-1"}
        given = await signing.signed(handle, yes, key=KEY)
        latest = opened.client.get_workflow_handle(handle.id)
        run = Backstay(opened.client, task_queue=opened.settings.task_queue).run(handle.id)
        first = await latest.execute_update("decide", given)
        async with asyncio.timeout(150):
            while [r.id for r in await run.pending()] != ["r2"]:
                await asyncio.sleep(0.2)
        assert (await latest.describe()).run_id != handle.first_execution_run_id
        # It may be about to continue as the next one.
        assert await update(latest, "decide", given) == first
        status = await through_switches(lambda: latest.query("status"))
        assert status["run_id"] == handle.first_execution_run_id
        again = await signing.signed(latest, {**yes, "request_id": "r2", "event_id": "2"}, key=KEY)
        await update(latest, "decide", again)
        assert (await asyncio.wait_for(latest.result(), 150))["outcome"] == "completed"


@promise("runs:endless-strangers")
async def test_a_state_that_a_stranger_brings_is_refused(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY) as opened:

        async def start(**options):
            return await opened.client.start_workflow(
                "RunTask",
                args=[scripts.task(mail("a@free.example")), {"ref": "0" * 40, "seal": "0" * 64}],
                id=f"task-{uuid.uuid4()}",
                task_queue=opened.settings.task_queue,
                **options,
            )

        with pytest.raises(WorkflowFailureError) as failed:
            await (await start()).result()
        assert failed.value.cause.type == "TaskInvalid"
        assert "2 arguments were given" in failed.value.cause.message
        # The server says of later executions of a cron workflow, too, that they continue another one.
        repeated = await start(cron_schedule="@every 1s")
        async with asyncio.timeout(150):
            while len(await executions_of(opened, repeated.id)) < 3:
                await asyncio.sleep(0.2)
        await opened.client.get_workflow_handle(repeated.id).terminate()
        assert opened.mailbox.sent() == []


@promise("runs:endless-strangers")
@pytest.mark.thorough
async def test_a_state_that_this_store_did_not_write_for_this_execution_is_refused(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "MOST_EVENTS", EVENTS)
    monkeypatch.setattr(RunActivities, "_seal", lambda *_said: uuid.uuid4().hex)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY) as opened:
        handle = await opened.start(scripts.task(*(mail(f"n{n}@free.example") for n in range(STEPS))))
        with pytest.raises(WorkflowFailureError) as failed:
            await asyncio.wait_for(handle.result(), 150)
    assert failed.value.cause.type == "TaskInvalid"
    assert "this store did not write the state" in failed.value.cause.message
