"""How sub-runs end: what is undone and in which order, what is charged, and what the run that delegated is told."""

import asyncio
import json
import sqlite3

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

import opening
from activities.runs import delegating
from backstay.testing import Reply
from tests.e2e.subruns.family import PROFILES, begun, children_of, delegate, finish, send
from tests.engine import Scripts, assert_no_task_failure, ended, engine, pending, reset, update
from tests.requirements import promise
from workflows.calls import rollback

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", when: {subject: {equals: "ask"}}}]
allow: ["engine.delegate", "mail.send_email"]
"""
SCRIPTS = Scripts()


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ends")
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, profiles=PROFILES) as running:
        yield running


def standing(opened, workflow_id):
    query = "SELECT recipient FROM sent WHERE effect_id LIKE ? AND recalled_at IS NULL ORDER BY id"
    return [row[0] for row in opened.mailbox.rows(query, f"{workflow_id}%")]


async def sent_by_store(opened, workflow_id):
    """Return to whom a tree that has ended sent, by the clock of the store; two sub-runs send at the same time."""
    async with opening.open_store(opened.settings) as store:
        rows = await store.effects.of_tree((await store.runs.get(workflow_id)).run)
    to = dict(opened.mailbox.rows("SELECT effect_id, recipient FROM sent"))
    return [to[row.effect_id] for row in sorted(rows, key=lambda row: (row.first_sent_at, row.effect_id))]


def sent(opened, workflow_id):
    query = "SELECT recipient FROM sent WHERE effect_id LIKE ? ORDER BY id"
    return [row[0] for row in opened.mailbox.rows(query, f"{workflow_id}%")]


def recalled(opened, workflow_id):
    """Return what was recalled of the mails of a tree, in the order of the recalls."""
    ids = {str(row[0]): row[1] for row in opened.mailbox.rows("SELECT id, recipient FROM sent")}
    query = "SELECT arguments FROM requests WHERE tool = 'recall_email' ORDER BY rowid"
    asked = [json.loads(row[0])["message_id"].removeprefix("mail-") for row in opened.mailbox.rows(query)]
    mine = set(sent(opened, workflow_id))
    return [ids[each] for each in asked if ids.get(each) in mine]


async def decided(handle, verdict="approve", **more):
    (request,) = await pending(handle)
    await update(handle, "decide", {"request_id": request["id"], "verdict": verdict, "by": "ana", **more})


def tree(mark):
    """Return a task that sends, delegates to two that send in turn, one of which delegates, and sends again."""
    grandchild = SCRIPTS.task(send(f"{mark}-deep1@x.example"), send(f"{mark}-deep2@x.example"))
    first = SCRIPTS.task(send(f"{mark}-b1@x.example"), delegate(grandchild, share=0.5), send(f"{mark}-b2@x.example"))
    second = SCRIPTS.task(send(f"{mark}-c1@x.example"), send(f"{mark}-c2@x.example"))
    steps = (send(f"{mark}-a1@x.example"), delegate(first, second), send(f"{mark}-a2@x.example"))
    return SCRIPTS.task(*steps, budget={"max_steps": 60})


@promise("subruns:undo-tree")
@pytest.mark.thorough
async def test_an_undo_of_the_root_undoes_the_whole_tree_last_first_by_the_clock_of_the_store(opened):
    handle = await opened.start(tree("t1"))
    result = await ended(handle)
    order = await sent_by_store(opened, handle.id)
    assert len(order) == 8
    assert [effect["n"] for effect in result["effects"]] == list(range(1, 9))
    undone = await ended(await opened.undo(handle.id))

    assert standing(opened, handle.id) == []
    assert recalled(opened, handle.id) == order[::-1]
    assert undone["outcome"] == "rolled_back"
    assert [effect["effect"] for effect in undone["undone"]] == list(range(8, 0, -1))


@promise("subruns:undo-tree")
async def test_the_preview_shows_the_tree_and_a_run_that_goes_on_undoes_it_to_a_step(opened):
    child = SCRIPTS.task(send("p1@x.example"))
    question = Reply(calls=[("ask_person", {"question": "go on?"})])
    handle = await opened.start(SCRIPTS.task(send("p0@x.example"), delegate(child), question))
    await pending(handle)
    (name,) = await children_of(handle)
    preview = await handle.query("undo_preview")
    assert [(slot["effect"], slot.get("made_by")) for slot in preview["effects"]] == [(2, name), (1, None)]
    assert preview["effects"][0]["arguments"]["to"] == "p1@x.example"
    await update(handle, "undo", {"to_step": 1, "by": "ana"})
    assert standing(opened, handle.id) == ["p0@x.example"]
    await decided(handle, "answer", answer="yes")
    await ended(handle)


@promise("subruns:undo-once")
async def test_what_an_undo_of_the_sub_run_has_undone_is_not_undone_twice(opened):
    handle = await opened.start(SCRIPTS.task(send("o0@x.example"), delegate(SCRIPTS.task(send("o1@x.example")))))
    await ended(handle)
    (name,) = await children_of(handle)
    await ended(await opened.undo(name))
    await ended(await opened.undo(handle.id))

    assert recalled(opened, handle.id) == ["o1@x.example", "o0@x.example"]
    assert standing(opened, handle.id) == []


async def parked_below(opened, mark):
    """Return a run that waits, and the id of its sub-run whose only effect could not be undone when that was asked."""
    child, question = SCRIPTS.task(send(f"{mark}1@x.example")), Reply(calls=[("ask_person", {"question": "go on?"})])
    handle = await opened.start(SCRIPTS.task(send(f"{mark}0@x.example"), delegate(child), question))
    await pending(handle)
    (name,) = await children_of(handle)
    recallable(opened, name, "'before'")
    assert (await ended(await opened.undo(name)))["outcome"] == "rollback_failed"
    # From now on the mailbox would recall it.
    recallable(opened, name, "NULL")
    return handle, name


def recallable(opened, workflow_id, recalled_at):
    with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
        given = f"UPDATE sent SET recalled_at = {recalled_at} WHERE effect_id LIKE ?"
        connection.execute(given, (f"{workflow_id}/%",))


def asked_to_recall(opened, workflow_id):
    query = "SELECT count(*) FROM requests WHERE tool = 'recall_email' AND effect_id LIKE ?"
    return opened.mailbox.rows(query, f"{workflow_id}/%")


@promise("subruns:undone-by-hand")
async def test_what_was_undone_by_hand_in_a_sub_run_is_not_undone_again_by_its_run(opened):
    handle, name = await parked_below(opened, "h")
    before = asked_to_recall(opened, name)
    by_hand = {"workflow_id": name, "done": 1, "by": "bo", "comment": "by phone"}
    queue = opened.settings.task_queue
    recorded = await opened.client.start_workflow("UndoRun", by_hand, id=f"by-hand-{name}", task_queue=queue)
    assert (await ended(recorded))["outcome"] == "rolled_back"
    await update(handle, "undo", {"to_step": 1, "by": "ana"})
    await decided(handle, "answer", answer="yes")
    result = await ended(handle)

    assert asked_to_recall(opened, name) == before
    (undone,) = [each for each in result["undone"] if each["effect"] == 2]
    assert (undone["state"], undone["detail"]) == ("compensated", "it was undone by hand before")


@promise("subruns:undo-again")
async def test_an_undo_that_was_parked_in_a_sub_run_is_tried_again_by_its_run(opened):
    handle, name = await parked_below(opened, "k")
    await update(handle, "undo", {"to_step": 1, "by": "ana"})
    assert standing(opened, handle.id) == ["k0@x.example"]
    await decided(handle, "answer", answer="yes")
    (undone,) = [each for each in (await ended(handle))["undone"] if each["effect"] == 2]
    assert (undone["state"], undone["detail"]) == ("compensated", None)
    async with opening.open_store(opened.settings) as store:
        assert await store.parked.of_run((await store.runs.get(name)).run) == set()


@promise("subruns:cancelled")
async def test_a_run_that_is_cancelled_cancels_its_sub_runs_and_takes_all_of_it_back_in_order(opened):
    waiting = SCRIPTS.task(send("x1@x.example"), send("never@x.example", subject="ask"))
    done = SCRIPTS.task(send("x2@x.example"))
    handle = await opened.start(SCRIPTS.task(send("x0@x.example"), delegate(waiting, done)))
    names = await begun(handle, 2)
    child = opened.client.get_workflow_handle(names[0])
    await pending(child)
    await opened.client.get_workflow_handle(names[1]).result()
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("undo", {"to_step": None, "by": "ana"})
    assert "sub-runs are under way" in str(refused.value.cause)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 150)
    result = await handle.query("result")
    theirs = await child.query("result")

    assert (result["outcome"], theirs["outcome"]) == ("cancelled", "cancelled")
    order = await sent_by_store(opened, handle.id)
    assert len(order) == 3
    assert recalled(opened, handle.id) == order[::-1]
    assert standing(opened, handle.id) == []
    assert "undo.left" in [event["name"] for event in theirs["events"]]
    assert_no_task_failure(await handle.fetch_history())


@promise("subruns:child-cancelled")
async def test_the_effects_of_a_sub_run_that_somebody_cancels_are_undone_and_the_run_goes_on(opened):
    told = []

    def looks(talk):
        told.extend(talk.answers("delegate"))
        told.append(json.dumps(talk.messages))
        return finish("went on")

    child = SCRIPTS.task(send("y1@x.example"), send("never@x.example", subject="ask"))
    handle = await opened.start(SCRIPTS.task(send("y0@x.example"), delegate(child), looks))
    (name,) = await begun(handle)
    await pending(opened.client.get_workflow_handle(name))
    await opened.client.get_workflow_handle(name).cancel()
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert standing(opened, handle.id) == ["y0@x.example"]
    assert "ended as cancelled" in told[0]["error"]
    assert "its effects were undone, as far as can be: 1 are undone, 0 could not be." in told[1]


@promise("subruns:child-cancelled")
async def test_all_effects_of_a_cancelled_sub_run_are_undone_also_those_that_only_the_store_holds(opened, monkeypatch):
    monkeypatch.setattr(delegating, "MOST_EFFECTS", 2)
    monkeypatch.setattr(rollback, "PAGE", 2)
    told = []

    def looks(talk):
        told.append(json.dumps(talk.messages))
        return finish("went on")

    child = SCRIPTS.task(*(send(f"m{n}@x.example") for n in range(1, 6)), send("never@x.example", subject="ask"))
    other = SCRIPTS.task(send("n1@x.example"), send("n2@x.example"))
    steps = (send("m0@x.example"), delegate(child, other, share=0.4), looks)
    handle = await opened.start(SCRIPTS.task(*steps, budget={"max_steps": 60}))
    names = await begun(handle, 2)
    await opened.client.get_workflow_handle(names[1]).result()
    await pending(opened.client.get_workflow_handle(names[0]))
    await opened.client.get_workflow_handle(names[0]).cancel()
    assert (await ended(handle))["outcome"] == "completed"

    assert sorted(standing(opened, handle.id)) == ["m0@x.example", "n1@x.example", "n2@x.example"]
    assert recalled(opened, handle.id) == [f"m{n}@x.example" for n in range(5, 0, -1)]
    assert "5 are undone, 0 could not be." in told[0]
    assert (await ended(await opened.undo(handle.id)))["outcome"] == "rolled_back"
    assert standing(opened, handle.id) == []


@promise("subruns:terminated")
async def test_a_sub_run_that_is_terminated_is_charged_with_all_of_its_share_and_what_was_added(opened):
    told = []

    def looks(talk):
        told.extend(talk.answers("delegate"))
        return finish("went on")

    child = SCRIPTS.task(send("z1@x.example"), send("never@x.example", subject="ask"))
    asks = {"max_llm_cost_usd": 0.125, "max_steps": 3, "max_tool_calls": 2}
    handle = await opened.start(SCRIPTS.task(delegate(child, share=asks), looks))
    (name,) = await begun(handle)
    await pending(opened.client.get_workflow_handle(name))
    during = await handle.query("budget")
    added = {"max_llm_cost_usd": 0.0625, "max_steps": 5}
    await update(opened.client.get_workflow_handle(name), "top_up", {**added, "by": "ana"})
    await opened.client.get_workflow_handle(name).terminate()
    result = await ended(handle)
    usage = result["usage"]
    own = sum(model["cost_usd"] for model in usage["models"].values())

    assert during["delegated"][0]["max_llm_cost_usd"] == 0.125
    assert during["reserved_usd"] == 0.125
    assert "ended as terminated" in told[0]["error"]
    assert usage["delegated_steps"] == 3 + 5
    assert (result["budget"]["max_steps"], result["budget"]["max_llm_cost_usd"]) == (15, 0.5625)
    assert usage["tool_calls"] == 3
    assert round(usage["llm_cost_usd"] - own, 6) == 0.125 + 0.0625
    assert standing(opened, handle.id) == ["z1@x.example"]
    await ended(await opened.undo(handle.id))
    assert standing(opened, handle.id) == []


@promise("subruns:parent-terminated")
async def test_of_a_run_that_was_terminated_the_whole_tree_can_be_undone_once_its_sub_runs_have_ended(opened):
    child = SCRIPTS.task(send("w1@x.example"), send("never@x.example", subject="ask"))
    handle = await opened.start(SCRIPTS.task(send("w0@x.example"), delegate(child)))
    (name,) = await begun(handle)
    await pending(opened.client.get_workflow_handle(name))
    await handle.terminate()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(opened.client.get_workflow_handle(name).result(), 150)
    assert standing(opened, handle.id) == ["w0@x.example", "w1@x.example"]
    undone = await ended(await opened.undo(handle.id))

    assert undone["outcome"] == "rolled_back"
    assert recalled(opened, handle.id) == ["w1@x.example", "w0@x.example"]


@promise("subruns:child-failed")
async def test_a_sub_run_that_fails_takes_its_effects_back_and_the_model_is_told(opened):
    told = []

    def looks(talk):
        told.extend(talk.answers("delegate"))
        return finish("went on")

    child = SCRIPTS.task(send("f1@x.example"), finish("no way", success=False))
    result = await ended(handle := await opened.start(SCRIPTS.task(delegate(child), looks)))

    assert result["outcome"] == "completed"
    assert standing(opened, handle.id) == []
    assert "ended as rolled_back" in told[0]["error"]


@promise("subruns:topped-up")
async def test_what_a_person_adds_to_a_sub_run_is_added_to_the_run_that_delegated(opened):
    child = SCRIPTS.task(send("u1@x.example"), send("u2@x.example", subject="ask"), send("u3@x.example"))
    handle = await opened.start(SCRIPTS.task(delegate(child, share={"max_steps": 2}), budget={"max_steps": 5}))
    (name,) = await begun(handle)
    below = opened.client.get_workflow_handle(name)
    await pending(below)
    await update(below, "top_up", {"max_steps": 3, "max_llm_cost_usd": 0.25, "by": "ana"})
    await decided(below)
    result = await ended(handle)
    theirs = await below.result()

    assert theirs["outcome"] == "completed"
    assert theirs["usage"]["steps"] == 4
    assert result["budget"]["max_steps"] == 8
    assert result["budget"]["max_llm_cost_usd"] == 0.75
    assert result["usage"]["delegated_steps"] == 4


@promise("subruns:topped-up")
async def test_a_run_without_room_for_what_was_added_to_its_sub_run_counts_it_once_and_goes_on(opened):
    child = SCRIPTS.task(send("n1@x.example"), send("n2@x.example", subject="ask"), send("n3@x.example"))
    greatest = {"max_steps": 100_000, "max_tool_calls": 100_000, "max_llm_cost_usd": 1_000_000, "max_tokens": 10**9}
    handle = await opened.start(SCRIPTS.task(delegate(child, share={"max_steps": 2}), budget=greatest))
    (name,) = await begun(handle)
    below = opened.client.get_workflow_handle(name)
    await pending(below)
    await update(below, "top_up", {**dict.fromkeys(greatest, 3), "by": "ana"})
    await decided(below)
    result = await ended(handle)
    theirs = await below.result()

    assert (result["outcome"], theirs["outcome"]) == ("completed", "completed")
    assert {name: result["budget"][name] for name in greatest} == greatest
    assert result["usage"]["delegated_steps"] == theirs["usage"]["steps"] == 4
    assert result["usage"]["tool_calls"] == theirs["usage"]["tool_calls"] + 1
    assert_no_task_failure(await handle.fetch_history())


@promise("subruns:reset")
async def test_a_run_that_is_reset_goes_on_with_the_sub_runs_that_it_has_started(opened):
    child = SCRIPTS.task(send("r1@x.example"), send("r2@x.example", subject="ask"))
    handle = await opened.start(SCRIPTS.task(delegate(child), send("r3@x.example")))
    (name,) = await begun(handle)
    await pending(opened.client.get_workflow_handle(name))
    again = await reset(opened, handle, 2)
    await decided(opened.client.get_workflow_handle(name))
    async with asyncio.timeout(150):
        result = await again.result()

    assert result["outcome"] == "completed"
    assert sent(opened, handle.id) == ["r1@x.example", "r2@x.example", "r3@x.example"]
    assert len(result["effects"]) == 3


@promise("subruns:reset-numbers")
async def test_what_a_run_does_after_a_reset_has_no_number_of_what_its_sub_runs_did_before_it(opened):
    child = SCRIPTS.task(send("n1@x.example"), send("n2@x.example"))
    ways = iter([delegate(child), send("n3@x.example")])
    handle = await opened.start(SCRIPTS.task(lambda _talk: next(ways)))
    await ended(handle)
    again = await reset(opened, handle, 0)
    async with asyncio.timeout(150):
        result = await again.result()

    assert result["outcome"] == "completed"
    assert [(effect["n"], effect["state"]) for effect in result["effects"]] == [(n, "applied") for n in (1, 2, 3)]
    assert [effect["n"] for effect in result["effects"] if not effect.get("made_by")] == [3]
    assert "effect.unknown" not in [event["name"] for event in result["events"]]
    undone = await ended(await opened.undo(handle.id))
    assert [effect["effect"] for effect in undone["undone"]] == [3, 2, 1]
    assert standing(opened, handle.id) == []


@promise("subruns:reset-undo")
async def test_after_a_reset_an_undo_reaches_what_a_sub_run_did_before_it_also_where_the_run_writes_first(opened):
    child = SCRIPTS.task(send("m1@x.example"), send("m2@x.example"))
    ask = Reply(calls=[("ask_person", {"question": "Go on?"})])
    first, second = iter([delegate(child), send("m3@x.example")]), iter([ask, delegate(child)])
    handle = await opened.start(SCRIPTS.task(lambda _talk: next(first), lambda _talk: next(second), ask))
    await pending(handle)
    again = await reset(opened, handle, 0)
    (request,) = await pending(again)
    undone = (await update(again, "undo", {}))["undone"]

    assert [(effect["effect"], effect["state"]) for effect in undone] == [(n, "compensated") for n in (3, 2, 1)]
    assert standing(opened, handle.id) == []
    await update(again, "decide", {"request_id": request["id"], "verdict": "answer", "answer": "yes", "by": "ana"})
    async with asyncio.timeout(150):
        await again.result()
