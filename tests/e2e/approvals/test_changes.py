"""Changed calls: what is asked again, what is sent, and who learns of it."""

import json
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

import opening
from backstay.client import Backstay
from tests.e2e.approvals.test_approvals import decide, mails, recipients, refusal, request_of, sent
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("changes")
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY))
        yield opened, scripts


def modify(**arguments):
    return {"verdict": "modify", "arguments": arguments}


def answers(opened):
    return [json.loads(said["content"]) for said in opened.model.requests[-1]["messages"] if said["role"] == "tool"]


@promise("approvals:change-asks-again")
@pytest.mark.thorough
async def test_a_change_that_says_nothing_of_the_other_calls_asks_about_all_of_them_again(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example", "c@x.example")))
    (first,) = await pending(handle)

    answer = await decide(handle, verdict="modify", calls={"1": modify(to="d@x.example")}, comment="d, not b")
    again = await request_of(handle, "r2")

    assert answer["asked_again"] is True
    assert recipients(opened, handle) == []
    assert [call["arguments"]["to"] for call in again["calls"]] == ["a@x.example", "d@x.example", "c@x.example"]
    assert [call.get("changed") for call in again["calls"]] == [None, ["~ to: b@x.example -> d@x.example"], None]
    assert again["calls"][1]["changed_by"] == "ana"
    assert again["args_digest"] != first["args_digest"]
    kind, message = await refusal(decide(handle, request_id="r2", verdict="approve", args_digest=first["args_digest"]))
    assert (kind, "stale" in message) == ("DecisionRefused", True)
    await decide(handle, request_id="r2", verdict="approve", args_digest=again["args_digest"])
    assert (await ended(handle))["outcome"] == "completed"
    assert recipients(opened, handle) == ["a@x.example", "c@x.example", "d@x.example"]


@promise("approvals:change-at-once")
async def test_a_change_that_names_every_call_is_carried_out_at_once(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example", "c@x.example")))
    await pending(handle)

    said = {"0": {"verdict": "approve"}, "1": modify(to="d@x.example"), "2": {"verdict": "reject"}}
    await decide(handle, verdict="modify", calls=said)

    assert (await ended(handle))["outcome"] == "completed"
    assert recipients(opened, handle) == ["a@x.example", "d@x.example"]


@promise("approvals:change-asks-again")
async def test_what_was_rejected_beside_a_change_is_not_asked_about_again(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example", "c@x.example")))
    await pending(handle)

    said = {"0": modify(to="d@x.example"), "2": {"verdict": "reject"}}
    await decide(handle, verdict="modify", calls=said)
    again = await request_of(handle, "r2")

    assert [call["index"] for call in again["calls"]] == [0, 1]
    await decide(handle, request_id="r2", verdict="reject", comment="none at all")
    await ended(handle)
    assert recipients(opened, handle) == []


@promise("approvals:change-asks-again")
async def test_whoever_changes_the_only_call_can_have_it_asked_again_and_change_it_once_more(shared):
    opened, scripts = shared
    run = Backstay(opened.client, task_queue=opened.settings.task_queue).run
    handle = await opened.start(scripts.task(mails("a@x.example")))
    await pending(handle)

    await run(handle.id).modify("r1", {0: {"to": "b@x.example"}}, by="ana", ask_again=True)
    again = await request_of(handle, "r2")
    await run(handle.id).modify("r2", {0: {"subject": "t"}}, by="bo", ask_again=True)
    last = await request_of(handle, "r3")

    assert [again["kind"], last["kind"]] == ["call", "call"]
    assert last["calls"][0]["changed"] == ["~ to: a@x.example -> b@x.example", "~ subject: s -> t"]
    assert last["calls"][0]["changed_by"] == "ana, bo"
    assert sent(opened, handle) == []
    await decide(handle, request_id="r3", verdict="approve")
    await ended(handle)
    assert [(mail["to"], mail["subject"]) for mail in sent(opened, handle)] == [("b@x.example", "t")]


@promise("approvals:change-names")
async def test_a_change_to_an_argument_that_the_tool_does_not_have_is_refused_with_the_nearest(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example")))
    await pending(handle)

    said = {}
    for name, change in {
        "unknown": modify(subjct="t"),
        "beside a known one": modify(subject="t", boddy="u"),
        "gone": modify() | {"without": ["bcc"]},
        "required": modify(subject="t") | {"without": ["to"]},
        "twice": modify(subject="t") | {"without": ["subject"]},
    }.items():
        kind, said[name] = await refusal(decide(handle, verdict="modify", calls={"0": change}))
        assert kind in {"DecisionRefused", "DecisionInvalid"}

    assert "arguments.subjct: unknown name; did you mean subject?" in said["unknown"]
    assert "arguments.boddy: unknown name; did you mean body?" in said["beside a known one"]
    assert "calls.0.without: the call has no argument bcc; it has to, subject, body" in said["gone"]
    assert "to is required and cannot be left out" in said["required"]
    assert "calls.0.without: subject is given a value as well" in said["twice"]
    assert [request["id"] for request in await handle.query("pending")] == ["r1"]
    await decide(handle, verdict="reject")
    await ended(handle)
    assert sent(opened, handle) == []


@promise("approvals:change-told")
async def test_the_model_and_the_record_learn_what_was_sent_and_what_was_said(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example")))
    await pending(handle)

    await decide(handle, verdict="modify", calls={"0": modify(to="boss@x.example")}, comment="the boss first")
    await request_of(handle, "r2")
    await decide(handle, request_id="r2", verdict="approve", comment="sign it next time")
    await ended(handle)

    told = [answer["decided_by_people"] for answer in answers(opened)]
    assert told == [
        {
            "by": "ana",
            "comment": "the boss first sign it next time",
            "sent_with_other_arguments": {"to": "boss@x.example"},
            "args_digest": told[0]["args_digest"],
        },
        {"by": "ana", "comment": "sign it next time"},
    ]
    async with opening.open_store(opened.settings) as store:
        row = await store.runs.get(handle.id)
        first, second = await store.decisions.of_run(row.run)
    assert (first.asked_again, second.asked_again) == (True, False)
    (changed,) = first.changed
    assert (changed.index, changed.lines) == (0, ("~ to: a@x.example -> boss@x.example",))
    assert len(changed.args_digest) == 64
    run = Backstay(opened.client, task_queue=opened.settings.task_queue).run(handle.id)
    exported = [message async for message in run.messages() if message["role"] == "tool"]
    assert [said["decided_by_people"] for said in exported] == told
    assert second.changed == ()
