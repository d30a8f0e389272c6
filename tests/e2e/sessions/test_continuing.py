"""A run that waits continues as a new execution: what waits goes on there, and nothing happens twice."""

import asyncio
import json
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.runs.runs import RunActivities
from backstay.client import Backstay
from backstay.effects.effect import EffectState
from backstay.testing import Reply
from store.opening import open_store
from tests import signing
from tests.e2e.loop.test_endless import executions_of
from tests.e2e.subruns.family import PROFILES, delegate
from tests.engine import PLANS, Scripts, assert_no_task_failure, engine, forgotten, replayer, reset, toolbox_of
from tests.requirements import promise
from tests.sizes import spread
from workflows.context import carrying
from workflows.dispatch import activity_calls

KEY = "the key that workers and gateways share"
ANA, BOB = "ana@example.com", "bob@example.com"
SERVERS = Path(__file__).parents[2] / "toolbox" / "servers"
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask:
  - {tool: "mail.send_email", when: {to: {ends_with: "@one.example"}}, approvers: ["ana@example.com"]}
  - {tool: "mail.send_email", when: {to: {ends_with: "@two.example"}}, quorum: 2}
"""
OPEN_POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@ask.example"}}}]
undo: {ask: [{tool: "mail.recall_email"}]}
"""
SEND = """
import asyncio

async def main():
    first = await mail.list_customers(limit=1)
    sent = await asyncio.gather(*(mail.send_email(to=f"c{n}@ask.example", subject="s", body="b") for n in range(3)))
    last = await mail.send_email(to="last@free.example", subject="s", body="b")
    return {"total": first["total"], "sent": len(sent), "last": last["message_id"]}
"""


@pytest.fixture(autouse=True)
def _every_signal_counts(monkeypatch):
    """Let each signal make the history long, so that a test decides when a run continues as a new execution."""
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)


def mail(*recipients):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


def run_of(opened, handle, key=None):
    return Backstay(opened.client, task_queue=opened.settings.task_queue, approver_key=key).run(handle.id)


async def continued(handle, times=1):
    """Have a run continue as a new execution."""
    for _ in range(times):
        before = (await handle.describe()).run_id
        await handle.signal("approval", "a word that makes the history long")
        async with asyncio.timeout(150):
            while (await handle.describe()).run_id == before:
                await asyncio.sleep(0.05)


async def asked(run, count=1):
    """Return the open requests of a run when there are so many."""
    async with asyncio.timeout(150):
        while len(found := await run.pending()) < count:
            await asyncio.sleep(0.1)
    return found


async def finished(opened, run, executions):
    """Return the Result of a run that took so many executions, each of which replays."""
    result = await asyncio.wait_for(run.result(), 150)
    histories = await executions_of(opened, run.id)
    assert len(histories) == executions
    for history in histories:
        assert_no_task_failure(history)
        await replayer(sandboxed=False).replay_workflow(history)
    return result


@promise("runs:without-end")
@pytest.mark.thorough
async def test_votes_proofs_and_what_was_agreed_go_on_in_the_next_execution(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        handle = await opened.start(scripts.task(mail("a@one.example", "b@two.example")))
        run = run_of(opened, handle, KEY)
        first, second = await asked(run, 2)
        await run.approve(first.id, by=ANA)
        vote = await signing.signed(
            handle, {"request_id": second.id, "verdict": "approve", "by": ANA, "event_id": "click"}, key=KEY
        )
        voted = await handle.execute_update("decide", vote)
        before = (await asked(run))[0]
        await continued(handle, times=2)
        (after,) = await asked(run)
        assert after == before
        assert (voted["state"], await handle.execute_update("decide", vote)) == ("recorded", voted)
        with pytest.raises(Exception, match="has already decided"):
            await run.approve(second.id, by=ANA)
        assert opened.mailbox.sent() == []
        await run.approve(second.id, by=BOB)
        result = await finished(opened, run, executions=3)
        assert (result.outcome, sorted(opened.mailbox.sent())) == ("completed", ["a@one.example", "b@two.example"])
        assert (result.usage["steps"], result.usage["tool_calls"]) == (2, 2)
        async with open_store(database_url=None, home=opened.settings.home) as store:
            said = await store.decisions.of_run(f"{run.id}/{handle.first_execution_run_id}")
        assert [(decision.by, decision.request_id) for decision in said if decision.verdict] == [
            (ANA, first.id),
            (ANA, second.id),
            (BOB, second.id),
        ]


@promise("runs:without-end")
async def test_an_approval_that_comes_while_the_run_continues_counts_once(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        handle = await opened.start(scripts.task(mail("a@one.example")))
        run = run_of(opened, handle, KEY)
        (request,) = await asked(run)
        said = {"request_id": request.id, "verdict": "approve", "by": ANA}
        yes = await signing.signed(handle, said, update="approval", key=KEY)
        forged = {**yes, "proof": yes["proof"][:-4] + "0000"}
        junk = [handle.signal("approval", given) for given in ("junk", forged, forged, forged, forged, forged, forged)]
        await asyncio.gather(*junk, handle.signal("approval", yes), handle.signal("approval", yes))
        result = await asyncio.wait_for(run.result(), 150)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@one.example"])
        assert len([event for event in result.events if event.name == "approval.decided"]) == 1


@promise("runs:execution-store-away")
async def test_a_run_that_continues_while_the_store_is_away_goes_on_when_it_is_back(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(activity_calls, "AGAIN", timedelta(seconds=0.1))
    demand, away = RunActivities._seal, [2]

    def seal(self, run, ref, written_by):
        if activity.info().activity_type == "load_carried" and away[0]:
            away[0] -= 1
            raise ApplicationError("away for longer than it is tried", type="StoreUnavailable", non_retryable=True)
        return demand(self, run, ref, written_by)

    monkeypatch.setattr(RunActivities, "_seal", seal)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        handle = await opened.start(scripts.task(mail("a@one.example")))
        run = run_of(opened, handle, KEY)
        (request,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [request]
        await run.approve(request.id, by=ANA)
        result = await finished(opened, run, executions=2)
        assert (result.outcome, away, opened.mailbox.sent()) == ("completed", [0], ["a@one.example"])


@promise("runs:execution-forgotten")
async def test_a_run_whose_first_execution_temporal_has_forgotten_is_known_by_it_all_the_same(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, approver_key=KEY) as opened:
        backstay = Backstay(temporal, task_queue=opened.settings.task_queue, approver_key=KEY)
        task = scripts.task(mail("a@one.example"), user_id=ANA, by=ANA)
        run = await backstay.start(task, "long-open", once=True)
        (request,) = await asked(run)
        first = (await run.status()).run_id
        await continued(temporal.get_workflow_handle(run.id))
        await forgotten(opened, run.id, first)
        named = backstay.run(run.id, first)
        waiting = asyncio.ensure_future(named.result())

        assert await named.is_open()
        assert [each.id for each in await (await backstay.start(task, run.id, once=True)).pending()] == [request.id]
        await named.approve(request.id, by=ANA)
        assert (await asyncio.wait_for(waiting, 150)).outcome == "completed"
        following = await named.follow_up(scripts.task()["text"], by=ANA)
        assert (await asyncio.wait_for(following.result(), 150)).outcome == "completed"


@promise("runs:execution-asked")
async def test_a_question_a_limit_and_a_pause_go_on_in_the_next_execution(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY) as opened:
        question = Reply(calls=[("ask_person", {"question": "Which one?"})])
        steps = [question, mail("a@free.example"), mail("b@free.example")]
        budget = {"max_steps": 2, "on_exhausted": "ask"}
        handle = await opened.start(scripts.task(*steps, budget=budget))
        run = run_of(opened, handle)
        (asks,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [asks]
        await run.pause("a look first", by="ana")
        await run.answer(asks.id, "the blue one", by="ana")
        await continued(handle)
        assert (await run.status()).state == "paused"
        await run.resume(by="ana")
        (more,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [more]
        await run.top_up(by="ana", max_steps=3)
        result = await finished(opened, run, executions=4)
        assert (result.outcome, result.usage["steps"]) == ("completed", 4)
        assert sorted(opened.mailbox.sent()) == ["a@free.example", "b@free.example"]
        assert result.budget.max_steps == 5
        assert "the blue one" in json.dumps(opened.model.requests[-1])


@promise("subruns:asked-on")
async def test_a_delegation_that_people_are_asked_about_goes_on_with_its_shares_in_the_next_execution(
    temporal, tmp_path
):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY, profiles=PROFILES) as opened:
        child = scripts.task(mail("a@free.example"))
        handle = await opened.start(scripts.task(delegate(child), budget={"max_steps": 9, "max_wall_seconds": 600}))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        await run.top_up(by="ana", max_steps=20)
        await continued(handle)
        # A second request would be open by then.
        await asyncio.sleep(1)
        assert await asked(run) == [request]
        await run.approve(request.id, by="ana")
        result = await finished(opened, run, executions=2)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@free.example"])
        shares = [event.data["share"] async for event in run.events() if event.name == "subrun.started"]
        assert shares == [request.calls[0].arguments["share"]]


@promise("runs:execution-plan")
async def test_a_plan_goes_on_where_it_stood(temporal, tmp_path):
    async with engine(temporal, tmp_path, Scripts(), policy=OPEN_POLICY) as opened:
        read = {"tool": "mail.list_customers", "arguments": {"limit": 2}}
        send = {"tool": "mail.send_email", "arguments": {"to": "a@ask.example", "subject": "s", "body": "b"}}
        subject = "${steps.0.result.customers.0.name}"
        later = {"tool": "mail.send_email", "arguments": {"to": "b@free.example", "subject": subject, "body": "b"}}
        handle = await opened.start({"plan": {"steps": [read, send, later]}})
        run = run_of(opened, handle)
        (whole,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [whole]
        await run.pause("between the steps", by="ana")
        await run.approve(whole.id, by="ana")
        await continued(handle)
        await run.resume(by="ana")
        result = await finished(opened, run, executions=3)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@ask.example", "b@free.example"])
        assert [step["success"] for step in result.raw_outputs["steps"]] == [True] * 3
        assert (result.usage["plan_steps"], result.usage["tool_calls"]) == (3, 3)


@promise("runs:execution-plan")
@pytest.mark.thorough
@pytest.mark.parametrize("as_program", spread([True, False], 1))
async def test_what_is_rehearsed_goes_on_where_it_stood_and_is_held_to_its_forecast(
    temporal, tmp_path, sandbox, as_program
):
    source = """
page = await mail.list_customers(limit=1)
first = await mail.send_email(to="a@ask.example", subject=page["customers"][0]["name"], body="b")
later = await mail.send_email(to="b@free.example", subject="s", body=first["message_id"])
return [page, first, later]
"""
    read = {"tool": "mail.list_customers", "arguments": {"limit": 1}}
    subject = "${steps.0.result.customers.0.name}"
    first = {"tool": "mail.send_email", "arguments": {"to": "a@ask.example", "subject": subject, "body": "b"}}
    body = "${steps.1.result.message_id}"
    later = {"tool": "mail.send_email", "arguments": {"to": "b@free.example", "subject": "s", "body": body}}
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY, sandbox=sandbox) as opened:
        task = {"plan": {"steps": [read, first, later]}, "rehearse": True}
        if as_program:
            task = scripts.task(Reply(calls=[("run_program", {"code": source})]), rehearse=True)
        handle = await opened.start(task)
        run = run_of(opened, handle)
        (forecast,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [forecast]
        await run.pause("between the calls", by="ana")
        with sqlite3.connect(opened.mailbox.path, timeout=10) as connection:
            connection.execute("UPDATE customers SET name = 'renamed'")
        await run.approve(forecast.id, by="ana")
        await continued(handle)
        await run.resume(by="ana")
        (differs,) = await asked(run)
        assert "/subject: foretold" in differs.rule
        await continued(handle)
        assert await asked(run) == [differs]
        await run.approve(differs.id, by="ana")
        result = await finished(opened, run, executions=4)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@ask.example", "b@free.example"])
        names = [event.name async for event in run.events()]
        assert (names.count("action.rehearsed"), names.count("approval.asked")) == (2, 2)
        assert names.count("program.rehearsed") == as_program


def letter(to):
    step = {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}
    return {"title": to, "steps": [step]}


WAYS = {"plan": letter("a@ask.example"), "alternatives": [letter("b@ask.example")]}


@promise("runs:execution-rejected")
async def test_an_alternative_that_a_person_rejected_is_not_asked_about_again_in_the_next_execution(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY, profiles=PLANS) as opened:
        handle = await opened.start(scripts.task(Reply(calls=[("propose_plan", WAYS)])))
        run = run_of(opened, handle)
        requests = {request.proposal.plan_id: request for request in await asked(run, 2)}
        await run.reject(requests["p1"].id, by="ana")
        await continued(handle)
        await run.approve(requests["p2"].id, by="ana")
        result = await finished(opened, run, executions=2)
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["b@ask.example"])
        assert [event.name for event in result.events].count("approval.asked") == 2
        rejected = await handle.query("plan", {"plan_id": "p1"})
        assert (rejected["state"], rejected["reason"]) == ("FAILED", "rejected")


@promise("runs:execution-rejected-why")
@pytest.mark.parametrize("last", ["approve", "reject"])
async def test_what_a_person_said_against_an_alternative_is_told_in_the_next_execution(temporal, tmp_path, last):
    told = []

    def looks(talk):
        told.extend(talk.answers("propose_plan"))
        return Reply(calls=[("finish", {"summary": "done"})])

    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY, profiles=PLANS) as opened:
        handle = await opened.start(scripts.task(Reply(calls=[("propose_plan", WAYS)]), looks))
        run = run_of(opened, handle)
        requests = {request.proposal.plan_id: request for request in await asked(run, 2)}
        await run.reject(requests["p1"].id, by="ana", comment="a has left")
        await continued(handle)
        await (run.approve if last == "approve" else run.reject)(requests["p2"].id, by="bo", comment="b is fine")
        await finished(opened, run, executions=2)
    rejected = {"by": "ana", "comment": "a has left", "rejected": "p1"}
    also = {"by": "bo", "comment": "b is fine"} | ({"rejected": "p2"} if last == "reject" else {})
    assert told[0]["decided_by_people"] == [rejected, also]


@promise("runs:execution-program")
async def test_a_program_goes_on_where_it_waits(temporal, tmp_path, sandbox):
    def rules(conversation):
        runs = conversation.calls("run_program")
        if not runs:
            return Reply(calls=[("run_program", {"code": SEND})])
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": runs[-1].answer}, "success": True})])

    async with engine(temporal, tmp_path, rules, policy=OPEN_POLICY, sandbox=sandbox) as opened:
        handle = await opened.start({"text": "write to all"})
        run = run_of(opened, handle)
        (batch,) = await asked(run)
        await continued(handle, times=2)
        assert await asked(run) == [batch]
        await run.approve(batch.id, by="ana", args_digest=batch.args_digest)
        result = await finished(opened, run, executions=3)
        assert result.outcome == "completed", result
        assert sorted(opened.mailbox.sent()) == [f"c{n}@ask.example" for n in range(3)] + ["last@free.example"]
        assert (result.usage["code_runs"], result.usage["tool_calls"]) == (1, 5)
        # Other tests of this process share the sandbox, so only the jails of this program are counted.
        timeline = await opened.client.get_workflow_handle(handle.id).query("timeline", {"after": 0})
        (program,) = {each["data"]["program"] for each in timeline["events"] if each["name"] == "program.started"}
        assert await sandbox.forget(f"{program}/") == 0


@promise("effects:count-on")
async def test_a_lost_outcome_is_asked_about_once_and_sent_again_only_on_a_persons_word(temporal, tmp_path):
    path = toolbox_of(tmp_path, tmp_path / "mailbox.db", MAILBOX_DIE_BEFORE_SEND="1")
    data = json.loads(path.read_text(encoding="utf-8"))
    data["providers"]["mail"]["tools"]["send_email"] = {"safety": "write_safe", "idempotency_argument": "client_token"}
    path.write_text(json.dumps(data), encoding="utf-8")
    scripts = Scripts()
    options = {"policy": OPEN_POLICY, "toolbox": path, "request_deadline_seconds": 3}
    async with engine(temporal, tmp_path, scripts, **options) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example")))
        run = run_of(opened, handle)
        (lost,) = await asked(run)
        assert lost.kind == "outcome"
        await continued(handle, times=2)
        assert await asked(run) == [lost]
        assert opened.mailbox.requests("send_email") == 1
        await run.settle(lost.id, "retry", by="ana")
        result = await finished(opened, run, executions=3)
        assert [(effect.n, effect.state, effect.send) for effect in result.effects] == [(1, "applied", 2)]
        assert opened.mailbox.sent() == ["a@free.example"]
        assert result.usage["tool_calls"] == 1


@promise("runs:execution-asked")
@pytest.mark.thorough
async def test_a_servers_question_goes_on_and_its_call_is_made_once(temporal, tmp_path):
    servers = {"office": {"command": "python", "args": [str(SERVERS / "office.py"), "stdio"]}}
    toolbox = tmp_path / "toolbox.json"
    toolbox.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    scripts = Scripts()
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: allow}"
    options = {"policy": policy, "toolbox": toolbox, "request_deadline_seconds": 20}
    async with engine(temporal, tmp_path, scripts, **options) as opened:
        handle = await opened.start(scripts.task(Reply(calls=[("office__give_away", {"room": "cellar"})])))
        run = run_of(opened, handle)
        (question,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [question]
        await run.answer(question.id, {"sure": True}, by="ana")
        result = await finished(opened, run, executions=2)
        assert [(effect.n, effect.state) for effect in result.effects] == [(1, "applied")]
        assert "cellar given 1 times" in json.dumps(opened.model.requests[-1])


@promise("runs:execution-expiry")
async def test_a_request_expires_when_it_would_have_without_a_new_execution(temporal, tmp_path):
    policy = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask: [{tool: "mail.send_email", timeout: 6s}]
"""
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=policy) as opened:
        handle = await opened.start(scripts.task(mail("a@x.example")))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        await continued(handle, times=2)
        assert await asked(run) == [request]
        result = await finished(opened, run, executions=3)
        expired = [event for event in result.events if event.name == "approval.expired"]
        assert [event.at[:19] >= request.expires_at[:19] for event in expired] == [True]
        assert opened.mailbox.sent() == []


@promise("runs:execution-undo")
async def test_an_undo_at_the_end_that_is_asked_about_goes_on(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY) as opened:
        gives_up = Reply(calls=[("finish", {"summary": "I cannot", "outputs": {}, "success": False})])
        handle = await opened.start(scripts.task(mail("a@free.example"), mail("b@free.example"), gives_up))
        run = run_of(opened, handle)
        (last,) = await asked(run)
        await continued(handle)
        assert await asked(run) == [last]
        await run.approve(last.id, by="ana")
        (first,) = [request for request in await asked(run) if request.id != last.id] or await asked(run)
        await continued(handle)
        await run.approve((await asked(run))[0].id, by="ana")
        assert first.kind == "call"
        result = await finished(opened, run, executions=3)
        assert (result.outcome, result.error.type) == ("rolled_back", "Unfinished")
        assert [(effect.effect, effect.state) for effect in result.undone] == [(2, "compensated"), (1, "compensated")]
        assert opened.mailbox.requests("recall_email") == 2


@promise("effects:count-under-way")
async def test_a_run_near_a_limit_of_the_server_continues_while_a_call_is_under_way(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "URGENT_SIGNALS", 0)
    scripts, slow = Scripts(), {"MAILBOX_SLOW_SECONDS": "3"}
    options = {"policy": OPEN_POLICY, "env": slow, "request_deadline_seconds": 10}
    async with engine(temporal, tmp_path, scripts, **options) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example")))
        run = run_of(opened, handle)
        await opened.model.asked()
        async with asyncio.timeout(150):
            while opened.mailbox.requests("send_email") < 1:
                await asyncio.sleep(0.05)
        await continued(handle)
        result = await asyncio.wait_for(run.result(), 150)
        assert [(effect.n, effect.state) for effect in result.effects] == [(1, "applied")]
        assert (result.outcome, opened.mailbox.sent()) == ("completed", ["a@free.example"])
        assert opened.mailbox.requests("send_email") == 1


@promise("runs:execution-events")
async def test_events_that_an_activity_under_way_was_to_write_are_written_by_the_next_execution(
    temporal, tmp_path, monkeypatch
):
    monkeypatch.setattr(carrying, "URGENT_SIGNALS", 0)
    scripts, delays = Scripts(), [10]

    def slow_once(_):
        return mail("a@free.example").model_copy(update={"delay_s": delays.pop() if delays else 0})

    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY) as opened:
        handle = await opened.start(scripts.task(slow_once))
        run = run_of(opened, handle)
        await opened.model.asked()
        await continued(handle)
        assert (await finished(opened, run, executions=2)).outcome == "completed"
        async with open_store(database_url=None, home=opened.settings.home) as store:
            events = await store.events.of_run(f"{handle.id}/{handle.first_execution_run_id}")
        assert [event.n for event in events] == list(range(1, len(events) + 1))
        assert [event.name for event in events[:2]] == ["run.started", "search.run"]


def without_check(folder, address):
    """Return a toolbox whose mails nobody can look up: where an answer is lost, a person is asked."""
    given = json.loads(toolbox_of(folder, folder / "mailbox.db", address=address).read_text(encoding="utf-8"))
    del given["providers"]["mail"]["tools"]["send_email"]["verify"]
    own = folder / "own.json"
    own.write_text(json.dumps(given), encoding="utf-8")
    return own


@promise("effects:count-second-send")
async def test_a_run_that_continues_during_a_second_send_goes_on_with_that_one(
    temporal, tmp_path, monkeypatch, mailbox_at
):
    monkeypatch.setattr(carrying, "URGENT_SIGNALS", 0)
    scripts, address = Scripts(), await mailbox_at(MAILBOX_HANG_ON_SEND="1", MAILBOX_SLOW_SECONDS="4")
    options = {"policy": OPEN_POLICY, "toolbox": without_check(tmp_path, address), "request_deadline_seconds": 8}
    async with engine(temporal, tmp_path, scripts, **options) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example")))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        await handle.execute_update("decide", {"request_id": request.id, "verdict": "retry", "by": ANA})
        async with asyncio.timeout(150):
            while opened.mailbox.requests("send_email") < 2:
                await asyncio.sleep(0.05)
        await continued(handle)
        result = await asyncio.wait_for(run.result(), 150)
        assert [(effect.n, effect.state, effect.send) for effect in result.effects] == [(1, "applied", 2)]
        assert [event.name for event in result.events].count("effect.unknown") == 1
        assert opened.mailbox.requests("send_email") == 2


@promise("effects:late-answer-stands")
async def test_an_answer_that_came_before_a_person_spoke_stands_and_the_run_goes_on_with_it(
    temporal, tmp_path, mailbox_at
):
    scripts, address = Scripts(), await mailbox_at(MAILBOX_HANG_ON_SEND="1")
    options = {"policy": OPEN_POLICY, "toolbox": without_check(tmp_path, address), "request_deadline_seconds": 2}
    async with engine(temporal, tmp_path, scripts, **options) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example")))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        async with open_store(database_url=None, home=opened.settings.home) as store:
            effect_id = f"{handle.id}/{handle.first_execution_run_id}/1"
            await store.effects.resolve(effect_id, state=EffectState.APPLIED, outcome="it came late")
        await handle.execute_update("decide", {"request_id": request.id, "verdict": "did_not_happen", "by": ANA})
        result = await asyncio.wait_for(run.result(), 150)
        assert [(effect.n, effect.state) for effect in result.effects] == [(1, "applied")]
        names = [event.name for event in result.events]
        assert ("action.called" in names, "action.failed" in names) == (True, False)


@promise("approvals:remember-scopes")
async def test_what_is_remembered_for_the_run_holds_in_its_next_execution(temporal, tmp_path):
    scripts = Scripts()
    policy = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
    async with engine(temporal, tmp_path, scripts, policy=policy) as opened:
        question = Reply(calls=[("ask_person", {"question": "Go on?"})])
        handle = await opened.start(scripts.task(mail("a@one.example"), question, mail("b@one.example")))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        await run.approve(request.id, by=ANA, remember="run", remember_arguments="any")
        async with asyncio.timeout(150):
            while [found.kind for found in await run.pending()] != ["question"]:
                await asyncio.sleep(0.1)
        await continued(handle)
        (request,) = await asked(run)
        await run.answer(request.id, "yes", by=ANA)
        result = await finished(opened, run, executions=2)
        assert opened.mailbox.sent() == ["a@one.example", "b@one.example"]
        assert [event.name for event in result.events].count("approval.asked") == 2


@promise("approvals:remember-switch")
async def test_a_request_that_waits_across_a_switch_can_be_remembered(temporal, tmp_path):
    scripts = Scripts()
    policy = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
    async with engine(temporal, tmp_path, scripts, policy=policy) as opened:
        handle = await opened.start(scripts.task(mail("a@one.example"), mail("b@one.example")))
        run = run_of(opened, handle)
        await asked(run)
        await continued(handle)
        (request,) = await asked(run)
        answer = await run.approve(request.id, by=ANA, remember="always", remember_arguments="any")
        assert [(line["tool"], line["holds"]) for line in answer["remembered"]] == [("mail.send_email", "run")]
        await finished(opened, run, executions=2)
        assert opened.mailbox.sent() == ["a@one.example", "b@one.example"]


@promise("runs:execution-undo")
@pytest.mark.thorough
async def test_an_undo_that_waits_for_people_gives_way_and_is_sent_again(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(carrying, "URGENT_SIGNALS", 0)
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example"), mail("b@ask.example")))
        run = run_of(opened, handle)
        (call,) = await asked(run)
        undoing = asyncio.create_task(run.undo(by="ana"))
        await asked(run, 2)
        await continued(handle)
        undo = next(request for request in await asked(run, 2) if request.id != call.id)
        await run.approve(undo.id, by="ana")
        assert [effect.state for effect in await asyncio.wait_for(undoing, 150)] == ["compensated"]
        await run.approve(call.id, by="ana")
        assert (await asyncio.wait_for(run.result(), 150)).outcome == "completed"
        assert opened.mailbox.sent() == ["b@ask.example"]


@promise("effects:count-reset")
@pytest.mark.parametrize("at", spread(["in the next execution", "before it was written", "after it was written"], 1))
async def test_a_reset_to_either_side_of_the_switch_sends_nothing_again(temporal, tmp_path, at):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=OPEN_POLICY) as opened:
        handle = await opened.start(scripts.task(mail("a@free.example"), mail("b@ask.example")))
        run = run_of(opened, handle)
        (request,) = await asked(run)
        await continued(handle)
        await run.approve(request.id, by="ana")
        await asyncio.wait_for(run.result(), 150)
        execution = handle.first_execution_run_id
        if at == "in the next execution":
            execution = (await handle.describe()).run_id
        again = await reset(
            opened, handle, -1 if at.startswith("after") else -2 if at.startswith("before") else 0, execution
        )
        latest = run_of(opened, again)
        if at != "in the next execution":
            # Temporal may send the approval again by itself, which was for this very request.
            while await latest.is_open():
                for asks in await latest.pending():
                    await latest.approve(asks.id, by="ana")
                await asyncio.sleep(0.2)
        result = await asyncio.wait_for(latest.result(), 150)
        assert result.outcome == "completed", result
        assert sorted(opened.mailbox.sent()) == ["a@free.example", "b@ask.example"]
        assert opened.mailbox.requests("send_email") == 2
