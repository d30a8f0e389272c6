"""One event has one body: in the Result, in the queries, in the store and in the log."""

import asyncio
import json
import random
from contextlib import suppress

import jsonschema
import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowQueryFailedError, WorkflowUpdateFailedError
from temporalio.service import RPCError

from backstay.redaction.redactor import Redactor
from backstay.testing import Reply
from examples.mailbox.seed import seed
from store.opening import open_store
from tests.e2e.loop.test_endless import executions_of
from tests.engine import ROOT, Scripts, ended, engine, pending, replayer
from tests.logs import logged
from tests.requirements import promise
from tests.sizes import spread
from workflows.context import carrying

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
deny: [{tool: "mail.send_email", when: {to: {ends_with: "@denied.example"}}}]
ask: [{tool: "mail.send_email", when: {to: {ends_with: "@asked.example"}}}]
"""
SECRET = "sk-live-" + "4kQ9z" * 6
SCHEMA = json.loads((ROOT / "docs/schemas/timeline.json").read_text(encoding="utf-8"))
FINISH = Reply(calls=[("finish", {"summary": "done"})])
PROGRAM = """
async def main():
    await mail.list_customers(limit=1)
    return await mail.send_email(to="p@example.com", subject="s", body="b")
"""


def mail(to, body="b"):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": body})])


def step(tool="mail.send_email", **arguments):
    return {"tool": tool, "arguments": arguments}


PLAN = {
    "steps": [
        step("mail.list_customers", limit=1),
        step(to="${steps.0.result.customers.0.email}", subject="s", body="b"),
    ]
}
KINDS = {
    "calls": [
        Reply(calls=[("mail__list_customers", {"limit": 1})]),
        Reply(calls=[("mail__list_invoices", {"limit": 100})]),
        mail("no address"),
        mail("a@denied.example"),
        mail("a@asked.example"),
        mail("a@example.com", body=f"the key is {SECRET}"),
        FINISH,
    ],
    "limits": [Reply(calls=[("mail__list_customers", {"limit": 1})])] * 3,
    "program": [Reply(calls=[("run_program", {"code": PROGRAM})]), FINISH],
    "plan": [],
}

ACTIONS = (
    ("mail__list_customers", {"limit": 1}),
    ("mail__list_invoices", {"limit": 100}),
    ("mail__list_customers", {"limit": "many"}),
    ("mail__send_email", {"to": "no address", "subject": "s", "body": "b"}),
    ("mail__send_email", {"to": "a@denied.example", "subject": "s", "body": "b"}),
    ("mail__send_email", {"to": "a@asked.example", "subject": "s", "body": f"the key is {SECRET}"}),
    ("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"}),
    ("search_tools", {"query": "customers"}),
    ("read_result", {"ref": "0" * 40}),
    ("run_program", {"code": PROGRAM}),
    ("run_program", {"code": "return missing"}),
    ("ask_person", {"question": f"is it {SECRET}?"}),
    ("no_such_tool", {}),
)
"""What a model may do in one step: all kinds of calls, good and bad."""

VERDICTS = {"calls": ("reject", "approve"), "plan": ("approve",)}
"""Of what is asked: the second mail to be asked about holds a secret, and a rule looks at a reference of the plan."""


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, sandbox):
    scripts, folder = Scripts(), tmp_path_factory.mktemp("events")
    await seed(folder / "mailbox.db", customers=20, invoices=100)
    # Some of its runs have a lower limit of events, which a replay at the end would not know.
    async with engine(temporal, folder, scripts, policy=POLICY, sandbox=sandbox, replayed=False) as running:
        yield running, scripts


async def run(opened, kind):
    running, scripts = opened
    more = {"budget": {"max_steps": 2}} if kind == "limits" else {}
    task = {"plan": PLAN} if kind == "plan" else scripts.task(*KINDS[kind], **more)
    handle = await running.start({**task, "user_id": "ana", "session_id": "s1"})
    for verdict in VERDICTS.get(kind, ()):
        (request,) = await pending(handle)
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "bo"})
    return handle, await ended(handle)


async def stored(running, result):
    async with open_store(database_url=None, home=running.settings.home) as store:
        events = await store.events.of_run(f"{result['workflow_id']}/{result['run_id']}")
    return [event.plain() for event in events]


def told_in(log, workflow_id):
    """Return the events of a run from the lines of a worker's log."""
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = [line for line in lines if line["logger"] == "backstay.timeline" and line["task_id"] == workflow_id]
    of_log = {"logger", "level", "timestamp", "event"}
    return [{"name": line["event"]} | {name: line[name] for name in line if name not in of_log} for line in told]


@promise("docs:event-body")
@pytest.mark.parametrize("kind", spread(list(KINDS), 2))
async def test_every_event_is_the_same_in_the_result_the_store_the_log_and_the_schema(opened, kind):
    with logged(Redactor(())) as log:
        handle, result = await run(opened, kind)
    await assert_same_everywhere(opened[0], handle, result["events"], log)
    assert (len(result["events"]), result["events_total"]) == (min(20, last := result["events"][-1]["n"]), last)


async def assert_same_everywhere(running, handle, last, log):
    """Compare the last events, which a Result holds, and all of the store with the log and the schema."""
    events = await stored(running, {"workflow_id": handle.id, "run_id": handle.first_execution_run_id})
    assert events[-len(last) :] == last
    assert sorted(told_in(log, handle.id), key=lambda event: event["n"]) == events
    jsonschema.validate({"events": events}, SCHEMA)
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    told = {(event["task_id"], event["user_id"], event["session_id"]) for event in events}
    assert told == {(handle.id, "ana", "s1")}
    assert SECRET not in json.dumps(events) + log.getvalue()


@promise("docs:event-body")
@pytest.mark.thorough
@pytest.mark.parametrize("seed", spread(range(8), 2))
async def test_whatever_a_run_does_its_events_are_the_same_everywhere(opened, seed, monkeypatch):
    running, scripts = opened
    dice = random.Random(seed)
    # Every second run goes on in new executions.
    monkeypatch.setattr(carrying, "MOST_EVENTS", 25 if seed % 2 else carrying.MOST_EVENTS)
    replies = [Reply(calls=dice.sample(ACTIONS, dice.randint(1, 3))) for _ in range(8)]
    task = scripts.task(
        *replies, FINISH, budget={"max_steps": dice.choice((6, 20)), "on_exhausted": dice.choice(("finalize", "fail"))}
    )
    result, last = None, dice.choice(("nothing", "undo", "cancel", "stop"))
    with logged(Redactor(())) as log, suppress(WorkflowFailureError):
        handle = await running.start({**task, "user_id": "ana", "session_id": "s1"})
        ending = asyncio.create_task(ended(handle))
        while not ending.done():
            await asyncio.sleep(0.1)
            with suppress(RPCError, WorkflowUpdateFailedError, WorkflowQueryFailedError):
                await steer(handle, dice, last)
        result = await ending
    events = (result or await handle.query("result") or await handle.query("timeline"))["events"]
    await assert_same_everywhere(running, handle, events, log)
    executions = await executions_of(running, handle.id)
    if seed % 2 and len(events) > 20:
        assert len(executions) > 1
    for history in executions:
        await replayer(sandboxed=False).replay_workflow(history)


async def steer(handle, dice, last):
    """Do what people do to a run: decide, answer, pause, and end it in one of the ways there are."""
    for request in await handle.query("pending"):
        decision = {"request_id": request["id"], "by": "bo"}
        if request["kind"] == "question":
            decision |= {"verdict": "answer", "answer": f"no: {SECRET}"}
        else:
            verdict = dice.choice(("approve", "reject"))
            decision |= {"verdict": verdict, "stop": verdict == "reject" and last == "stop"}
        await handle.execute_update("decide", decision)
    status = await handle.query("status")
    step = status["step"]
    if status["state"] == "paused":
        await handle.execute_update("resume", {"by": "bo"})
    elif step == 2:
        await handle.execute_update("pause", {"reason": "a look", "by": "bo"})
    if step > 4 and last == "undo":
        await handle.execute_update("undo", {"by": "bo"})
    if step > 4 and last == "cancel":
        await handle.cancel()


@promise("docs:events-undo")
async def test_the_events_of_an_undo_follow_those_of_the_run_and_are_the_same_everywhere(opened):
    running, _ = opened
    with logged(Redactor(())) as log:
        handle, result = await run(opened, "program")
        undoing = await running.client.start_workflow(
            "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=running.settings.task_queue
        )
        undone = await ended(undoing)
    assert undone["outcome"] == "rolled_back"
    assert undone["events"][0]["n"] == result["events"][-1]["n"] + 1
    await assert_same_everywhere(running, handle, undone["events"], log)


@promise("docs:safenet-all")
@pytest.mark.thorough
async def test_a_call_is_told_after_it_with_what_it_was_asked_and_what_came_back(opened):
    _, result = await run(opened, "calls")
    calls = [event for event in result["events"] if event["name"].startswith("action.")]
    read, large, bad, denied, rejected, sent = calls

    assert (read["name"], read["mcp_name"], read["step_index"]) == ("action.called", "mcp.action.called", 1)
    assert (read["data"]["provider"], read["data"]["arguments"]) == ("mail", {"limit": 1})
    assert read["text"].startswith('mail.list_customers -> {"customers":[{"email":"')
    assert large["text"] == "mail.list_invoices -> 100 rows, 10,973 bytes"
    assert [event["name"] for event in (bad, denied, rejected)] == ["action.failed"] * 3
    assert "is not an e-mail address" in bad["text"]
    assert (denied["data"]["type"], rejected["data"]["type"]) == ("Denied", "Rejected")
    assert "deny[0]" in denied["text"]
    assert (sent["name"], sent["data"]["effect"]) == ("action.called", 2)
    digests = [event["data"]["summary_ref"] for event in result["events"] if event["name"] == "summary.created"]
    assert digests == [large["data"]["summary_ref"]]


@promise("docs:safenet-all")
async def test_a_plan_tells_the_values_that_were_sent_and_not_its_references(opened):
    _, result = await run(opened, "plan")
    (sent,) = [event for event in result["events"] if event["data"].get("tool") == "mail.send_email"]

    assert "steps." not in str(sent["data"]["arguments"])
    assert "@" in sent["data"]["arguments"]["to"]


@promise("docs:events-model-calls")
async def test_a_model_call_tells_its_tokens_and_what_they_cost(opened):
    _, result = await run(opened, "limits")
    asked = [event["data"] for event in result["events"] if event["name"] == "model.asked"]
    used = result["usage"]["models"]["scripted"]

    assert [data["model"] for data in asked] == ["scripted"] * 2
    # The closing summary is asked for beside the steps.
    assert sum(data["input_new_tokens"] for data in asked) < used["input_new_tokens"]
    assert 0 < sum(data["cost_usd"] for data in asked) < used["cost_usd"]
    assert all({"input_cached_tokens", "output_tokens"} <= data.keys() for data in asked)
