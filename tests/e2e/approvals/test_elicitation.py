"""Questions of tool servers wait for people like any request, and the call goes on with the answer."""

import json
from pathlib import Path

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise

ASKING = Path(__file__).parents[1] / "servers" / "asking.py"
SERVERS = Path(__file__).parents[2] / "toolbox" / "servers"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nask: [office.structured]\n"
ODD = {
    "type": "object",
    "properties": {
        "p\u0430y": {"type": "boolean"},
        "when": {"type": "string", "enum": ["on\nfriday", "x" * 600]},
        "who": {"type": "array", "items": {"anyOf": [{"const": "\u200bana", "title": "Ana"}]}},
        "text": {"type": "string", "default": "one\ntwo" + "!" * 600},
    },
    "required": ["p\u0430y"],
}
GIVES_UP = Reply(calls=[("finish", {"summary": "I cannot", "success": False})])
SCRIPTS = Labelled(
    cellar=[Reply(calls=[("office__give_away", {"room": "cellar"})]), DONE],
    attic=[Reply(calls=[("office__give_away", {"room": "attic"})]), DONE],
    roof=[Reply(calls=[("office__give_away", {"room": "roof"})]), DONE],
    booked=[Reply(calls=[("older__book", {})]), DONE],
    left=[Reply(calls=[("older__book", {})]), DONE],
    failed=[Reply(calls=[("older__strict", {})]), DONE],
    odd=[Reply(calls=[("asking__ask", {"mark": "odd", "message": "What?", "form": ODD})]), DONE],
    crowded=[Reply(calls=[("older__crowd", {})]), GIVES_UP],
    surveyed=[Reply(calls=[("older__survey", {})]), DONE],
    peeked=[Reply(calls=[("older__peek", {})]), DONE],
)


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("elicitation")
    servers = {
        "office": {"command": "python", "args": [str(SERVERS / "office.py"), "stdio"]},
        "older": {"command": "python", "args": [str(SERVERS / "older.py"), "2025-11-25", str(folder / "log")]},
    }
    toolbox = folder / "toolbox.json"
    servers["asking"] = {"command": "python", "args": [str(ASKING), str(folder / "asked")]}
    undone = {"crowd": {"undo": {"tool": "now", "arguments": {}}}}
    trusted = {"older": {"trusted": True, "tools": undone}, "asking": {"trusted": True}}
    toolbox.write_text(json.dumps({"mcpServers": servers, "providers": trusted}), encoding="utf-8")
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, toolbox=toolbox, request_deadline_seconds=20) as opened:
        yield opened, folder / "log"


async def decide(handle, request, verdict, **more):
    await handle.execute_update(
        "decide", {"request_id": request["id"], "verdict": verdict, "by": "ana@example.com", **more}
    )


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


@promise("approvals:elicitation")
@pytest.mark.thorough
async def test_a_servers_question_waits_for_a_person_and_the_call_is_made_once_with_the_answer(office):
    opened, _ = office
    handle = await opened.start({"text": "<cellar>"})
    (request,) = await pending(handle)
    assert (request["kind"], request["options"]) == ("elicitation", ["answer", "reject"])
    assert "office.give_away asks: Give away cellar?" in request["question"]
    assert request["schema"]["properties"]["sure"]["type"] == "boolean"
    assert request["calls"][0]["arguments"] == {"room": "cellar"}
    await decide(handle, request, "answer", answer={"sure": True}, comment="it was empty anyway")
    result = await ended(handle)
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert "cellar given 1 times" in told_in(opened, "<cellar>")
    assert "it was empty anyway" in told_in(opened, "<cellar>")


@promise("approvals:elicitation-as-asked")
async def test_a_server_gets_its_own_names_choices_and_defaults_however_people_are_shown_them(office):
    opened, log = office
    handle = await opened.start({"text": "<odd>"})
    (request,) = await pending(handle)
    fields = request["schema"]["properties"]
    (whose,) = [option["const"] for option in fields["who"]["items"]["anyOf"]]
    assert ("p<U+0430>y" in fields, fields["when"]["enum"], whose) == (True, ["on⏎friday", "x" * 600], "<U+200B>ana")
    given = {"p<U+0430>y": True, "when": fields["when"]["enum"][0], "who": [whose], "text": fields["text"]["default"]}
    await decide(handle, request, "answer", answer=given)
    await ended(handle)
    (told,) = [json.loads(line) for line in log.with_name("asked").read_text(encoding="utf-8").splitlines()]
    text = ODD["properties"]["text"]["default"]
    assert told["content"] == {"p\u0430y": True, "when": "on\nfriday", "who": ["\u200bana"], "text": text}


@promise("approvals:fit")
async def test_an_answer_that_does_not_fit_is_refused_by_its_field_and_the_question_stays_open(office):
    opened, _ = office
    handle = await opened.start({"text": "<attic>"})
    (request,) = await pending(handle)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await decide(handle, request, "answer", answer={"sure": "perhaps"})
    failure = refused.value.cause
    assert (failure.type, failure.message) == ("DecisionInvalid", "answer.sure: must be boolean, not string")
    wrong = {"request_id": request["id"], "verdict": "answer", "by": "ana@example.com", "answer": {}}
    await handle.signal("approval", wrong)
    assert [open_now["id"] for open_now in await pending(handle)] == [request["id"]]
    await decide(handle, request, "answer", answer={"sure": True})
    result = await ended(handle)
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    (event,) = [event for event in result["events"] if event["name"] == "approval.refused"]
    assert event["text"] == "answer: 'sure' is required; add it"


@promise("approvals:declined")
async def test_a_rejected_question_is_declined_and_the_model_is_told_what_the_server_did_then(office):
    opened, _ = office
    handle = await opened.start({"text": "<roof>"})
    (request,) = await pending(handle)
    await decide(handle, request, "reject")
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert "kept" in told_in(opened, "<roof>")


@promise("approvals:elicitation")
async def test_an_older_servers_call_is_made_again_on_a_persons_word(office):
    opened, log = office
    handle = await opened.start({"text": "<booked>"})
    (request,) = await pending(handle)
    assert "It went on without an answer and said: no day, no booking." in request["question"]
    before = calls_of("book", log)
    await decide(handle, request, "answer", answer={"day": "friday"})
    result = await ended(handle)
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 2)]
    assert calls_of("book", log) == before + 1


@promise("approvals:older-stands")
async def test_what_an_older_server_did_without_an_answer_stands_when_a_person_says_so(office):
    opened, log = office
    handle = await opened.start({"text": "<left>"})
    (request,) = await pending(handle)
    before = calls_of("book", log)
    await decide(handle, request, "reject")
    result = await ended(handle)
    assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
    assert calls_of("book", log) == before
    assert "no day, no booking" in told_in(opened, "<left>")


@promise("approvals:older-failed")
async def test_an_older_server_that_fails_without_an_answer_did_nothing_when_a_person_leaves_it_at_that(office):
    opened, _ = office
    handle = await opened.start({"text": "<failed>"})
    (request,) = await pending(handle)
    await decide(handle, request, "reject")
    result = await ended(handle)
    assert [effect["state"] for effect in result["effects"]] == ["not_sent"]


@promise("approvals:too-long-in-call")
async def test_what_an_older_server_did_though_its_form_was_too_long_is_asked_about_and_can_be_undone(office):
    opened, log = office
    handle = await opened.start({"text": "<crowded>"})
    (request,) = await pending(handle)
    assert request["kind"] == "outcome"
    assert "the server asks for more than a person can be shown" in request["question"]
    assert "it went on without an answer and said: no day, no booking" in request["question"]
    before = calls_of("now", log)
    await decide(handle, request, "happened")
    result = await ended(handle)
    assert [(effect["effect"], effect["state"]) for effect in result["undone"]] == [(1, "compensated")]
    assert (calls_of("crowd", log), calls_of("now", log)) == (1, before + 1)


@promise("approvals:too-long")
async def test_a_read_whose_question_is_too_long_fails_as_its_server_does(office):
    opened, _ = office
    await ended(await opened.start({"text": "<surveyed>"}))
    told = told_in(opened, "<surveyed>")
    assert "the server asks for more than a person can be shown" in told
    assert "ArgumentsInvalid" not in told


@promise("approvals:read")
async def test_a_question_about_a_call_that_only_reads_makes_no_effect(office):
    opened, _ = office
    handle = await opened.start({"text": "<peeked>"})
    (request,) = await pending(handle)
    await decide(handle, request, "answer", answer={"day": "monday"})
    result = await ended(handle)
    assert result["effects"] == []
    assert "monday" in told_in(opened, "<peeked>")


def told_in(opened, label):
    """All that the model was told in one run."""
    return json.dumps(
        [request["messages"] for request in opened.model.requests if label in json.dumps(request["messages"])]
    )


def calls_of(tool, log):
    return log.read_text(encoding="utf-8").splitlines().count(f"called {tool}")
