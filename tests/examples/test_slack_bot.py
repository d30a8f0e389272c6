"""examples/slack_bot: a bot of its own, over a real worker and a local Slack."""

import asyncio
import hashlib
import hmac
import json
import os
import sys
import time
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from backstay.testing import Reply
from tests.docs.blocks import HOUSE
from tests.engine import ended, pending
from tests.serving import free_port
from tests.slack_server import open_slack

BOT = HOUSE / "examples/slack_bot/bot.py"
APPROVER_KEY, WEBHOOK_KEY = "the key of workers and gateways", "the key of the receivers"
POLICY = 'ask: [{tool: "mail.send_email", approvers: ["ana@example.com"]}]'


def mail(body="how are you?"):
    return Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "hello", "body": body})])


FINISH = Reply(calls=[("finish", {"summary": "done"})])


async def tell(url, handle, event, request, *, key=WEBHOOK_KEY, age_s=0, decision=None):
    """POST a notice as a worker does."""
    status = await handle.query("status")
    notice = {
        "version": 2,
        "id": f"{handle.id}/{event}",
        "sequence": 1,
        "event": event,
        "namespace": status["namespace"],
        "workflow_id": handle.id,
        "run_id": status["run_id"],
        "request": request,
        "decision": decision,
    }
    body, stamp = json.dumps(notice).encode(), str(int(time.time() - age_s))
    mac = hmac.new(key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Backstay-Timestamp": stamp, "Backstay-Signature": mac, "Backstay-Id": notice["id"]}
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        return answer.status


@asynccontextmanager
async def bot(temporal):
    """Start the bot as a program of its own; yields the Slack it is in and the address of its hook."""
    async with open_slack() as slack:
        port = free_port()
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(HOUSE),
            "PORT": str(port),
            "SLACK_API_URL": slack.api_url,
            "SLACK_BOT_TOKEN": slack.bot_token,
            "SLACK_SIGNING_SECRET": slack.signing_secret,
            "SLACK_CHANNEL": "C1",
            "BACKSTAY_APPROVER_KEY": APPROVER_KEY,
            "BACKSTAY_WEBHOOK_KEY": WEBHOOK_KEY,
            "TEMPORAL_ADDRESS": temporal.service_client.config.target_host,
        }
        process = await asyncio.create_subprocess_exec(sys.executable, str(BOT), env=environment)
        try:
            slack.events_url = f"http://127.0.0.1:{port}/slack/events"
            async with asyncio.timeout(60):
                while True:
                    with suppress(OSError):
                        _, writer = await asyncio.open_connection("127.0.0.1", port)
                        writer.close()
                        break
                    assert process.returncode is None
                    await asyncio.sleep(0.1)
            yield slack, f"http://127.0.0.1:{port}/hooks/backstay"
        finally:
            with suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


def test_the_bot_has_at_most_60_lines():
    assert len(BOT.read_text(encoding="utf-8").splitlines()) <= 60


async def test_what_a_person_presses_in_slack_reaches_the_run_proven(temporal, open_engine):
    rules = [mail(), FINISH]
    async with bot(temporal) as (slack, hook), open_engine(rules, policy=POLICY, approver_key=APPROVER_KEY) as engine:
        handle = await engine.start("write to a")
        (request,) = await pending(handle)
        assert await tell(hook, handle, "asked", request) == 200
        asked = await slack.message("asked:")
        assert "mail.send_email" in asked.shown
        assert "recall" in asked.shown
        assert asked.buttons == ["approve", "reject"]

        # Told once more, as after a lost answer, it asks no second time.
        assert await tell(hook, handle, "asked", request) == 200
        assert len(slack.standing()) == 1

        await slack.press(asked, "approve", user="U2")
        async with asyncio.timeout(30):
            while "approval.refused" not in json.dumps((await handle.query("timeline", {"after": 0}))["events"]):
                await asyncio.sleep(0.1)
        await asyncio.gather(slack.press(asked, "approve"), slack.press(asked, "approve"))
        result = await ended(handle)
        decided = {"verdict": "approve", "by": "ana@example.com", "verified": True}
        assert await tell(hook, handle, "decided", request, decision=decided) == 200
        now = await slack.changed(asked, "approve by ana@example.com")
        assert now.buttons == []

    assert result["outcome"] == "completed"
    (event,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (event["data"]["by"], event["data"]["verified"]) == ("ana@example.com", True)
    assert engine.mailbox.requests("send_email") == 1


async def test_forged_and_old_notices_and_people_without_a_confirmed_address_change_nothing(temporal, open_engine):
    async with (
        bot(temporal) as (slack, hook),
        open_engine([mail()], policy=POLICY, approver_key=APPROVER_KEY) as engine,
    ):
        handle = await engine.start("write to a")
        (request,) = await pending(handle)
        assert await tell(hook, handle, "asked", request, key="another") == 401
        assert await tell(hook, handle, "asked", request, age_s=600) == 401
        assert slack.standing() == []

        await tell(hook, handle, "asked", request)
        asked = await slack.message("asked:")
        assert (await slack.press(asked, "approve", secret="another")).status == 401
        slack.add_user("U1", "ana@example.com", confirmed=False)
        await slack.press(asked, "approve")
        await slack.message("Confirm your e-mail address first.")
        assert (await pending(handle))[0]["decided"] == []
        await handle.terminate("the test is over")


async def test_what_is_too_long_for_a_message_has_no_buttons(temporal, open_engine):
    async with bot(temporal) as (slack, hook), open_engine([mail("x " * 3000)], policy=POLICY) as engine:
        handle = await engine.start("write to a")
        (request,) = await pending(handle)
        request["question"] *= 200
        assert await tell(hook, handle, "asked", request) == 200
        assert (await slack.message("asked:")).buttons == []
        await handle.terminate("the test is over")


pytestmark = pytest.mark.timeout(180)
