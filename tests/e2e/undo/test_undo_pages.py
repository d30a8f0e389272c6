"""Undoing many effects: read page by page, in as many executions as it takes, and proven beforehand for all of them."""

import asyncio
import json
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine, insert, text
from temporalio.client import WorkflowFailureError
from temporalio.testing import ActivityEnvironment

import opening
from activities.tools.outcomes import Outcomes
from backstay import calls
from backstay.errors import ArgumentsInvalid
from backstay.testing import Reply
from store.database.schema import effects
from store.effects.effects import Effects
from store.opening import open_store
from tests import signing
from tests.e2e.loop.test_endless import executions_of
from tests.engine import Scripts, assert_no_task_failure, ended, engine, pending, replayer, through_switches, update
from tests.requirements import promise
from tests.sizes import sized
from workflows.calls import rollback
from workflows.calls.tool_calls import ToolCalls
from workflows.context import carrying

KEY = "the key that workers and gateways share"
ANA, BO, EVE = "ana@example.com", "bo@example.com", "eve@example.com"
FREE = "default: {read_only: allow, write_safe: allow, restricted_write: allow}"
POLICY = f"""
{FREE}
ask: [{{tool: "mail.send_email", when: {{to: {{ends_with: "@two.example"}}}}, approvers: ["{ANA}", "{BO}"], quorum: 2}}]
"""
STEPS = 14
EVENTS = 60
PAGE = 5


@pytest.fixture(autouse=True)
def _small_pages(monkeypatch):
    monkeypatch.setattr(carrying, "MOST_EVENTS", EVENTS)
    monkeypatch.setattr(rollback, "PAGE", PAGE)


def plan(*recipients):
    steps = [{"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}} for to in recipients]
    return {"plan": {"steps": steps}, "budget": {"max_steps": 100, "max_tool_calls": 100}}


async def undo_run(opened, *args, **options):
    return await opened.client.start_workflow(
        "UndoRun", args=args, id=f"undo-{uuid.uuid4()}", task_queue=opened.settings.task_queue, **options
    )


async def failure_of(handle):
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    return caught.value.cause


def recalled(opened, handle):
    """Return the numbers of the effects whose compensations came, in their order."""
    query = "SELECT effect_id FROM requests WHERE tool = 'recall_email' AND effect_id LIKE ? ORDER BY id"
    return [int(row[0].split("/")[2]) for row in opened.mailbox.rows(query, f"{handle.id}/%")]


def down_from(last, to=1):
    return list(range(last, to - 1, -1))


@promise("undo:pages")
async def test_a_long_undo_goes_on_in_new_executions_and_undoes_each_effect_once(temporal, tmp_path):
    async with engine(temporal, tmp_path, Scripts(), policy=FREE, cached=10) as opened:
        handle = await opened.start(plan(*(f"n{n}@free.example" for n in range(STEPS))))
        assert (await ended(handle))["outcome"] == "completed"
        undoing = await undo_run(opened, {"workflow_id": handle.id, "to_step": 2})
        result = await asyncio.wait_for(undoing.result(), 150)
        assert (result["outcome"], result["success"]) == ("rolled_back", True)
        assert result["final_summary"] == f"{STEPS - 2} effects undone, 0 parked, 0 cannot be undone"
        assert [effect["effect"] for effect in result["undone"]] == down_from(STEPS, 3)
        assert recalled(opened, handle) == down_from(STEPS, 3)

        histories = await executions_of(opened, undoing.id)
        assert len(histories) >= 3
        for history in histories:
            assert len(history.events) < 2 * EVENTS
            assert_no_task_failure(history)
            await replayer(sandboxed=False).replay_workflow(history)
        async with open_store(database_url=None, home=opened.settings.home) as store:
            (run,) = await store.pruning.idle((datetime.now(UTC) + timedelta(days=1)).timestamp())
            events = await store.events.of_run(run.run)
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        assert [event.name for event in events].count("action.called") == STEPS
        assert [event.data["effect"] for event in events if event.name == "undo.ran"] == down_from(STEPS, 3)
        worked = {execution.run_id for execution in run.executions if execution.workflow_id == undoing.id}
        assert worked == {history.run_id for history in histories}

        rest = await asyncio.wait_for((await undo_run(opened, {"workflow_id": handle.id})).result(), 150)
        assert [effect["effect"] for effect in rest["undone"]] == [2, 1]
        again = await asyncio.wait_for((await undo_run(opened, {"workflow_id": handle.id})).result(), 150)
        assert again["final_summary"] == "already undone"


def add_older(opened, run, count):
    """Renumber the effects of a run, so that so many others come before them; return those with outcomes in pages."""
    database = create_engine(f"sqlite:///{opened.settings.home / 'backstay.db'}")
    row = {"run": run, "undo": False, "tool": "gone.tool", "args_digest": "d", "state": "applied", "send": 1}
    row |= {"token": "", "lease": 0, "user_id": "singleton", "first_sent_at": 1, "updated_at": 1, "outcome": "o" * 500}
    with database.begin() as connection:
        moved = (
            "UPDATE effects SET effect_id = run || '/' || (n + :by), n = n + :by, step = step + :by WHERE run = :run"
        )
        connection.execute(text(moved), {"by": count, "run": run})
        rows = [{**row, "effect_id": f"{run}/{n}", "n": n, "step": n} for n in range(1, count + 1)]
        connection.execute(insert(effects), rows)
    database.dispose()


@promise("undo:pages")
@pytest.mark.thorough
async def test_thousands_of_effects_are_read_in_answers_of_bounded_size(temporal, tmp_path):
    many = sized(6000, 3000)
    async with engine(temporal, tmp_path, Scripts(), policy=FREE) as opened:
        handle = await opened.start(plan("a@free.example", "b@free.example"))
        assert (await ended(handle))["outcome"] == "completed"
        run = f"{handle.id}/{handle.first_execution_run_id}"
        add_older(opened, run, many)
        result = await ended(await undo_run(opened, {"workflow_id": handle.id, "to_step": many}))
        assert [effect["effect"] for effect in result["undone"]] == [many + 2, many + 1]
        assert opened.mailbox.sent() == []

        async with opening.open_resources(opened.settings, temporal) as resources:
            load = Outcomes(resources).load_effects
            seen, before, pages = [], None, 0
            while True:
                ask = calls.LoadEffects(run=run, before=before, limit=many)
                loaded = await ActivityEnvironment().run(load, ask)
                assert len(loaded.model_dump_json()) < 1_000_000
                assert before is not None or loaded.count == many
                seen += [effect.n for effect in loaded.effects]
                pages += 1
                if not loaded.more:
                    break
                before = seen[-1]
        assert seen == down_from(many)
        assert 1 < pages < 20


@promise("undo:beforehand-stranger")
async def test_a_stranger_cannot_begin_an_undo_where_another_one_would_continue(temporal, tmp_path):
    async with engine(temporal, tmp_path, Scripts(), policy=POLICY, approver_key=KEY) as opened:
        ask, (_, second) = await undone_by_two(opened)
        carried = second.events[0].workflow_execution_started_event_attributes.input.payloads
        given = [(await opened.client.data_converter.decode([payload]))[0] for payload in carried]
        assert set(given[1]) >= {"ref", "seal"}
        assert given[0]["run_id"] == ask["run_id"]
        standing = opened.mailbox.sent()

        refused = await failure_of(await undo_run(opened, *given))
        assert (refused.type, "2 arguments were given" in refused.message) == ("TaskInvalid", True)
        # The server says of later executions of a cron workflow, too, that they continue another one.
        repeated = await undo_run(opened, *given, cron_schedule="@every 1s")
        async with asyncio.timeout(150):
            while len(histories := await executions_of(opened, repeated.id)) < 3:
                await asyncio.sleep(0.2)
        await opened.client.get_workflow_handle(repeated.id).terminate()
        failed = histories[1].events[-1].workflow_execution_failed_event_attributes.failure
        assert "this store did not write the state" in failed.message
        assert opened.mailbox.sent() == standing


async def undone_by_two(opened):
    """Have two people undo a run in several executions, its payment last; return what was asked, and two histories."""
    handle = await paid_by_two(opened, *(f"n{n}@free.example" for n in range(2 * PAGE)))
    ask = {"workflow_id": handle.id, "run_id": handle.first_execution_run_id, "by": ANA}
    bound = await signing.binding(handle, "UndoRun")

    unsigned = await undo_run(opened, ask)
    assert (await failure_of(unsigned)).type == "NotVerified"
    by_eve = {**ask, "by": EVE}
    stranger = await undo_run(opened, {**by_eve, "proof": signing.proof_of(by_eve, bound, key=KEY)})
    assert (await failure_of(stranger)).type == "DecisionRefused"
    assert recalled(opened, handle) == []

    undoing = await undo_run(opened, {**ask, "proof": signing.proof_of(ask, bound, key=KEY)})
    (request,) = await pending(undoing)
    assert f"asks to undo {2 * PAGE + 1} effects" in request["question"]
    assert recalled(opened, handle) == []
    # Nobody needs two people for the newest effects, and one person alone gets no further than these.
    early = await update(undoing, "undo", await signing.signed(undoing, {"by": ANA}, update="undo", key=KEY))
    assert [effect["effect"] for effect in early["undone"]] == down_from(2 * PAGE + 1, PAGE + 2)
    yes = {"request_id": request["id"], "verdict": "approve", "by": BO}
    await update(undoing, "decide", await signing.signed(undoing, yes, key=KEY))
    latest = opened.client.get_workflow_handle(undoing.id)
    assert (await asyncio.wait_for(latest.result(), 150))["outcome"] == "rolled_back"
    assert recalled(opened, handle) == down_from(2 * PAGE + 1)
    assert opened.mailbox.sent() == []
    return ask, (await executions_of(opened, undoing.id))[:2]


@promise("undo:proof-once")
async def test_a_proof_for_an_undo_begins_one_undo_only(temporal, tmp_path):
    async with engine(temporal, tmp_path, Scripts(), policy=POLICY, approver_key=KEY) as opened:
        handle = await paid_by_two(opened)
        ask = {"workflow_id": handle.id, "run_id": handle.first_execution_run_id, "by": ANA}
        signed = {**ask, "proof": signing.proof_of(ask, await signing.binding(handle, "UndoRun"), key=KEY)}
        undoing = await undo_run(opened, signed)
        (request,) = await pending(undoing)
        no = {"request_id": request["id"], "verdict": "reject", "by": BO}
        await update(undoing, "decide", await signing.signed(undoing, no, key=KEY))
        assert (await failure_of(undoing)).type == "Rejected"
        # Whoever may read what was started may start the same again.
        again = await failure_of(await undo_run(opened, signed))
        assert (again.type, again.message) == ("NotVerified", "proof: used already; sign again")
        assert opened.mailbox.sent() == ["pay@two.example"]


async def paid_by_two(opened, *more):
    """Return a run that has ended, and whose first mail two people had to approve."""
    handle = await opened.start(plan("pay@two.example", *more))
    (request,) = await pending(handle)
    for by in (ANA, BO):
        yes = {"request_id": request["id"], "verdict": "approve", "by": by}
        await update(handle, "decide", await signing.signed(handle, yes, key=KEY))
    assert (await ended(handle))["outcome"] == "completed"
    return handle


@pytest.fixture
def short_memory(monkeypatch):
    """Have every run keep only its two newest effects in its stack, as one that continued does."""
    note = ToolCalls._note

    def noted(self, effect, result):
        note(self, effect, result)
        self.context.state.undo = self.context.state.undo.trimmed(2)

    monkeypatch.setattr(ToolCalls, "_note", noted)


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


@promise("undo:trimmed-order")
@pytest.mark.thorough
async def test_a_run_undoes_what_only_the_store_holds_too(temporal, tmp_path, short_memory):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE, cached=10) as opened:
        steps = [mail(f"n{n}@free.example") for n in range(1, 12)]
        ask = Reply(calls=[("ask_person", {"question": "Go on?"})])
        handle = await opened.start(scripts.task(*steps, ask, mail("late@free.example"), ask, budget=plan()["budget"]))
        await pending(handle)
        undone = (await update(handle, "undo", {"to_step": 4}))["undone"]
        assert [effect["effect"] for effect in undone] == down_from(11, 5)
        assert {effect["state"] for effect in undone} == {"compensated"}, undone
        await update(handle, "decide", {"request_id": "r1", "verdict": "answer", "answer": "yes", "by": "ana"})
        async with asyncio.timeout(150):
            while [request["id"] for request in await through_switches(lambda: handle.query("pending"))] != ["r2"]:
                await asyncio.sleep(0.1)
        await update(handle, "decide", {"request_id": "r2", "verdict": "reject", "stop": True, "by": "ana"})
        result = await ended(handle)
        assert result["outcome"] == "rolled_back"
        assert recalled(opened, handle) == [*down_from(11, 5), 12, *down_from(4)]
        assert opened.mailbox.sent() == []
        await replayer(sandboxed=False).replay_workflow(await handle.fetch_history())


@promise("undo:trimmed-unreadable")
async def test_effects_that_cannot_be_read_are_parked_as_a_whole(temporal, tmp_path, short_memory, monkeypatch):
    async def unreadable(*_asked, **_limits):
        raise ArgumentsInvalid("the page is torn")

    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE) as opened:
        steps = [mail(f"n{n}@free.example") for n in range(5)]
        handle = await opened.start(scripts.task(*steps, Reply(calls=[("ask_person", {"question": "Go on?"})])))
        await pending(handle)
        with monkeypatch.context() as torn:
            torn.setattr(Effects, "open_of_run", unreadable)
            await update(handle, "decide", {"request_id": "r1", "verdict": "reject", "stop": True, "by": "ana"})
            result = await ended(handle)
        assert result["outcome"] == "rollback_failed"
        assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
            (5, "compensated"),
            (4, "compensated"),
            (3, "parked"),
        ]
        assert "this and the 2 effects before it stay; they could not be read" in result["undone"][-1]["detail"]
        rest = await ended(await undo_run(opened, {"workflow_id": handle.id}))
        assert [effect["effect"] for effect in rest["undone"]] == [3, 2, 1]


@promise("undo:trimmed-in-time")
async def test_an_undo_stops_before_the_server_would_end_the_run(temporal, tmp_path, monkeypatch):
    # The events are counted in one execution.
    monkeypatch.setattr(carrying, "MOST_EVENTS", 10_000)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE) as opened:
        steps = [mail(f"n{n}@free.example") for n in range(5)]
        handle = await opened.start(scripts.task(*steps, Reply(calls=[("ask_person", {"question": "Go on?"})])))
        await pending(handle)
        so_far = (await handle.describe()).history_length
        monkeypatch.setattr(rollback, "STOPS_AT_EVENTS", so_far + 12)
        await update(handle, "decide", {"request_id": "r1", "verdict": "reject", "stop": True, "by": "ana"})
        result = await ended(handle)
        assert result["outcome"] == "rollback_failed"
        states = [(effect["effect"], effect["state"]) for effect in result["undone"]]
        number = states[-1][0]
        assert states == [*((effect, "compensated") for effect in down_from(5, number + 1)), (number, "parked")]
        assert 1 < number < 5
        assert f"this and the {number - 1} effects before it stay" in result["undone"][-1]["detail"]
        await replayer(sandboxed=False).replay_workflow(await handle.fetch_history())
        rest = await ended(await undo_run(opened, {"workflow_id": handle.id}))
        assert [effect["effect"] for effect in rest["undone"]] == down_from(number)


@promise("undo:beforehand-left")
async def test_an_effect_about_which_other_people_decide_than_were_known_of_is_left_to_them(
    temporal, tmp_path, short_memory
):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE) as opened:
        steps = [mail(f"n{n}@free.example") for n in range(4)]
        handle = await opened.start(scripts.task(*steps, Reply(calls=[("ask_person", {"question": "Go on?"})])))
        await pending(handle)
        database = create_engine(f"sqlite:///{opened.settings.home / 'backstay.db'}")
        with database.begin() as connection:
            changed = "UPDATE effects SET authority = :authority WHERE n = 2"
            connection.execute(text(changed), {"authority": json.dumps({"approvers": [ANA]})})
        database.dispose()
        await update(handle, "decide", {"request_id": "r1", "verdict": "reject", "stop": True, "by": "ana"})
        result = await ended(handle)
        assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [
            (4, "compensated"),
            (3, "compensated"),
            (2, "parked"),
            (1, "compensated"),
        ]
        assert opened.mailbox.sent() == ["n1@free.example"]
        assert (await failure_of(await undo_run(opened, {"workflow_id": handle.id}))).type == "NotVerified"


@promise("undo:proven-beforehand")
async def test_an_undo_needs_those_who_decide_about_what_only_the_store_holds(temporal, tmp_path, short_memory):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        mails = [mail(to) for to in ("pay@two.example", "a@free.example", "b@free.example", "c@free.example")]
        handle = await opened.start(scripts.task(*mails, Reply(calls=[("ask_person", {"question": "Go on?"})])))
        (request,) = await pending(handle)
        for by in (ANA, BO):
            yes = {"request_id": request["id"], "verdict": "approve", "by": by}
            await update(handle, "decide", await signing.signed(handle, yes, key=KEY))
        async with asyncio.timeout(150):
            while [request["kind"] for request in await through_switches(lambda: handle.query("pending"))] != [
                "question"
            ]:
                await asyncio.sleep(0.1)
        assert (await through_switches(lambda: handle.query("undo_preview")))["count"] == 4

        async def undo(by, to_step):
            ask = await signing.signed(handle, {"to_step": to_step, "by": by}, update="undo", key=KEY)
            return await update(handle, "undo", ask)

        assert [effect["effect"] for effect in (await undo(ANA, 2))["undone"]] == [4, 3]
        assert (await undo(ANA, 0))["state"] == "recorded"
        assert recalled(opened, handle) == [4, 3]
        assert [effect["effect"] for effect in (await undo(BO, 0))["undone"]] == [2, 1]
        await handle.terminate()
