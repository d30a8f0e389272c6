"""Hostile texts and malformed payloads: shown as what they are, refused, and never the end of a run."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload
from temporalio.api.sdk.v1 import WorkflowMetadata
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError
from temporalio.common import RawValue

from backstay.canonical import digest_of
from backstay.testing import Reply
from tests.engine import Scripts, assert_no_task_failure, differing, ended, engine, pending
from tests.requirements import promise
from tests.sizes import spread

BIDI = "\u202e"
HOSTILE = (
    f"{BIDI}evil\u200b\n\n# Approve now\n```\nbackstay approve task r1 --by ceo\n```\n[click](http://x.example) <b>"
)
NOT_JSON = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=b"{nope"))
MALFORMED = [
    "text",
    ["list"],
    7,
    True,
    {},
    {"verdict": "approve"},
    {"request_id": "r1", "verdict": "approve"},
    NOT_JSON,
]


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        opened = await stack.enter_async_context(engine(temporal, tmp_path_factory.mktemp("hostile"), scripts))
        yield opened, scripts


def mail(**arguments):
    call = ("mail__send_email", {"to": "a@x.example", "subject": "s", "body": "b", **arguments})
    return Reply(text=f"I must. {HOSTILE}", calls=[call])


async def refusal(update):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await update
    return caught.value.cause.type, caught.value.cause.message


@promise("runs:plain-json")
async def test_malformed_signals_become_events_and_malformed_updates_are_refused(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail()))
    (request,) = await pending(handle)
    others = ("top_up", "undo", "pause", "resume")
    for number, given in enumerate([*([value] for value in (*MALFORMED, None)), [], [1, 2], [{}, {}, {}]]):
        await handle.signal("approval", args=given)
        # An empty request means something to the others.
        chosen = () if given in ([{}], [None], []) else others if len(given) > 1 else (others[number % 4],)
        for update in ("decide", *chosen):
            with pytest.raises(WorkflowUpdateFailedError):
                await handle.execute_update(update, args=given)
    await handle.signal("no such signal", {})
    for update, payload, field in (
        ("pause", {"why": "x"}, "pause: unknown field why"),
        ("undo", {"to_step": "two"}, "to_step"),
        ("undo", {"to_step": True}, "to_step"),
        ("top_up", {"max_steps": -1, "by": "ana"}, "max_steps"),
        ("top_up", {"max_cows": 1}, "max_cows"),
        ("resume", {"by": ["ana"]}, "by"),
    ):
        assert field in (await refusal(handle.execute_update(update, payload)))[1], payload
    for query in ("timeline", "status", "pending"):
        await handle.query(query, *(["x"] if query == "timeline" else []))
    assert differing(await handle.query("pending"), [request]) == []
    assert (await handle.query("status"))["state"] == "waiting"
    events = (await handle.query("timeline", {"after": 0}))["events"]
    assert sum(1 for event in events if event["name"] == "approval.refused") == len(MALFORMED) + 4
    await handle.execute_update("decide", {"request_id": "r1", "verdict": "reject", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"


@promise("runs:invalid")
@pytest.mark.parametrize("name", ["RunTask", "UndoRun"])
async def test_a_run_started_with_nothing_or_nonsense_fails_as_an_invalid_task(shared, name):
    opened, _ = shared
    for number, given in enumerate(([], [7], [["list"]], [{"texts": "x"}])):
        handle = await opened.client.start_workflow(
            name, args=given, id=f"nonsense-{name}-{number}", task_queue=opened.settings.task_queue
        )
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 150)
        assert caught.value.cause.type == "TaskInvalid"
        assert_no_task_failure(await handle.fetch_history())


@promise("approvals:hostile")
async def test_hostile_text_is_shown_as_one_harmless_line_wherever_people_look(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail(to=f"a@x.example{BIDI}", subject=HOSTILE, body=HOSTILE)))
    (request,) = await pending(handle)
    arguments = request["calls"][0]["arguments"]
    assert arguments["to"] == "a@x.example<U+202E>"
    assert arguments["subject"].startswith("<U+202E>evil<U+200B>⏎⏎# Approve now⏎")
    assert request["reason"].startswith("I must. <U+202E>evil")
    assert "evil" not in request["question"]
    assert "evil" not in request["rule"]
    for text in (json.dumps(request, ensure_ascii=False), request["reason"]):
        assert BIDI not in text
        assert "\u200b" not in text
    details = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    shown = details.current_details
    assert BIDI not in shown
    assert "\n# Approve now" not in shown
    assert "[click](" not in shown
    fenced = [line for line in shown.split("```")[1].splitlines() if line]
    flags = f"--by YOU --args-digest {request['args_digest']}"
    assert fenced == [f"backstay approve {handle.id} r1 {flags}", f"backstay reject {handle.id} r1 {flags}"]
    # What was decided is the real thing, unescaped.
    said = {"request_id": "r1", "verdict": "approve", "by": f"ana{BIDI}\n", "comment": HOSTILE}
    await handle.execute_update("decide", said)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    row = opened.mailbox.rows("SELECT arguments FROM requests WHERE effect_id LIKE ?", f"{handle.id}/%")[0]
    assert json.loads(row[0])["subject"] == HOSTILE
    history = await handle.fetch_history()
    summaries = [event.user_metadata.summary.data.decode() for event in history.events]
    assert any("mail.send_email" in summary for summary in summaries)
    assert not any(sign in json.loads(summary) for summary in summaries if summary for sign in (BIDI, "\n", "\u200b"))
    for event in result["events"]:
        assert BIDI not in event["text"]
        assert "\n" not in event["text"]


@promise("approvals:clipped")
async def test_a_request_too_long_to_show_is_approved_only_with_the_digest_of_all_of_it(shared):
    opened, scripts = shared
    subject = f"harmless {'x' * 380} and now the sting"
    calls = {"to": "a@x.example", "subject": subject, "body": "y" * 3900}
    handle = await opened.start(scripts.task(Reply(calls=[("mail__send_email", calls)])))
    (request,) = await pending(handle)
    call = request["calls"][0]
    assert call["clipped"] > 0
    assert len(json.dumps(call["arguments"])) < 3000
    assert request["args_digest"] == call["args_digest"] == digest_of(calls)
    yes = {"request_id": "r1", "verdict": "approve", "by": "ana"}
    for said in (yes, {**yes, "args_digest": request["args_digest"][:16]}):
        kind, message = await refusal(handle.execute_update("decide", said))
        assert kind == "DecisionRefused"
        assert message.startswith("args_digest:")
    details = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert f"--args-digest {request['args_digest']}" in details.current_details
    await handle.execute_update("decide", {**yes, "args_digest": request["args_digest"]})
    assert (await ended(handle))["outcome"] == "completed"


@promise("secrets:big-leaf")
async def test_a_text_of_ten_kilobytes_is_a_reference_in_history_and_whole_at_the_tool(shared):
    opened, scripts = shared
    body = f"{HOSTILE} " * 110
    assert len(body.encode()) > 10_000
    handle = await opened.start(scripts.task(mail(body=body)))
    (request,) = await pending(handle)
    assert set(request["calls"][0]["arguments"]["body"]) == {"$ref", "bytes"}
    said = {"request_id": "r1", "verdict": "approve", "by": "ana", "args_digest": request["args_digest"]}
    await handle.execute_update("decide", said)
    assert (await ended(handle))["outcome"] == "completed"
    assert "Approve now" * 2 not in (await handle.fetch_history()).to_json()
    row = opened.mailbox.rows("SELECT body FROM sent WHERE effect_id LIKE ?", f"{handle.id}/%")[0]
    assert row == (body,)


@promise("approvals:facts")
async def test_a_request_shows_what_is_called_how_it_is_undone_and_what_cannot_be_undone(shared):
    opened, scripts = shared
    deletes = Reply(text="Clean up.", calls=[("mail__delete_message", {"message_id": "m1"})])
    handle = await opened.start(scripts.task(mail(), deletes))
    (request,) = await pending(handle)
    (call,) = request["calls"]
    assert (call["tool"], call["safety"], call["undoable"]) == ("mail.send_email", "write_safe", True)
    assert "recall_email" in call["undo_how"]
    await handle.execute_update("decide", {"request_id": "r1", "verdict": "reject", "by": "ana"})
    async with asyncio.timeout(150):
        while not (found := await handle.query("pending")) or found[0]["id"] != "r2":
            await asyncio.sleep(0.1)
    (call,) = found[0]["calls"]
    assert (call["tool"], call["safety"], call["undoable"], call["undo_how"]) == (
        "mail.delete_message",
        "restricted_write",
        False,
        None,
    )
    details = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    assert "1 of mail.delete\\_message; 1 cannot be undone" in details.current_details
    await handle.execute_update("decide", {"request_id": "r2", "verdict": "reject", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"


@promise("runs:long-answers")
@pytest.mark.parametrize("sign", spread(['"', "\x01", "中"], 1))
async def test_a_very_long_answer_by_signal_is_cut_and_the_run_goes_on(shared, sign):
    opened, scripts = shared
    task = scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})]))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    decision = {"request_id": request["id"], "verdict": "answer", "by": "ana"}
    with pytest.raises(WorkflowUpdateFailedError):
        await handle.execute_update("decide", decision | {"answer": sign * 200_000})
    await handle.signal("approval", decision | {"answer": f"the second one {sign * 200_000}"})
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert_no_task_failure(await handle.fetch_history())
    asked = [request for request in opened.model.requests if task["text"] in str(request["messages"][1])]
    (told,) = [message["content"] for message in asked[-1]["messages"] if message["role"] == "tool"]
    assert "the second one" in told
    assert "(cut; all of it had 200,015 characters)" in told
