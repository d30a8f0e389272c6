"""Nothing is posted twice: over answers that get lost, several processes, and processes that are killed.

We post by the same calls in both modes, so each of these is tried in one of them.
"""

import asyncio
import signal

import pytest

from backstay.testing import Reply
from tests.engine import ended, pending
from tests.slack.workspace import U1, decisions, door, mail, open_office, process

pytestmark = pytest.mark.timeout(240)


def shown(office, text):
    return [m for m in office.slack.standing() if m.broadcast and text in m.shown]


async def test_a_process_that_is_killed_after_it_posted_does_not_post_again(temporal, tmp_path):
    mode = "http"
    async with open_office(temporal, tmp_path, mode, gateway=False) as office:
        slack = office.slack
        async with process(office, mode) as first:
            # The answer of Slack is held back, so that the process dies between posting and recording.
            slack.hold("chat.postMessage", after=1)
            task = office.scripts.task(mail("a@ana.example"))
            handle = await office.engine.start(task)
            await pending(handle)
            message = await office.message(task["text"])
            first.send_signal(signal.SIGKILL)
            await first.wait()
        slack.release()
        async with process(office, mode) as second:
            await slack.until(lambda: slack.called("conversations.replies"), 150)
            await slack.until(lambda: slack.called("chat.update"), 150)
            assert len(shown(office, task["text"])) == 1
            await slack.press(message, "backstay.approve", user=U1)
            result = await ended(handle)
            await slack.changed(message, "Approve: by")
            second.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(second.wait(), 30) == 0
        assert decisions(result) == [("approve", "ana@example.com", True)]
        assert len(shown(office, task["text"])) == 1


async def test_what_slack_did_not_take_is_sent_later_and_once(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "http") as office:
        slack = office.slack
        slack.refuse("chat.postMessage", "ratelimited", times=2, status=429, headers={"Retry-After": "1"})
        handle, message = await office.asked(mail("a@ana.example"))
        assert len(shown(office, message.text)) <= 1
        slack.refuse("chat.update", "internal_error", times=1)
        await slack.press(message, "backstay.approve", user=U1)
        assert (await ended(handle))["outcome"] == "completed"
        assert (await slack.changed(message, "Approve: by")).buttons == []
        heads = [m for m in slack.standing("C1", None) if m.to is None]
        assert len(heads) == 1


async def test_two_processes_post_a_request_once_and_one_that_comes_late_shows_what_waits(temporal, tmp_path):
    async with open_office(temporal, tmp_path, "socket", gateway=False) as office:
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
            for handle in [early, *handles]:
                await handle.terminate("the test is over")
        assert len([m for m in office.slack.standing() if m.broadcast]) == 5
        assert len([m for m in office.slack.standing("C1", None) if m.to is None]) == 5


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
        assert len(result["events"]) > 90
        assert 1 < len(steps) <= 8
        assert last.thread_ts == message.thread_ts
