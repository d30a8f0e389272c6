"""Rollback and undo while a run is open: what is undone, in which order, and what is kept."""

import asyncio
import contextlib
import json
import sqlite3
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.service import RPCError

from backstay.testing import Reply
from tests.engine import Scripts, assert_no_task_failure, ended, engine, toolbox_of
from tests.requirements import promise
from tests.sizes import spread

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow:
  - {tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}
  - {tool: "mail.send_email", when: {to: {equals: "nobody"}}}
"""


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("undo")
        yield await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY)), scripts


def mails(*recipients):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


def step(to, **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}, **fields}


GIVES_UP = Reply(calls=[("finish", {"summary": "I cannot", "outputs": {}, "success": False})])
FAILS = step("nobody")
A, B, C, D, E = (f"{name}@free.example" for name in "abcde")


def asked_of_mailbox(opened, handle, tool):
    """Return the effect numbers for which the tool was requested, in order of arrival."""
    query = "SELECT effect_id FROM requests WHERE tool = ? AND effect_id LIKE ? ORDER BY id"
    rows = opened.mailbox.rows(query, tool, f"{handle.id}/%")
    return [int(row[0].removesuffix("/undo").rpartition("/")[2]) for row in rows]


def standing(opened, handle):
    """Return the recipients of mails that were sent by this run and not recalled."""
    query = "SELECT recipient FROM sent WHERE effect_id LIKE ? AND recalled_at IS NULL ORDER BY id"
    return [row[0] for row in opened.mailbox.rows(query, f"{handle.id}/%")]


async def decide(handle, **approval):
    return await handle.execute_update("decide", {"request_id": "r1", "by": "ana", **approval})


async def request_of(handle, request_id):
    async with asyncio.timeout(150):
        while not (found := [request for request in await handle.query("pending") if request["id"] == request_id]):
            await asyncio.sleep(0.1)
    return found[0]


@promise("undo:failure")
async def test_a_failure_after_five_effects_undoes_five_last_first(shared):
    opened, _ = shared
    handle = await opened.start({"plan": {"steps": [*map(step, (A, B, C, D, E)), FAILS]}})
    result = await ended(handle)
    assert (result["outcome"], result["success"]) == ("rolled_back", False)
    assert result["error"]["type"] == "StepFailed"
    assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
        (number, "compensated") for number in (5, 4, 3, 2, 1)
    ]
    assert asked_of_mailbox(opened, handle, "send_email") == [1, 2, 3, 4, 5, 6]
    assert asked_of_mailbox(opened, handle, "recall_email") == [5, 4, 3, 2, 1]
    assert standing(opened, handle) == []
    states = {effect["n"]: effect["state"] for effect in result["effects"]}
    assert states == {**dict.fromkeys(range(1, 6), "compensated"), 6: "failed"}
    # A compensation is no effect to undo.
    assert await handle.query("undo_preview") == {"count": 0, "effects": [], "effects_ref": result["effects_ref"]}
    assert result["usage"]["tool_calls"] == 6


@promise("undo:stop")
async def test_a_rejection_with_stop_undoes_a_batch_in_reverse_order_of_its_calls(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails(A, B, C), mails("last@x.example")))
    await request_of(handle, "r1")
    preview = await handle.query("undo_preview")
    assert [slot["effect"] for slot in preview["effects"]] == [3, 2, 1]
    assert all(slot["shown"].startswith("mail.recall_email(message_id=") for slot in preview["effects"])
    details = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert "Effects that stand: 3." in details.current_details
    await decide(handle, verdict="reject", stop=True)
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("rolled_back", "Rejected")
    assert asked_of_mailbox(opened, handle, "recall_email") == [3, 2, 1]
    assert standing(opened, handle) == []


@promise("undo:keep")
async def test_what_the_task_wants_kept_and_what_was_completed_is_kept(shared):
    opened, scripts = shared
    kept = await opened.start(scripts.task(mails(A), GIVES_UP, on_failure="keep"))
    failed = await opened.start(scripts.task(mails(A), GIVES_UP))
    done = await opened.start(scripts.task(mails(A)))
    results = [await ended(handle) for handle in (kept, failed, done)]
    assert [result["outcome"] for result in results] == ["failed", "rolled_back", "completed"]
    assert [standing(opened, handle) for handle in (kept, failed, done)] == [[A], [], [A]]
    assert results[1]["error"] == {"type": "Unfinished", "message": "I cannot"}


@promise("budget:fail")
async def test_an_exhausted_budget_keeps_effects_unless_it_shall_fail(shared):
    opened, scripts = shared
    kept = await opened.start(scripts.task(mails(A), mails(B), budget={"max_tool_calls": 1}))
    fails = {"max_tool_calls": 1, "on_exhausted": "fail"}
    failed = await opened.start(scripts.task(mails(A), mails(B), budget=fails))
    results = [await ended(handle) for handle in (kept, failed)]
    assert [result["outcome"] for result in results] == ["budget_exceeded", "rolled_back"]
    assert [result["error"]["type"] for result in results] == ["BudgetExceeded", "BudgetExceeded"]
    assert [standing(opened, handle) for handle in (kept, failed)] == [[A], []]


@promise("undo:to-step")
async def test_an_undo_to_a_step_undoes_what_came_after_it_and_the_run_goes_on(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails(A), mails(B), mails(C), mails("d@x.example")))
    await request_of(handle, "r1")
    updates = [handle.execute_update("undo", {"to_step": 1, "by": "ana", "event_id": "u"}) for _ in range(2)]
    undone, other = await asyncio.gather(*updates)
    assert {"compensated"} == {effect["state"] for effect in (*undone["undone"], *other["undone"])}
    assert sorted(effect["effect"] for effect in (*undone["undone"], *other["undone"])) in ([2, 3], [2, 2, 3, 3])
    assert asked_of_mailbox(opened, handle, "recall_email") == [3, 2]
    assert standing(opened, handle) == [A]
    assert [slot["effect"] for slot in (await handle.query("undo_preview"))["effects"]] == [1]
    await decide(handle, verdict="approve")
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert standing(opened, handle) == [A, "d@x.example"]
    assert "A person had effects undone: mail.send_email: compensated" in json.dumps(opened.model.requests)
    # A run that goes on may be undone again, and undoing twice does nothing twice.
    assert asked_of_mailbox(opened, handle, "recall_email") == [3, 2]


def finishes(summary):
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": True})])


@promise("undo:to-step-read")
@pytest.mark.parametrize("over", [True, False])
async def test_a_run_does_not_finish_before_its_model_knows_what_was_undone_while_it_was_asked(shared, over):
    opened, scripts = shared
    asked, go = asyncio.Event(), asyncio.Event()

    async def slow(_talk):
        asked.set()
        await go.wait()
        return finishes("all mails are sent")

    # The model is asked together with calls, and then again after an undo; a search is no such call.
    looks = Reply(calls=[("search_tools", {"query": "invoices"})])
    handle = await opened.start(scripts.task(mails(A), looks, slow, finishes("the mail was undone")))
    await asyncio.wait_for(asked.wait(), 150)
    accepted = WorkflowUpdateStage.ACCEPTED
    undo = await handle.start_update("undo", {"by": "ana"}, wait_for_stage=accepted, result_type=dict)
    if over:
        await undo.result()
    go.set()
    result = await ended(handle)

    assert [effect["state"] for effect in (await undo.result())["undone"]] == ["compensated"]
    assert (result["outcome"], result["final_summary"]) == ("completed", "the mail was undone")
    assert "A person had effects undone" in json.dumps(opened.model.requests[-1])
    assert "finish.dropped" in [event["name"] for event in result["events"]]


@promise("undo:none")
async def test_an_effect_that_cannot_be_undone_is_kept_and_named(shared):
    opened, scripts = shared
    (message,) = opened.mailbox.rows("SELECT min(id) FROM inbox")[0]
    deletes = Reply(calls=[("mail__delete_message", {"message_id": f"inbox-{message}"})])
    handle = await opened.start(scripts.task(mails(A), deletes, GIVES_UP))
    request = await request_of(handle, "r1")
    assert request["calls"][0]["undoable"] is False
    await decide(handle, verdict="approve")
    result = await ended(handle)
    assert result["outcome"] == "rolled_back"
    assert [(effect["tool"], effect["state"]) for effect in result["undone"]] == [
        ("mail.delete_message", "kept"),
        ("mail.send_email", "compensated"),
    ]
    assert "cannot be undone" in result["undone"][0]["detail"]
    assert {effect["n"]: effect["state"] for effect in result["effects"]} == {1: "compensated", 2: "kept"}
    assert opened.mailbox.rows("SELECT count(*) FROM inbox WHERE id = ?", message) == [(0,)]


@promise("undo:parked")
async def test_a_compensation_that_fails_is_tried_again_then_parked_and_the_others_go_on(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails(A, B, C), mails("last@x.example")))
    await request_of(handle, "r1")
    effect_id = opened.mailbox.rows("SELECT effect_id FROM sent WHERE effect_id LIKE ?", f"{handle.id}/%/2")[0][0]
    with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
        connection.execute("UPDATE sent SET recalled_at = 'by hand' WHERE effect_id = ?", (effect_id,))
    await decide(handle, verdict="reject", stop=True)
    result = await ended(handle)
    assert (result["outcome"], result["error"]["type"]) == ("rollback_failed", "Rejected")
    assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
        (3, "compensated"),
        (2, "parked"),
        (1, "compensated"),
    ]
    parked = result["undone"][1]["detail"]
    assert "was already recalled" in parked
    assert "by hand: mail.recall_email(message_id=" in parked
    assert asked_of_mailbox(opened, handle, "recall_email") == [3, 2, 2, 2, 1]
    assert standing(opened, handle) == []


@promise("undo:policy")
@pytest.mark.parametrize(
    ("decision", "state"),
    [
        ({"verdict": "approve"}, "compensated"),
        ({"verdict": "reject"}, "parked"),
        ({"verdict": "reject", "stop": True, "comment": "leave it"}, "parked"),
    ],
    ids=["approve", "reject", "stop"],
)
async def test_a_policy_may_ask_about_compensations(shared, decision, state):
    opened, scripts = shared
    policy = {"undo": {"ask": ["mail.recall_email"]}}
    handle = await opened.start(scripts.task(mails(A), GIVES_UP, policy=policy))
    request = await request_of(handle, "r1")
    assert (request["kind"], request["options"]) == ("call", ["approve", "reject"])
    assert request["question"].startswith("May the run undo an effect: mail.recall_email(message_id=")
    assert request["calls"][0]["arguments"]["effect"].endswith("/1")
    assert (await handle.query("status"))["state"] == "waiting"
    changes = {"0": {"verdict": "modify", "arguments": {"undo": "something else"}}}
    with pytest.raises(WorkflowUpdateFailedError):
        await decide(handle, verdict="modify", calls=changes)
    await decide(handle, **decision)
    result = await ended(handle)
    assert [effect["state"] for effect in result["undone"]] == [state]
    assert result["outcome"] == ("rolled_back" if state == "compensated" else "rollback_failed")
    assert standing(opened, handle) == ([] if state == "compensated" else [A])
    if state == "parked":
        assert "by hand: mail.recall_email" in result["undone"][0]["detail"]


@promise("undo:policy")
@pytest.mark.thorough
async def test_a_policy_may_deny_a_compensation_and_let_the_question_expire(shared):
    opened, scripts = shared
    denies = {"undo": {"deny": ["mail.recall_*"]}}
    expires = {"undo": {"ask": [{"tool": "mail.recall_*", "timeout": "1s", "on_expiry": "fail"}]}}
    for policy, why in ((denies, "denied by the policy"), (expires, "nobody decided")):
        handle = await opened.start(scripts.task(mails(A), GIVES_UP, policy=policy))
        result = await ended(handle)
        assert result["outcome"] == "rollback_failed"
        assert why in result["undone"][0]["detail"]
        assert standing(opened, handle) == [A]


@promise("undo:cancelled")
async def test_a_cancelled_run_ends_as_cancelled_after_undoing_what_it_did(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails(A, B), mails("last@x.example")))
    await request_of(handle, "r1")
    await handle.cancel()
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    assert type(caught.value.cause).__name__ == "CancelledError"
    assert_no_task_failure(await handle.fetch_history())
    result = await handle.query("result")
    assert (result["outcome"], result["error"]["type"]) == ("cancelled", "Cancelled")
    assert [effect["state"] for effect in result["undone"]] == ["compensated", "compensated"]
    assert asked_of_mailbox(opened, handle, "recall_email") == [2, 1]
    assert standing(opened, handle) == []


@promise("undo:cancel")
async def test_a_call_under_way_when_the_run_is_cancelled_is_waited_for_and_undone(open_engine):
    async with open_engine([mails(A, B)], env={"MAILBOX_SLOW_SECONDS": "2"}, policy=POLICY) as opened:
        handle = await opened.start("write slowly")
        await opened.model.asked()
        async with asyncio.timeout(150):
            while opened.mailbox.requests("send_email") < 2:
                await asyncio.sleep(0.1)
        await handle.cancel()
        # What needs the worker cannot be done for a run that is stopping, and must not stop it from compensating.
        with pytest.raises((WorkflowUpdateFailedError, RPCError)):
            await asyncio.wait_for(handle.execute_update("top_up", {"max_steps": 1, "proof": "1.00"}), 150)
        with contextlib.suppress(RPCError):
            await handle.signal("approval", {"request_id": "r1", "verdict": "approve", "by": "eve", "proof": "1.00"})
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 150)
        assert_no_task_failure(await handle.fetch_history())
        result = await handle.query("result")
        assert result["outcome"] == "cancelled"
        assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
            (2, "compensated"),
            (1, "compensated"),
        ]
        assert (opened.mailbox.requests("send_email"), opened.mailbox.requests("recall_email")) == (2, 2)
        assert standing(opened, handle) == []


@promise("undo:unknown")
async def test_an_effect_of_unknown_outcome_is_checked_before_it_is_undone(open_engine):
    env = {"MAILBOX_HANG_ON_SEND": "2"}
    async with open_engine([mails(A), mails(B)], env=env, policy=POLICY, request_deadline_seconds=2) as opened:
        handle = await opened.start("write")
        await opened.model.asked()
        async with asyncio.timeout(150):
            while len(opened.mailbox.sent()) < 2:
                await asyncio.sleep(0.1)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 150)
        assert_no_task_failure(await handle.fetch_history())
        result = await handle.query("result")
        assert result["outcome"] == "cancelled"
        assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
            (2, "compensated"),
            (1, "compensated"),
        ]
        assert opened.mailbox.requests("list_sent") >= 1
        assert opened.mailbox.sent() == []
        assert {effect["n"]: effect["state"] for effect in result["effects"]} == {1: "compensated", 2: "compensated"}


@promise("undo:by-id")
@pytest.mark.parametrize("by_effect_id", spread([True, False], 1))
async def test_an_effect_that_stays_unknown_is_undone_by_its_id_or_parked(temporal, tmp_path, mailbox_at, by_effect_id):
    address = await mailbox_at(MAILBOX_HANG_ON_SEND="2")
    path = toolbox_of(tmp_path, tmp_path / "mailbox.db", address=address)
    data = json.loads(path.read_text(encoding="utf-8"))
    declared = data["providers"]["mail"]["tools"]["send_email"]
    del declared["verify"]
    if by_effect_id:
        correction = {"to": A, "subject": "never mind", "body": "{{ effect.id }}: {{ arguments.subject }}"}
        declared["undo_by_effect_id"] = {"tool": "send_email", "arguments": correction}
    own = tmp_path / "own.json"
    own.write_text(json.dumps(data), encoding="utf-8")
    async with engine(
        temporal, tmp_path, [mails(A), mails(B)], policy=POLICY, toolbox=own, request_deadline_seconds=2
    ) as opened:
        handle = await opened.start("write")
        await opened.model.asked()
        async with asyncio.timeout(150):
            while len(opened.mailbox.sent()) < 2:
                await asyncio.sleep(0.1)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 150)
        assert_no_task_failure(await handle.fetch_history())
        result = await handle.query("result")
        states = [(effect["effect"], effect["state"]) for effect in result["undone"]]
        if not by_effect_id:
            assert result["outcome"] == "rollback_failed"
            assert states == [(2, "parked"), (1, "compensated")]
            assert "nobody knows whether mail.send_email took effect" in result["undone"][0]["detail"]
            assert opened.mailbox.sent() == [B]
            by_hand = {"workflow_id": handle.id, "done": 2, "by": "bo"}
            queue = opened.settings.task_queue
            recorded = await opened.client.start_workflow("UndoRun", by_hand, id=f"undo-{handle.id}", task_queue=queue)
            told = await ended(recorded)
            assert [(effect["effect"], effect["state"]) for effect in told["undone"]] == [(2, "compensated")]
            assert told["outcome"] == "rolled_back"
            return
        assert result["outcome"] == "cancelled"
        assert states == [(2, "compensated"), (1, "compensated")]
        (body,) = opened.mailbox.rows("SELECT body FROM sent WHERE subject = 'never mind'")[0]
        assert body == f"{handle.id}/{handle.first_execution_run_id}/2: s"
        assert {effect["n"]: effect["state"] for effect in result["effects"]} == {1: "compensated", 2: "compensated"}
