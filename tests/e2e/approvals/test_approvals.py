"""Requests and decisions: what is accepted, what is refused, and what becomes of the calls."""

import asyncio
import json
import sys
import uuid
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio import activity
from temporalio.client import WorkflowUpdateFailedError

from activities.records import Records
from backstay import calls
from backstay.testing import Reply
from tests.engine import Scripts, differing, ended, engine, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
deny: [{tool: "mail.send_email", when: {to: {ends_with: "@denied.example"}}}]
ask:
  - {tool: "mail.send_email", when: {to: {ends_with: "@soon.example"}}, timeout: 1s}
  - {tool: "mail.send_email", when: {to: {ends_with: "@fail.example"}}, timeout: 1s, on_expiry: fail}
  - {tool: "mail.send_email", when: {to: {ends_with: "@again.example"}}, timeout: 1s, on_expiry: escalate}
"""
MOMENT = 'ask: [{tool: "mail.send_email", timeout: 5s, on_expiry: fail}]'


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        opened = await stack.enter_async_context(
            engine(temporal, tmp_path_factory.mktemp("approvals"), scripts, policy=POLICY)
        )
        yield opened, scripts


def mails(*recipients, body="Hello", text="I write."):
    return Reply(text=text, calls=[("mail__send_email", {"to": to, "subject": "s", "body": body}) for to in recipients])


def sent(opened, handle):
    return [
        json.loads(row[0])
        for row in opened.mailbox.rows(
            "SELECT arguments FROM requests WHERE tool = 'send_email' AND effect_id LIKE ? ORDER BY id",
            f"{handle.id}/%",
        )
    ]


def recipients(opened, handle):
    return sorted(mail["to"] for mail in sent(opened, handle))


async def decide(handle, **approval):
    return await handle.execute_update("decide", {"request_id": "r1", "by": "ana", **approval})


async def request_of(handle, request_id):
    """Wait until this request is open."""
    async with asyncio.timeout(150):
        while not (found := [request for request in await handle.query("pending") if request["id"] == request_id]):
            await asyncio.sleep(0.1)
    return found[0]


async def refusal(update):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await update
    return caught.value.cause.type, caught.value.cause.message


async def events(handle, name):
    timeline = await handle.query("timeline", {"after": 0})
    return [event for event in timeline["events"] if event["name"] == name]


@promise("approvals:repeat")
async def test_a_decision_repeated_under_its_event_id_gets_the_stored_answer_and_no_other_decision_does(shared):
    opened, scripts = shared
    handle = await opened.start(
        scripts.task(mails("a@x.example"), Reply(calls=[("ask_person", {"question": "Go on?"})]))
    )
    await pending(handle)
    first = await decide(handle, verdict="approve", event_id="slack-1")
    assert await decide(handle, verdict="approve", event_id="slack-1") == first
    assert (await refusal(decide(handle, verdict="reject", event_id="slack-1")))[0] == "DecisionRefused"
    kind, message = await refusal(decide(handle, verdict="approve", by="bo"))
    assert kind == "DecisionRefused"
    assert "decided already" in message
    assert "ana" in message
    assert (await request_of(handle, "r2"))["kind"] == "question"
    assert await decide(handle, verdict="approve", event_id="slack-1") == first
    await decide(handle, request_id="r2", verdict="answer", answer=True)
    assert (await ended(handle))["outcome"] == "completed"
    assert recipients(opened, handle) == ["a@x.example"]


@promise("approvals:twice-at-once")
async def test_the_same_event_arriving_twice_at_once_is_one_decision(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example")))
    await pending(handle)
    changed = {
        "verdict": "modify",
        "event_id": "e",
        "calls": {"0": {"verdict": "modify", "arguments": {"subject": "t"}}, "1": {"verdict": "approve"}},
    }
    answers = await asyncio.gather(decide(handle, **changed), decide(handle, **changed))
    assert answers[0] == answers[1]
    assert (await ended(handle))["outcome"] == "completed"
    assert sorted(mail["subject"] for mail in sent(opened, handle)) == ["s", "t"]


@promise("approvals:verdicts")
async def test_what_does_not_fit_the_request_is_refused_by_field_and_the_request_stays_open(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example")))
    (request,) = await pending(handle)
    for said, field in (
        ({"verdict": "approve", "request_id": "r99"}, "request_id: no request r99; open requests: r1"),
        ({"verdict": "approve", "args_digest": "0" * 64}, "args_digest: stale"),
        ({"verdict": "answer", "answer": 1}, "verdict: answer is not one of approve, modify, reject"),
        ({"verdict": "maybe"}, "verdict"),
        ({"verdict": "approve", "by": ""}, "by"),
        ({"verdict": "approve", "b": "y"}, "b: unknown field"),
        ({"verdict": "approve", "stop": True}, "stop: only with verdict reject"),
        ({"verdict": "approve", "remember": "forever"}, "remember"),
        ({"verdict": "approve", "calls": {"7": {"verdict": "approve"}}}, "calls.7: no such call"),
        ({"verdict": "modify"}, "calls: modify needs"),
        ({"verdict": "approve", "calls": {"0": {"verdict": "modify"}}}, "calls.0.arguments: required"),
        ({"verdict": "approve", "proof": "1.00"}, "proof:"),
    ):
        kind, message = await refusal(decide(handle, **said))
        assert kind in {"DecisionRefused", "DecisionInvalid", "NotVerified"}
        assert field in message, said
    assert differing(await handle.query("pending"), [request]) == []
    await decide(handle, verdict="approve", args_digest=request["args_digest"])
    assert (await ended(handle))["outcome"] == "completed"
    assert recipients(opened, handle) == ["a@x.example"]


@promise("approvals:partial")
async def test_calls_of_a_batch_are_decided_one_by_one_in_one_request(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example", "b@x.example", "c@x.example", "d@x.example")))
    (request,) = await pending(handle)
    assert request["kind"] == "batch"
    assert [call["arguments"]["to"][0] for call in request["calls"]] == ["a", "b", "c", "d"]
    verdicts = {
        "2": {"verdict": "reject"},
        "3": {"verdict": "modify", "arguments": {"to": "changed@x.example"}},
    }
    await decide(handle, verdict="approve", calls=verdicts, args_digest=request["args_digest"], comment="not c")
    result = await ended(handle)
    assert recipients(opened, handle) == ["a@x.example", "b@x.example", "changed@x.example"]
    assert result["outcome"] == "completed"
    told = opened.model.requests[-1]["messages"]
    answers = [message["content"] for message in told if message["role"] == "tool"]
    assert "rejected by ana: not c" in answers[2]
    assert "error" not in answers[3]


@promise("approvals:answer")
async def test_a_rejection_is_an_answer_to_the_model_which_may_go_on(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example"), mails("b@x.example")))
    await pending(handle)
    await decide(handle, verdict="reject", comment="use b")
    await request_of(handle, "r2")
    await decide(handle, request_id="r2", verdict="approve")
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert recipients(opened, handle) == ["b@x.example"]


@promise("approvals:stop")
async def test_a_rejection_with_stop_ends_the_run_as_rejected_when_nothing_was_done(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example")))
    await pending(handle)
    await decide(handle, verdict="reject", stop=True, comment="never")
    result = await ended(handle)
    assert result["outcome"] == "rejected"
    assert result["error"] == {"type": "Rejected", "message": "rejected by ana: never"}
    assert sent(opened, handle) == []


@promise("approvals:modify")
async def test_a_changed_call_is_validated_and_ruled_again(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example")))
    await pending(handle)
    for arguments, said in (
        ({"to": "a@denied.example"}, "denied by deny[0]"),
        ({"to": 7}, "calls.0.arguments"),
        ({"subject": None}, "calls.0.arguments"),
    ):
        changes = {"0": {"verdict": "modify", "arguments": arguments}}
        kind, message = await refusal(decide(handle, verdict="modify", calls=changes))
        assert kind == "DecisionRefused"
        assert said in message, message
    changes = {"0": {"verdict": "modify", "arguments": {"subject": "better"}}}
    await decide(handle, verdict="modify", calls=changes)
    assert (await ended(handle))["outcome"] == "completed"
    assert [(mail["to"], mail["subject"]) for mail in sent(opened, handle)] == [("a@x.example", "better")]


@promise("approvals:modify-redacted")
async def test_a_changed_call_keeps_what_the_person_could_not_see(shared):
    opened, scripts = shared
    secret = "gh" + "p_" + "k3Jx9QpL2mN8vB5tR7wY4zA6cD1eF0gH2iJ3"
    call = {"to": "a@x.example", "subject": f"two\nlines {secret}", "body": "long " * 1000}
    handle = await opened.start(scripts.task(Reply(calls=[("mail__send_email", call)])))
    (request,) = await pending(handle)
    shown = request["calls"][0]["arguments"]
    assert "⟦secret:" in shown["subject"]
    assert shown["subject"].startswith("two⏎lines ")
    assert request["calls"][0]["clipped"] > 0 or "$ref" in shown["body"]
    changes = {"0": {"verdict": "modify", "arguments": {**shown, "to": "b@x.example"}}}
    await decide(handle, verdict="modify", calls=changes, args_digest=request["args_digest"])
    assert (await ended(handle))["outcome"] == "completed"
    (mail,) = sent(opened, handle)
    assert mail == {**call, "to": "b@x.example", "client_token": mail["client_token"]}
    history = (await handle.fetch_history()).to_json()
    assert secret not in history
    assert secret not in json.dumps(opened.model.requests[1:])


@promise("approvals:expiry")
async def test_expiry_rejects_fails_or_asks_once_more_as_the_rule_says(shared):
    opened, scripts = shared
    soon = await opened.start(scripts.task(mails("a@soon.example"), Reply(calls=[("ask_person", {"question": "?"})])))
    fail = await opened.start(scripts.task(mails("a@fail.example")))
    again = await opened.start(scripts.task(mails("a@again.example")))
    failed = await ended(fail)
    assert (failed["outcome"], failed["error"]["type"]) == ("failed", "Expired")
    assert (await ended(again))["outcome"] == "completed"
    names = [event["name"] for event in (await again.query("result"))["events"]]
    assert names.index("approval.escalated") < names.index("approval.expired")
    await request_of(soon, "r2")
    assert "nobody decided" in json.dumps(opened.model.requests)
    assert (await refusal(decide(soon, verdict="approve")))[0] == "Expired"
    await decide(soon, request_id="r2", verdict="reject")
    assert (await ended(soon))["outcome"] == "completed"
    assert [sent(opened, handle) for handle in (soon, fail, again)] == [[], [], []]


@promise("approvals:expiry-moment")
async def test_a_decision_that_is_accepted_in_the_moment_in_which_its_request_expires_counts(
    temporal, tmp_path, monkeypatch
):
    show, looked = Records.show, asyncio.Queue[str]()

    async def shown(records, run, payload, source, *more):
        if activity.info().activity_type == "hide_secrets":
            # The look at what a person typed is answered by this test, when it wants.
            looked.put_nowait(activity.info().activity_id)
            activity.raise_complete_async()
        return await show(records, run, payload, source, *more)

    monkeypatch.setattr(Records, "show", shown)
    scripts, given = Scripts(), {"policy": MOMENT, "task_queue": f"moment-{uuid.uuid4()}", "cached": 0}
    async with engine(temporal, tmp_path, scripts, **given) as opened:
        handle = await opened.start(scripts.task(mails("a@x.example")))
        await pending(handle)
        deciding = asyncio.create_task(decide(handle, verdict="approve", comment="go ahead"))
        looking = await asyncio.wait_for(looked.get(), 150)
    # No worker is there, so that the run is told at once that the time is over and that there is no secret.
    await happened(handle, "timer_fired")
    look = temporal.get_async_activity_handle(workflow_id=handle.id, run_id=None, activity_id=looking)
    await look.complete(calls.RedactedInput(typed={"comment": "go ahead"}))
    async with engine(temporal, tmp_path, scripts, **given) as opened:
        assert (await deciding)["state"] == "decided"
        result = await ended(handle)
        assert (result["outcome"], recipients(opened, handle)) == ("completed", ["a@x.example"])
        assert "approval.expired" not in [event["name"] for event in result["events"]]


async def happened(handle, kind):
    """Wait until the history of a run holds such an event."""
    async with asyncio.timeout(150):
        while not any(event.HasField(f"{kind}_event_attributes") for event in (await handle.fetch_history()).events):
            await asyncio.sleep(0.1)


@promise("runs:ask-person")
async def test_a_question_is_answered_with_any_json_and_can_end_the_run(shared):
    opened, scripts = shared
    asks = Reply(calls=[("ask_person", {"question": "Which\u202e one?\nSay"})])
    handle = await opened.start(scripts.task(asks))
    (request,) = await pending(handle)
    assert (request["kind"], request["question"]) == ("question", "Which<U+202E> one?⏎Say")
    assert "answer: required" in (await refusal(decide(handle, verdict="answer")))[1]
    await decide(handle, verdict="answer", answer={"pick": [1, None, "ü"]})
    assert (await ended(handle))["outcome"] == "completed"
    last = opened.model.requests[-1]["messages"]
    assert json.loads(next(m["content"] for m in last if m["role"] == "tool"))["answer"] == {"pick": [1, None, "ü"]}

    handle = await opened.start(scripts.task(asks))
    await pending(handle)
    await decide(handle, verdict="reject", stop=True)
    assert (await ended(handle))["outcome"] == "rejected"


@promise("budget:wall")
async def test_wall_time_stands_still_while_only_a_person_is_awaited(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example"), budget={"max_wall_seconds": 600}))
    await pending(handle)
    before = (await handle.query("budget"))["active_seconds"]
    for _ in range(3):
        assert (await refusal(decide(handle, verdict="approve", request_id="r9")))[0] == "DecisionRefused"
        await handle.signal("approval", {"wake": "the clock of the run"})
    async with asyncio.timeout(150):
        while len(await events(handle, "approval.refused")) < 3:
            await asyncio.sleep(0.1)
    assert (await handle.query("budget"))["active_seconds"] == before
    await decide(handle, verdict="approve")
    assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:temporal")
async def test_the_temporal_command_line_decides(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example")))
    (request,) = await pending(handle)
    approval = json.dumps({"request_id": request["id"], "verdict": "approve", "by": "ops"})
    binary = str(Path(sys.executable).parent / "temporal")
    address = opened.client.service_client.config.target_host
    process = await asyncio.create_subprocess_exec(
        binary, "workflow", "update", "execute", "--address", address, "--workflow-id", handle.id,
        "--name", "decide", "--input", approval, "-o", "json",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await asyncio.wait_for(process.communicate(), 150)
    assert process.returncode == 0, output
    assert b'"decided"' in output
    assert (await ended(handle))["outcome"] == "completed"
    assert recipients(opened, handle) == ["a@x.example"]


@promise("effects:approval-once")
async def test_an_approval_is_used_once(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mails("a@x.example"), mails("a@x.example")))
    (first,) = await pending(handle)
    await decide(handle, verdict="approve")
    assert (await request_of(handle, "r2"))["args_digest"] == first["args_digest"]
    assert len(sent(opened, handle)) == 1
    await decide(handle, request_id="r2", verdict="reject")
    assert (await ended(handle))["outcome"] == "completed"
    assert len(sent(opened, handle)) == 1


@promise("policy:floor")
async def test_a_task_may_only_tighten_the_policy(shared):
    opened, scripts = shared
    loose = {"allow": ["*"], "default": {"write_safe": "allow", "restricted_write": "allow"}}
    handle = await opened.start(scripts.task(mails("a@x.example"), policy=loose))
    (request,) = await pending(handle)
    assert request["rule"] == "default: write_safe asks"
    await decide(handle, verdict="reject")
    await ended(handle)
    handle = await opened.start(scripts.task(mails("a@x.example"), policy={"deny": ["mail.send_email"]}))
    assert (await ended(handle))["outcome"] == "completed"
    assert "denied by the policy: task's own deny[0]" in json.dumps(opened.model.requests[-1])
    handle = await opened.start(scripts.task(mails("a@denied.example"), policy=loose))
    assert (await ended(handle))["outcome"] == "completed"
    assert "denied by the policy: deny[0]" in json.dumps(opened.model.requests[-1])
    assert sent(opened, handle) == []
