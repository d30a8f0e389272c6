"""An effect whose undo is parked is recorded as undone by hand: the word of whoever may undo it, and no call."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.client import Backstay
from backstay.effects.effect import EffectState
from backstay.errors import BackstayError, DecisionRefused
from store.opening import open_store
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise

KEY = "the key that workers and gateways share"
ANA, BO, EVE = "ana@example.com", "bo@example.com", "eve@example.com"
POLICY = f"""
default: {{read_only: allow, write_safe: allow, restricted_write: allow}}
ask: [{{tool: "mail.send_email", when: {{to: {{ends_with: "@two.example"}}}}, approvers: ["{ANA}", "{BO}"], quorum: 2}}]
"""
TOKEN = f"ghp_{'a1B2' * 9}"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("by-hand")
        opened = await stack.enter_async_context(engine(temporal, folder, Scripts(), policy=POLICY, approver_key=KEY))
        yield opened, Backstay(temporal, task_queue=opened.settings.task_queue, approver_key=KEY)


def plan(*recipients):
    arguments = ({"to": to, "subject": "s", "body": "b"} for to in recipients)
    return {"plan": {"steps": [{"tool": "mail.send_email", "arguments": given} for given in arguments]}}


def recall_nothing(opened, workflow_id, which="1"):
    """Let the mailbox refuse to recall the first mail of a run, or with `%` every one."""
    with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
        given = "UPDATE sent SET recalled_at = 'before' WHERE effect_id LIKE ?"
        connection.execute(given, (f"{workflow_id}/%/{which}",))


async def parked(opened, backstay, *recipients, which="1"):
    """Return the id of a run whose first effect could not be undone, or with `%` none of them."""
    handle = await opened.start(plan(*recipients))
    assert (await ended(handle))["outcome"] == "completed"
    recall_nothing(opened, handle.id, which)
    undo = await backstay.start_undo(handle.id, by=ANA)
    assert (await undo.result()).outcome == "rollback_failed"
    return handle.id


async def calls_made(opened, workflow_id):
    return opened.mailbox.rows("SELECT count(*) FROM requests WHERE effect_id LIKE ?", f"{workflow_id}/%")


async def refused(undo):
    with pytest.raises(BackstayError) as caught:
        await asyncio.wait_for(undo.result(), 150)
    return f"{type(caught.value).__name__}: {caught.value}"


@promise("undo:done-by-hand")
@pytest.mark.thorough
async def test_what_was_undone_by_hand_is_recorded_with_the_word_of_a_person_and_nothing_is_called(shared):
    opened, backstay = shared
    name = await parked(opened, backstay, "a@x.example", "b@x.example")
    before = await calls_made(opened, name)
    undo = await backstay.start_undo(name, done=1, by=BO, comment=f"deleted it with {TOKEN}")
    result = await undo.result()

    assert (result.outcome, result.success) == ("rolled_back", True)
    assert result.final_summary == f"effect 1 was undone by hand, {BO} says so"
    (undone,) = result.undone
    assert (undone.effect, undone.state) == (1, "compensated")
    assert undone.detail.startswith(f"undone by hand, {BO} says so: deleted it with ⟦secret:")
    assert await calls_made(opened, name) == before
    async with open_store(database_url=None, home=opened.settings.home) as store:
        row = await store.runs.get(name)
        kept = (await store.plans.of_run(row.run))[0]
        assert await store.parked.of_run(row.run) == set()
    assert (kept.state, [step.status for step in kept.ended.steps]) == ("ROLLBACK_COMPLETED", ["rolled_back"] * 2)
    told = [event.text for event in result.events if event.name == "undo.ran"]
    assert [f"compensated, undone by hand, {BO} says so" in text for text in told] == [True]
    assert TOKEN not in str(result.plain())
    again = await backstay.start_undo(name, done=1, by=BO)
    assert await refused(again) == "ArgumentsInvalid: done: the undo of effect 1 is not parked; parked are none"


@promise("undo:done-by-hand")
async def test_only_a_parked_effect_can_be_recorded_as_undone_by_hand(shared):
    opened, backstay = shared
    handle = await opened.start(plan("a@x.example"))
    await ended(handle)
    undo = await backstay.start_undo(handle.id, done=1, by=BO)

    assert "the undo of effect 1 is not parked" in await refused(undo)
    assert (await (await backstay.start_undo(handle.id, by=BO)).result()).outcome == "rolled_back"


@promise("undo:done-by-hand-that-one")
async def test_the_word_about_an_effect_that_is_dealt_with_is_never_taken_for_another_one(shared):
    opened, backstay = shared
    name = await parked(opened, backstay, "a@x.example", "b@x.example", which="%")
    async with open_store(database_url=None, home=opened.settings.home) as store:
        run = (await store.runs.get(name)).run
        await store.effects.mark(f"{run}/2", EffectState.COMPENSATED)
        assert await store.parked.of_run(run) == {1}
        # A worker that tells late, or not at all, how an undo ended leaves it noted as parked.
        with sqlite3.connect(opened.settings.home / "backstay.db", timeout=10) as connection:
            connection.execute("INSERT INTO parked_undos (run, effect) VALUES (?, 2)", (run,))
        again = await refused(await backstay.start_undo(name, done=2, by=BO))
        first = await store.effects.get(f"{run}/1")

    assert again == "DecisionRefused: done: effect 2 does not stand any more; look at it again"
    assert first.state is EffectState.APPLIED


@promise("undo:done-by-hand")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"done": 1}, "by: required with done"),
        ({"done": 1, "by": BO, "to_step": 1}, "to_step: done is about one effect"),
        ({"by": BO, "comment": "so"}, "comment: only with done"),
        ({"done": "1", "by": BO}, "done: "),
        ({"done": 0, "by": BO}, "done: "),
        ({"done": 1, "by": BO, "comment": "x" * 5000}, "comment: "),
    ],
    ids=str,
)
async def test_a_malformed_record_is_refused_by_field(shared, given, field):
    opened, _ = shared
    handle = await opened.client.start_workflow(
        "UndoRun",
        {"workflow_id": "any", **given},
        id=f"undo-{field}-{given}"[:200],
        task_queue=opened.settings.task_queue,
    )
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    assert caught.value.cause.type == "TaskInvalid"
    assert field in caught.value.cause.message


@promise("undo:done-by-hand-authority")
async def test_who_may_not_undo_an_effect_may_not_record_it_and_two_must_where_two_must_undo(shared):
    opened, backstay = shared
    handle = await opened.start(plan("a@two.example"))
    run = backstay.run(handle.id)
    for person in (ANA, BO):
        (request,) = await pending(handle)
        await run.approve(request["id"], by=person)
    await ended(handle)
    recall_nothing(opened, handle.id)
    undo = await backstay.start_undo(handle.id, by=ANA)
    await agree(undo, BO)
    assert (await undo.result()).outcome == "rollback_failed"

    assert (await refused(await backstay.start_undo(handle.id, done=1, by=EVE))).startswith("DecisionRefused: by: eve")
    recording = await backstay.start_undo(handle.id, done=1, by=ANA, comment="by phone")
    request = await agree(recording, BO)
    assert "says that effect 1 of" in request.question
    assert "was undone by hand; agree?" in request.question
    assert (await recording.result()).outcome == "rolled_back"


async def agree(undo, person):
    async with asyncio.timeout(150):
        while not (requests := await undo.pending()):
            await asyncio.sleep(0.05)
    await undo.approve(requests[0], by=person)
    return requests[0]


@promise("undo:the-one-asked")
@pytest.mark.thorough
async def test_a_record_passes_for_no_undo_that_is_under_way(shared):
    opened, backstay = shared
    name = await parked(opened, backstay, "a@x.example")
    undo = await backstay.start_undo(name, by=ANA)
    with pytest.raises(DecisionRefused, match="done: another undo of this run is under way"):
        await backstay.start_undo(name, done=1, by=ANA)
    await undo.result()
