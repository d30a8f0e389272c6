"""What people write: /backstay run, list and undo, the first of them over HTTP and over socket mode."""

import re
import sqlite3

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.engine import ended, forgotten, pending
from tests.requirements import promise
from tests.slack.workspace import ANA, BOTH_WAYS, FINISH, ONCE, U1, U2, mail, open_office

pytestmark = pytest.mark.timeout(400)
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask:
  - {tool: mail.send_email, when: {to: {ends_with: "@self.example"}}, no_self_approval: true}
undo: {default: allow}
"""


@pytest_asyncio.fixture(scope="module", params=ONCE)
async def office(request, temporal, tmp_path_factory):
    async with open_office(temporal, tmp_path_factory.mktemp(request.param), request.param, policy=POLICY) as opened:
        yield opened


def text_of(office, *replies):
    return office.scripts.task(*replies, FINISH)["text"]


async def started(office, text, user=U1):
    """Start a run by a command, and return it and the message that heads its thread."""
    before = office.whispers()
    delivery = await office.slack.command(f"run {text}", user=user)
    said = await office.whisper("Started ", after=before)
    workflow_id = said.text.split()[1].rstrip(";")
    head = await office.slack.until(
        lambda: next((m for m in office.slack.standing("C1", None) if workflow_id in m.shown and not m.to), None)
    )
    return office.engine.client.get_workflow_handle(workflow_id), head, delivery


@promise("slack:commands")
@BOTH_WAYS
async def test_a_run_is_started_for_the_person_listed_and_undone(office):
    handle, head, delivery = await started(office, text_of(office, mail("a@x.example")))
    assert "Started by <@U1>" in head.shown
    result = await ended(handle)
    assert result["outcome"] == "completed"
    first = result["events"][0]
    assert first["user_id"] == ANA
    await office.slack.shows(head, "A run that ended: completed")

    before = office.whispers()
    assert (await office.slack.repeat(delivery)).status == 200
    await office.whisper("was started by this command already", after=before)
    assert len(office.sent(handle)) == 1

    await office.slack.command("list", user=U1)
    listed = await office.whisper(f"{handle.id}  completed")
    assert listed.to == U1
    before = office.whispers()
    await office.slack.command("list", user=U2)
    await office.whisper("No run for bo@example.com yet", after=before)

    undo = await office.slack.command(f"undo {handle.id[:20]}", user=U1)
    await office.whisper(f"Undoing {handle.id}")
    undone = await office.slack.message("undo.ran", channel="C1")
    assert undone.thread_ts == head.ts
    assert office.engine.mailbox.sent() == []
    before = office.whispers()
    await office.slack.repeat(undo)
    await office.whisper("done already", after=before)


@promise("slack:undo-open")
async def test_what_an_open_run_did_is_undone_too(office):
    ask = Reply(calls=[("ask_person", {"question": "Go on?"})])
    handle, _, _ = await started(office, text_of(office, mail("b@x.example"), ask))
    await pending(handle)
    assert len(office.sent(handle)) == 1
    before = office.whispers()
    await office.slack.command("undo last", user=U1)
    said = await office.whisper(f"Undone of {handle.id}, which goes on", after=before)
    assert "undone by" in said.text
    await handle.terminate("the test is over")


@promise("slack:undo-forgotten")
async def test_what_a_run_did_that_temporal_has_forgotten_is_undone_too(office):
    handle, _, _ = await started(office, text_of(office, mail("c@x.example")))
    assert (await ended(handle))["outcome"] == "completed"
    await forgotten(office.engine, handle.id)
    await office.slack.command(f"undo {handle.id}", user=U1)
    await office.whisper(f"Undoing {handle.id}")
    undone = await ended(office.engine.client.get_workflow_handle(f"undo-{handle.id}"))
    assert [effect["state"] for effect in undone["undone"]] == ["compensated"]


BY_HAND = r"not undone; a person must undo it by hand \(.+mail\.recall_email\(message_id="


def cannot_be_recalled(office, handle):
    """Let the mailbox refuse to recall what the first effect of a run sent."""
    with sqlite3.connect(office.engine.mailbox.path, timeout=10) as connection:
        gone = "UPDATE sent SET recalled_at = 'before' WHERE effect_id LIKE ?"
        connection.execute(gone, (f"{handle.id}/%/1",))


@promise("undo:by-hand")
async def test_what_a_person_must_undo_by_hand_is_named_with_its_call(office):
    ask = Reply(calls=[("ask_person", {"question": "Go on?"})])
    handle, head, _ = await started(office, text_of(office, mail("c@x.example"), ask))
    (question,) = await pending(handle)
    cannot_be_recalled(office, handle)
    before = office.whispers()
    await office.slack.command(f"undo {handle.id}", user=U1)
    while_open = await office.whisper(f"Undone of {handle.id}, which goes on", after=before)
    by_hand = re.compile(
        r'\{"to":"c@x.example",.+\}: not undone; a person must undo it by hand \(.+mail\.recall_email\('
    )
    assert by_hand.search(while_open.text)
    await handle.execute_update(
        "decide", {"request_id": question["id"], "verdict": "answer", "answer": "no", "by": ANA}
    )
    await ended(handle)
    at_the_end = await office.slack.message("The run has ended: completed\nmail.send_email", channel="C1")
    assert at_the_end.thread_ts == head.ts
    assert by_hand.search(at_the_end.shown)

    handle, head, _ = await started(office, text_of(office, mail("d@x.example")))
    await ended(handle)
    cannot_be_recalled(office, handle)
    await office.slack.command(f"undo {handle.id}", user=U1)
    after_end = await office.slack.message('{"to":"d@x.example",', channel="C1")
    assert '"}: parked' in after_end.shown
    assert after_end.thread_ts == head.ts
    assert "was already recalled; to undo it by hand: mail.recall_email(message_id=" in after_end.shown


@promise("slack:own-run")
async def test_who_started_a_run_here_may_not_approve_it_where_the_rule_forbids_that(office):
    handle, head, _ = await started(office, text_of(office, mail("a@self.example")))
    message = await office.slack.until(
        lambda: next((m for m in office.slack.standing("C1", head.ts) if "backstay.approve" in m.buttons), None)
    )
    before = office.whispers()
    await office.slack.press(message, "backstay.approve", user=U1)
    await office.whisper("started this run", after=before)
    await office.slack.press(message, "backstay.approve", user=U2)
    assert (await ended(handle))["outcome"] == "completed"


@promise("slack:misused")
async def test_a_command_that_says_nothing_of_use_is_answered(office):
    wrong = {
        "": "/backstay run TEXT",
        "dance": "/backstay run TEXT",
        "run": "write what is to be done",
        "undo": "name a run",
        "undo nothing-of-this-name": "there is no run nothing-of-this-name",
        "undo slack-": "give more of it",
    }
    for text, said in wrong.items():
        before = office.whispers()
        await office.slack.command(text, user=U1)
        await office.whisper(said, after=before)
    before = office.whispers()
    await office.slack.command("run something", user="U99")
    await office.whisper("does not say who you are", after=before)


@promise("slack:pasted-command")
@pytest.mark.parametrize("space", ["\u00a0", "\n", "  "])
async def test_a_command_may_have_any_space_before_what_is_to_be_done(office, space):
    before = office.whispers()
    await office.slack.command(f"run{space}{text_of(office)}", user=U1)
    said = await office.whisper("Started ", after=before)
    result = await ended(office.engine.client.get_workflow_handle(said.text.split()[1].rstrip(";")))
    assert result["outcome"] == "completed"


@promise("slack:secret-task")
async def test_the_thread_of_a_run_begins_without_a_secret_of_its_task(office):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    handle, head, _ = await started(office, f"{text_of(office)} with {token}")
    await ended(handle)
    await office.slack.shows(head, "A run that ended: completed")
    assert "⟦secret:task/github_token:" in head.shown
    assert all(token not in message.shown for message in office.slack.standing("C1", None))
