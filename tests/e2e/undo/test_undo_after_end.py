"""UndoRun: undo the effects of a run that has ended, started by name as any program would."""

import asyncio
import sqlite3
import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.client import Backstay
from backstay.errors import NotVerified
from store.opening import open_store
from tests.engine import Scripts, assert_no_task_failure, ended, engine, forgotten, pending
from tests.requirements import promise

KEY = "an approver key of this test"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
"""


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("undo-after")
        yield await stack.enter_async_context(engine(temporal, folder, Scripts(), policy=POLICY))


def plan(*recipients, tool="mail.send_email"):
    return {
        "plan": {"steps": [{"tool": tool, "arguments": {"to": to, "subject": "s", "body": "b"}} for to in recipients]}
    }


async def failure_of(handle):
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return caught.value.cause.type


def standing(opened, workflow_id):
    query = "SELECT recipient FROM sent WHERE effect_id LIKE ? AND recalled_at IS NULL ORDER BY id"
    return [row[0] for row in opened.mailbox.rows(query, f"{workflow_id}/%")]


@promise("undo:after-end")
async def test_a_completed_run_is_undone_last_effect_first_to_any_step_and_only_once(opened):
    handle = await opened.start(plan("a@free.example", "b@free.example", "c@free.example"))
    assert (await ended(handle))["outcome"] == "completed"
    later = await ended(await opened.undo(handle.id, to_step=99))
    assert later["final_summary"] == "nothing that was done after step 99 is left to undo"
    some = await ended(await opened.undo(handle.id, to_step=2))
    assert (some["outcome"], [effect["effect"] for effect in some["undone"]]) == ("rolled_back", [3])
    assert standing(opened, handle.id) == ["a@free.example", "b@free.example"]
    undoing = await opened.undo(handle.id, run_id=handle.result_run_id)
    rest = await ended(undoing)
    assert (rest["outcome"], rest["success"]) == ("rolled_back", True)
    assert [(effect["effect"], effect["state"]) for effect in rest["undone"]] == [
        (2, "compensated"),
        (1, "compensated"),
    ]
    assert (rest["workflow_id"], rest["final_summary"][:17]) == (f"undo-{handle.id}", "2 effects undone,")
    assert standing(opened, handle.id) == []
    again = await ended(await opened.undo(handle.id))
    assert (again["outcome"], again["final_summary"], again["undone"]) == ("completed", "already undone", [])
    recalls = "SELECT count(*) FROM requests WHERE tool = 'recall_email' AND effect_id LIKE ?"
    assert opened.mailbox.rows(recalls, f"{handle.id}/%") == [(3,)]


@promise("undo:open-refused")
async def test_an_open_run_is_refused_and_a_terminated_one_is_undone(opened):
    handle = await opened.start(plan("a@free.example", "b@free.example", "last@x.example"))
    # The plan's one request comes before its first step: let it go as far as its own question.
    async with asyncio.timeout(150):
        while not await handle.query("pending"):
            await asyncio.sleep(0.1)
    assert await failure_of(await opened.undo(handle.id)) == "RunOpen"
    await handle.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    async with asyncio.timeout(150):
        while len(standing(opened, handle.id)) < 2:
            await asyncio.sleep(0.05)
    await handle.terminate("an operator's hand")
    result = await ended(await opened.undo(handle.id))
    assert result["outcome"] == "rolled_back"
    assert standing(opened, handle.id) == []


@promise("undo:chain")
async def test_an_earlier_run_of_the_same_name_is_undone_while_the_later_one_is_open(opened):
    first = await opened.start(plan("a@free.example"), workflow_id="same-name")
    assert (await ended(first))["outcome"] == "completed"
    second = await opened.start(plan("a@x.example"), workflow_id="same-name")
    async with asyncio.timeout(150):
        while not await second.query("pending"):
            await asyncio.sleep(0.1)
    assert await failure_of(await opened.undo("same-name")) == "RunOpen"
    assert await failure_of(await opened.undo("same-name", run_id=second.first_execution_run_id)) == "RunOpen"
    result = await ended(await opened.undo("same-name", run_id=first.first_execution_run_id))
    assert result["outcome"] == "rolled_back"
    await second.execute_update("decide", {"request_id": "r1", "verdict": "reject", "by": "ana"})
    assert (await ended(second))["outcome"] == "failed"


@promise("undo:open-refused")
async def test_an_unknown_run_and_an_incomplete_request_are_refused_by_type(opened):
    assert await failure_of(await opened.undo("no-such-run")) == "RunNotFound"
    assert await failure_of(await opened.undo("no-such-run", to_step="all")) == "TaskInvalid"


@promise("undo:again")
async def test_a_compensation_that_was_parked_is_tried_again_when_undone_again(opened):
    handle = await opened.start(plan("a@free.example", "b@free.example"))
    assert (await ended(handle))["outcome"] == "completed"

    def mark_second(recalled_at):
        query = "UPDATE sent SET recalled_at = ? WHERE effect_id LIKE ?"
        with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
            connection.execute(query, (recalled_at, f"{handle.id}/%/2"))

    mark_second("by hand")
    result = await ended(await opened.undo(handle.id))
    assert (result["outcome"], result["success"]) == ("rollback_failed", False)
    assert [effect["state"] for effect in result["undone"]] == ["parked", "compensated"]
    assert "by hand: mail.recall_email(message_id=" in result["undone"][0]["detail"]
    mark_second(None)
    result = await ended(await opened.undo(handle.id))
    assert (result["outcome"], [effect["state"] for effect in result["undone"]]) == ("rolled_back", ["compensated"])
    assert standing(opened, handle.id) == []
    assert (await ended(await opened.undo(handle.id)))["final_summary"] == "already undone"


@promise("undo:forgotten")
async def test_a_run_that_temporal_has_forgotten_is_undone_by_whom_the_policy_names_and_by_nobody_else(
    temporal, tmp_path
):
    named = 'ask: [{tool: "mail.send_email", approvers: ["ana@example.com"]}]'
    async with engine(temporal, tmp_path, Scripts(), policy=named, approver_key=KEY) as opened:
        backstay, unproven = [
            Backstay(temporal, task_queue=opened.settings.task_queue, approver_key=key) for key in (KEY, None)
        ]
        runs = [await backstay.start(plan(to)) for to in ("a@named.example", "b@named.example")]
        for run in runs:
            await pending(temporal.get_workflow_handle(run.id))
            first = (await run.status()).run_id
            await run.approve("r1", by="ana@example.com")
            assert (await run.result()).outcome == "completed"
            await forgotten(opened, run.id)
        with pytest.raises(NotVerified):
            await unproven.run(runs[0].id).undo(by="ana@example.com")
        undone = [*await runs[0].undo(by="ana@example.com")]
        undone += await backstay.run(runs[1].id, first).undo(by="ana@example.com")
        assert [effect.state for effect in undone] == ["compensated"] * 2
        assert opened.mailbox.sent() == []


@promise("store:retention-restored-undo")
async def test_a_run_of_before_a_restore_of_temporal_is_undone_without_a_question(temporal, tmp_path):
    options = {"policy": POLICY, "task_queue": f"queue-{uuid.uuid4()}"}
    async with engine(temporal, tmp_path, Scripts(), **options) as before:
        handle = await before.start(plan("a@free.example"))
        assert (await ended(handle))["outcome"] == "completed"
    async with open_store(database_url=None, home=tmp_path / "home") as store:
        await store.new_epoch(temporal_restored=True)
    async with engine(temporal, tmp_path, Scripts(), **options) as after:
        undone = await ended(await after.undo(handle.id))
        assert (undone["outcome"], standing(after, handle.id)) == ("rolled_back", [])
        async with open_store(database_url=None, home=tmp_path / "home") as store:
            _, undo = await store.effects.of_run(f"{handle.id}/{handle.result_run_id}")
    # The call that takes it back was made at once: it was not looked for first.
    assert (undo.state, undo.send) == ("applied", 1)
