"""What becomes of a call whose answer is lost: proof, a person's word, or the declaration; never a guess."""

import asyncio
import json
import uuid
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio

from backstay.testing import Reply
from examples.mailbox.faults import Faults
from tests.engine import assert_no_task_failure, engine, pending, toolbox_of
from tests.histories import activities_in
from tests.mailbox_server import open_mailbox
from tests.requirements import promise
from tests.together import started, together

MAIL = {"to": "ana@example.com", "subject": "Reminder", "body": "Please pay."}
CHECK = {
    "tool": "list_sent",
    "arguments": {"token": "{{ effect.id }}"},
    "applied_if": "{{ result.messages | length > 0 }}",
}
PLAIN = {"safety": "write_safe", "idempotency_argument": "client_token"}
POLICY = "allow: ['mail.*']"


@pytest_asyncio.fixture(scope="module")
async def underway(request, temporal, tmp_path_factory):
    async with started(request, lambda start: start(temporal, tmp_path_factory.mktemp("one"))) as running:
        yield running


def script(talk):
    """Send one mail, then say what became of it."""
    if not talk.calls("mail__send_email"):
        return Reply(calls=[("mail__send_email", MAIL)])
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": talk.answers("mail__send_email")[0]}})])


@asynccontextmanager
async def lossy(temporal, folder, declared, **env):
    """Open an engine whose mailbox loses an answer as `env` says, with `send_email` declared so.

    One that dies is a process of its own; the others are served from here, which costs no start.
    """
    async with AsyncExitStack() as stack:
        database, address = folder / "mailbox.db", ""
        if not any(name.startswith("MAILBOX_DIE") for name in env):
            address = await stack.enter_async_context(open_mailbox(database, Faults.read(env)))
        path = toolbox_of(folder, database, address=address, **env)
        yield await stack.enter_async_context(declaring(temporal, folder, path, declared))


def declaring(temporal, folder, path, declared):
    data = json.loads(path.read_text(encoding="utf-8"))
    data["providers"]["mail"]["tools"]["send_email"] = declared
    own = folder / "declaring.json"
    own.write_text(json.dumps(data), encoding="utf-8")
    return engine(temporal, folder, script, policy=POLICY, toolbox=own, request_deadline_seconds=3)


async def ended(handle):
    async with asyncio.timeout(150):
        result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


async def asked_about(handle):
    """Return the one request about the lost outcome."""
    (request,) = await pending(handle, within_s=150)
    assert request["kind"] == "outcome"
    assert set(request["options"]) == {"happened", "did_not_happen", "retry"}
    assert request["calls"][0]["tool"] == "mail.send_email"
    return request["id"]


async def decide(handle, request_id, verdict):
    await handle.execute_update("decide", {"request_id": request_id, "verdict": verdict, "by": "ana"})


async def called_with(handle, purpose="call"):
    """Return what `call_tool` was asked for the effect, in order, from the history."""
    made = activities_in((await handle.fetch_history()).events)
    asked = [given for name, given, _ in made if name == "call_tool" and given.get("effect") is not None]
    return [given for given in asked if given.get("purpose", "call") == purpose]


@promise("effects:verify")
@pytest.mark.thorough
@together
async def test_a_check_that_finds_the_mail_settles_the_effect_without_a_question(temporal, folder):
    async with lossy(temporal, folder, PLAIN | {"verify": CHECK}, MAILBOX_DIE_AFTER_SEND="1") as opened:
        handle = await opened.start("send it")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
        assert opened.mailbox.requests("send_email") == 1
        assert "messages" in result["raw_outputs"]["answer"]["data"]
        assert not [event for event in result["events"] if event["name"] == "approval.asked"]


@promise("effects:verify-final")
@together
async def test_a_final_check_that_finds_nothing_sends_again_under_a_new_number(temporal, folder):
    declared = PLAIN | {"verify": CHECK | {"verify_is_final": True}}
    async with lossy(temporal, folder, declared, MAILBOX_DIE_BEFORE_SEND="1") as opened:
        handle = await opened.start("send it")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert opened.mailbox.sent() == [MAIL["to"]]
        assert opened.mailbox.requests("send_email") == 2
        assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 2)]
        sends = await called_with(handle)
        assert [(ask["effect"], ask.get("send", 1)) for ask in sends] == [(1, 1), (1, 2)]
        assert not [event for event in result["events"] if event["name"] == "approval.asked"]


@promise("effects:verify-not-final")
@together
async def test_a_check_that_is_not_final_and_finds_nothing_leads_to_a_person(temporal, folder):
    async with lossy(temporal, folder, PLAIN | {"verify": CHECK}, MAILBOX_DIE_BEFORE_SEND="1") as opened:
        handle = await opened.start("send it")
        request = await asked_about(handle)
        # Three times at most, fewer where the server is slow: a person is asked within a bounded time.
        assert 1 <= len(await called_with(handle, "verify")) <= 3
        assert opened.mailbox.requests("send_email") == 1
        await decide(handle, request, "retry")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert opened.mailbox.sent() == [MAIL["to"]]


@promise("effects:effect-person")
@together
async def test_a_person_who_says_it_happened_ends_the_matter_without_a_second_send(temporal, folder):
    async with lossy(temporal, folder, PLAIN, MAILBOX_HANG_ON_SEND="1") as opened:
        handle = await opened.start("send it")
        await decide(handle, await asked_about(handle), "happened")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert [effect["state"] for effect in result["effects"]] == ["applied"]
        assert "ana" in result["effects"][0]["outcome"]
        assert "it happened" in result["raw_outputs"]["answer"]["note"]
        assert opened.mailbox.requests("send_email") == 1


@promise("effects:effect-person")
@together
async def test_a_person_who_says_it_did_not_happen_is_believed_and_the_model_is_told(temporal, folder):
    async with lossy(temporal, folder, PLAIN, MAILBOX_DIE_BEFORE_SEND="1") as opened:
        handle = await opened.start("send it")
        await decide(handle, await asked_about(handle), "did_not_happen")
        result = await ended(handle)

        assert [effect["state"] for effect in result["effects"]] == ["not_sent"]
        assert result["raw_outputs"]["answer"]["type"] == "DidNotHappen"
        assert opened.mailbox.requests("send_email") == 1
        assert opened.mailbox.sent() == []


@promise("effects:effect-person")
@pytest.mark.thorough
@together
async def test_a_person_who_asks_for_another_send_gets_one_that_names_the_old(temporal, folder):
    async with lossy(temporal, folder, PLAIN, MAILBOX_DIE_BEFORE_SEND="1") as opened:
        handle = await opened.start("send it")
        await decide(handle, await asked_about(handle), "retry")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 2)]
        ids = {row[0] for row in opened.mailbox.rows("SELECT effect_id FROM requests WHERE tool = 'send_email'")}
        assert ids == {result["effects"][0]["id"]}
        assert opened.mailbox.requests("send_email") == 2
        assert opened.mailbox.sent() == [MAIL["to"]]


@promise("effects:idempotent")
@together
async def test_a_tool_declared_idempotent_is_sent_again_under_the_same_id_without_a_question(temporal, folder):
    declared = PLAIN | {"idempotent": True, "idempotency_ttl": 600}
    async with lossy(temporal, folder, declared, MAILBOX_DIE_AFTER_SEND="1") as opened:
        handle = await opened.start("send it")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert [(effect["state"], effect["send"]) for effect in result["effects"]] == [("applied", 1)]
        rows = opened.mailbox.rows("SELECT effect_id, arguments FROM requests WHERE tool = 'send_email'")
        # This mailbox never deduplicates, so that both requests can be seen; a server that does sends one mail.
        assert [row[0] for row in rows] == [result["effects"][0]["id"]] * 2
        assert {json.loads(row[1])["client_token"] for row in rows} == {result["effects"][0]["id"]}
        assert not [event for event in result["events"] if event["name"] == "approval.asked"]


@promise("effects:idempotent")
@together
async def test_a_tool_whose_idempotency_has_run_out_is_asked_about_instead(temporal, folder):
    declared = PLAIN | {"idempotent": True, "idempotency_ttl": 0.001}
    async with lossy(temporal, folder, declared, MAILBOX_DIE_AFTER_SEND="1") as opened:
        handle = await opened.start("send it")
        await decide(handle, await asked_about(handle), "happened")
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert opened.mailbox.requests("send_email") == 1


@promise("effects:id")
@together
async def test_an_effect_is_named_after_the_first_run_of_its_workflow(temporal, folder):
    async with lossy(temporal, folder, PLAIN) as opened:
        handle = await opened.start("send it", workflow_id=f"errand-{uuid.uuid4()}")
        result = await ended(handle)

        assert result["effects"][0]["id"] == f"{handle.id}/{handle.first_execution_run_id}/1"
        assert opened.mailbox.rows("SELECT effect_id FROM requests WHERE tool = 'send_email'") == [
            (result["effects"][0]["id"],)
        ]
