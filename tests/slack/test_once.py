"""Nothing is posted twice: over answers that get lost, several processes, and processes that are killed.

We post by the same calls in both modes, so each of these is tried in one of them.
"""

import asyncio
import signal
import sqlite3

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from backstay import connect
from backstay.testing import Reply
from gateways.slack import posting
from tests.engine import ended, pending
from tests.requirements import promise
from tests.sizes import FULL
from tests.slack.workspace import KEY, U1, decisions, door, mail, open_office, process

pytestmark = pytest.mark.timeout(400)


async def of_a_newer_version(office, handle):
    """Make the request of a run one that cannot be read, once it stands in the store."""
    change = "UPDATE requests SET request = json_set(request, '$.kind', 'newer') WHERE workflow_id = ?"
    async with asyncio.timeout(150):
        with sqlite3.connect(office.settings.home / "backstay.db", timeout=10) as database:
            while not database.execute(change, (handle.id,)).rowcount:
                database.rollback()
                await asyncio.sleep(0.1)


def a_minute_passes(office):
    """End every lease, as the time does for which whoever holds one may write."""
    with sqlite3.connect(office.settings.home / "backstay.db", timeout=150) as database:
        ended = [
            database.execute(f"UPDATE {table} SET lease = lease - 60 WHERE lease > 0").rowcount
            for table in ("posts", "deliveries")
        ]
    assert any(ended)


def shown(office, text):
    return [m for m in office.slack.standing() if m.broadcast and text in m.shown]


@promise("slack:once")
async def test_a_process_that_is_killed_after_it_posted_does_not_post_again(temporal, nursery, tmp_path):
    mode = "http"
    async with open_office(temporal, tmp_path, mode, gateway=False) as office:
        slack = office.slack
        async with process(office, mode, nursery) as first:
            # The answer of Slack is held back, so that the process dies between posting and recording.
            slack.hold("chat.postMessage", after=1)
            task = office.scripts.task(mail("a@ana.example"))
            handle = await office.engine.start(task)
            await pending(handle)
            message = await office.message(task["text"])
            await first.end()
        slack.release()
        if not FULL:
            a_minute_passes(office)
        async with process(office, mode, nursery) as second:
            await slack.until(lambda: slack.called("conversations.replies"), 150)
            await slack.until(lambda: slack.called("chat.update"), 150)
            assert len(shown(office, task["text"])) == 1
            await slack.press(message, "backstay.approve", user=U1)
            result = await ended(handle)
            await slack.changed(message, "Approved by")
            second.kill(signal.SIGTERM)
            assert await second.ended(150) == 0
        assert decisions(result) == [("approve", "ana@example.com", True)]
        assert len(shown(office, task["text"])) == 1


@promise("slack:refusing")
async def test_what_slack_did_not_take_is_sent_later_and_once(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "http") as office:
        slack = office.slack
        slack.refuse("chat.postMessage", "ratelimited", times=2, status=429, headers={"Retry-After": "1"})
        # Slack has taken these, as whoever looks in the channel finds.
        slack.drop("chat.postMessage", times=2)
        handle, message = await office.asked(mail("a@ana.example"))
        await slack.until(lambda: slack.called("conversations.history") and slack.called("conversations.replies"))
        slack.refuse("chat.update", "upstream connect error", status=503, plain=True)
        await slack.press(message, "backstay.approve", user=U1)
        assert (await ended(handle))["outcome"] == "completed"
        assert (await slack.changed(message, "Approved by")).buttons == []
        heads = [m for m in slack.standing("C1", None) if m.to is None]
        assert len(heads) == 1
        assert len([m for m in slack.standing() if m.broadcast]) == 1


async def asked_twice(office):
    """Return a run that goes on to ask once more, the first request, and the text of the second one."""
    handle, first = await office.asked(mail("first@ana.example"), mail("second@ana.example"))
    return handle, first, "to: second@ana.example"


async def approved_once(office, handle, asked):
    """Approve a request that stands there once, and see the run end."""
    message = await office.slack.until(lambda: next((m for m in with_buttons(office) if asked in m.shown), None), 150)
    await office.slack.press(message, "backstay.approve", user=U1)
    assert (await ended(handle))["outcome"] == "completed"
    await office.slack.message("The run has ended: completed")
    assert len([m for m in office.slack.standing() if asked in m.shown and "Approved by" in m.shown]) == 1
    assert with_buttons(office) == []


def with_buttons(office):
    return [m for m in office.slack.standing() if m.buttons]


@promise("slack:long-thread")
async def test_what_slack_took_without_an_answer_is_found_at_the_end_of_a_long_thread(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(posting, "_OF_PAGE", 2)
    async with open_office(temporal, tmp_path, "http") as office:
        slack = office.slack
        handle, first, asked = await asked_twice(office)
        client = AsyncWebClient(slack.bot_token, base_url=slack.api_url)
        for number in range(5):
            await client.chat_postMessage(channel="C1", text=f"talk {number}", thread_ts=first.thread_ts)
        slack.drop("chat.postMessage", times=2)
        await slack.press(first, "backstay.approve", user=U1)
        await approved_once(office, handle, asked)


@promise("slack:deleted-thread")
async def test_what_slack_took_for_a_thread_whose_head_was_deleted_is_found_in_the_channel(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "http") as office:
        slack = office.slack
        handle, first, asked = await asked_twice(office)
        slack.drop("chat.postMessage", times=2)
        for message in office.thread(first):
            if message.ts != first.ts:
                del slack.messages[message.channel, message.ts]
        del slack.messages["C1", first.thread_ts]
        await slack.press(first, "backstay.approve", user=U1)
        await approved_once(office, handle, asked)


IN_FRONT = (
    ("text/plain", "maintenance", " (HTTP 200)"),
    ("text/html", "<html>Log in first</html>", " (HTTP 200)"),
    ("application/json", "<html>Log in first</html>", " (HTTP 200)"),
    ("application/json", "[]", " (HTTP 200)"),
    ("text/plain", "Anmeldung n\u00f6tig", ""),
)
"""What something in front of Slack may answer with status 200, and what is said of it."""


@promise("slack:silent")
async def test_whoever_presses_a_button_while_slack_does_not_answer_is_told_so(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "socket") as office:
        slack = office.slack
        handle, message = await office.asked(mail("a@ana.example"))
        slack.drop("users.info", times=2)  # a library asks twice by itself
        await slack.press(message, "backstay.approve", user=U1)
        await office.whisper("Slack did not answer; try again")
        slack.refuse("users.info", "ratelimited", status=429)
        await slack.press(message, "backstay.approve", user=U1)
        await office.whisper("Slack is asked too much just now")
        slack.drop("views.open")
        await slack.press(message, "backstay.reject", user=U1)
        await office.whisper("Slack did not answer; press the button again")
        slack.refuse("users.info", "upstream connect error", status=503, plain=True)
        await slack.press(message, "backstay.approve", user=U1)
        await office.whisper("Slack did not answer (HTTP 503); try again")
        for kind, answer, said in IN_FRONT:
            before = office.whispers()
            slack.refuse("users.info", answer, plain=True, headers={"Content-Type": kind})
            await slack.press(message, "backstay.approve", user=U1)
            await office.whisper(f"Slack did not answer{said}; try again", after=before)
        before = office.whispers()
        slack.refuse("views.open", "upstream connect error", status=502, plain=True)
        await slack.press(message, "backstay.reject", user=U1)
        await office.whisper("Slack refuses this (HTTP 502); press the button again")
        slack.drop("users.info", times=2)  # a library asks twice by itself
        await slack.command("list", user=U1)
        await office.whisper("Slack did not answer; try again", after=before + 1)
        await slack.press(message, "backstay.approve", user=U1)
        assert decisions(await ended(handle)) == [("approve", "ana@example.com", True)]


@promise("slack:late-reminder")
async def test_people_are_not_reminded_of_what_was_decided_while_slack_took_nothing(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "http") as office:
        slack = office.slack
        handle, _ = await office.asked(mail("a@soon.example"))
        slack.refuse("chat.postMessage", "internal_error", times=1000)
        # It is only asked whom to remind.
        await slack.until(lambda: any(call.method == "users.lookupByEmail" for call in slack.calls))
        async with connect(client=office.engine.client, approver_key=KEY) as backstay:
            await backstay.run(handle.id).approve("r1", by="bo@example.com")
        await ended(handle)
        slack.refuse("chat.postMessage", "", times=0)
        await slack.message("The run has ended: completed")
        assert "Still waits" not in "".join(m.shown for m in slack.standing())


@promise("slack:racing")
@pytest.mark.thorough
async def test_two_processes_post_a_request_once_and_one_that_comes_late_shows_what_waits(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "socket", gateway=False) as office:
        newer = await office.engine.start(office.scripts.task(mail("z@ana.example")))
        await of_a_newer_version(office, newer)
        early = await office.engine.start(office.scripts.task(mail("a@ana.example")))
        await pending(early)
        async with (
            door(office.engine, office.slack, office.settings),
            door(office.engine, office.slack, office.settings),
        ):
            await office.message("a@ana.example")
            handles = [await office.engine.start(office.scripts.task(mail(f"{n}@ana.example"))) for n in range(4)]
            for number, handle in enumerate(handles):
                await pending(handle)
                await office.message(f"to: {number}@ana.example")
            for handle in [newer, early, *handles]:
                await handle.terminate("the test is over")
        assert len([m for m in office.slack.standing() if m.broadcast]) == 5
        assert len([m for m in office.slack.standing("C1", None) if m.to is None]) == 5


@promise("slack:once")
@pytest.mark.thorough
async def test_a_flood_of_steps_makes_few_messages(temporal, tmp_path):
    calls = [("mail__list_customers", {"limit": n}) for n in range(1, 25)]
    policy = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
    budget = {"max_tool_calls": 200, "max_steps": 20}
    async with open_office(temporal, tmp_path, "http", policy=policy) as office:
        replies = [mail("a@x.example"), *(Reply(calls=calls) for _ in range(4))]
        handle, message = await office.asked(*replies, budget=budget)
        await office.slack.press(message, "backstay.approve", user=U1)
        result = await ended(handle)
        last = await office.slack.message("run.ended")
        steps = [m for m in office.thread(message) if "action.called" in m.shown or "run.ended" in m.shown]
        assert result["events_total"] > 90
        assert 1 < len(steps) <= 8
        assert last.thread_ts == message.thread_ts
