"""examples/slack_bot: a bot of its own, over a real worker and a local Slack."""

import asyncio
import hashlib
import hmac
import json
import os
import signal
import time
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest

from backstay.testing import Reply
from tests.docs.blocks import HOUSE
from tests.engine import ended, pending
from tests.ports import own_port
from tests.requirements import promise
from tests.signing import signed
from tests.slack_server import open_slack

BOT = HOUSE / "examples/slack_bot/bot.py"
APPROVER_KEY, WEBHOOK_KEY = "the key of workers and gateways", "the key of the receivers"
POLICY = 'ask: [{tool: "mail.send_email", approvers: ["ana@example.com"]}]'


def mail(body="how are you?"):
    return Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "hello", "body": body})])


FINISH = Reply(calls=[("finish", {"summary": "done"})])


async def tell(url, handle, event, request, *, key=WEBHOOK_KEY, age_s=0):
    """POST a notice as a worker would, or as somebody who pretends to be one."""
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
        "decision": None,
    }
    body, stamp = json.dumps(notice).encode(), str(int(time.time() - age_s))
    mac = hmac.new(key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Backstay-Timestamp": stamp, "Backstay-Signature": mac, "Backstay-Id": notice["id"]}
    async with aiohttp.ClientSession() as session, session.post(url, data=body, headers=headers) as answer:
        return answer.status


@asynccontextmanager
async def bot(temporal, nursery, folder):
    """Start the bot as a fork of what has imported its parts; yields the Slack it is in and the address of its hook."""
    async with open_slack() as slack:
        port = own_port()
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
        process = await nursery.raised(str(BOT), environment=environment, log=folder / "bot.log")
        try:
            slack.events_url = f"http://127.0.0.1:{port}/slack/events"
            async with asyncio.timeout(150):
                while True:
                    with suppress(OSError):
                        _, writer = await asyncio.open_connection("127.0.0.1", port)
                        writer.close()
                        break
                    assert not process.died.done(), process.said()
                    await asyncio.sleep(0.1)
            yield slack, f"http://127.0.0.1:{port}/hooks/backstay"
        finally:
            process.kill(signal.SIGTERM)
            await asyncio.wait_for(asyncio.shield(process.died), 150)


@promise("clients:bot-of-ones-own")
def test_the_bot_has_at_most_60_lines():
    assert len(BOT.read_text(encoding="utf-8").splitlines()) <= 60


def told_to(hook, **more):
    """Settings of a worker that tells the bot what its runs ask, and believes what the bot signs."""
    return {"notify_urls": [hook], "webhook_key": WEBHOOK_KEY, "approver_key": APPROVER_KEY, "policy": POLICY, **more}


@promise("clients:bot-proven")
async def test_what_a_person_presses_in_slack_reaches_the_run_proven(temporal, nursery, open_engine, tmp_path):
    async with (
        bot(temporal, nursery, tmp_path) as (slack, hook),
        open_engine([mail(), FINISH], **told_to(hook)) as engine,
    ):
        handle = await engine.start("write to a")
        asked = await slack.message("asked:")
        assert "mail.send_email {" in asked.shown
        assert '"to": "a@x.example"' in asked.shown
        assert "recall_email" in asked.shown
        assert asked.buttons == ["approve", "reject"]
        # Told once more, as after a lost answer, it asks no second time.
        (request,) = await pending(handle)
        assert await tell(hook, handle, "asked", request) == 200
        assert len(slack.standing()) == 1

        # The policy names Ana, who is in several workspaces. What Bo presses comes with a proof that it was Bo.
        slack.add_user("U1", "ana@example.com", enterprise_user={"teams": ["T9", "T0TEST"]})
        await slack.press(asked, "approve", user="U2")
        async with asyncio.timeout(150):
            while "approval.refused" not in json.dumps((await handle.query("timeline", {"after": 0}))["events"]):
                await asyncio.sleep(0.1)
        clicks = await asyncio.gather(slack.press(asked, "approve"), slack.press(asked, "approve"))
        assert [click.status for click in clicks] == [200, 200]
        result = await ended(handle)
        now = await slack.changed(asked, "approve by ana@example.com")
        assert (now.buttons, len(slack.standing())) == ([], 1)

    assert result["outcome"] == "completed"
    (event,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (event["data"]["by"], event["data"]["verified"]) == ("ana@example.com", True)
    assert engine.mailbox.requests("send_email") == 1


@promise("clients:bot-expired")
async def test_what_nobody_decides_in_time_is_said_where_it_was_asked(temporal, nursery, open_engine, tmp_path):
    policy = 'ask: [{tool: "mail.send_email", approvers: ["ana@example.com"], timeout: 3s}]'
    async with (
        bot(temporal, nursery, tmp_path) as (slack, hook),
        open_engine([mail(), FINISH], **told_to(hook, policy=policy)) as engine,
    ):
        handle = await engine.start("write to a")
        asked = await slack.message("asked:")
        assert (await slack.changed(asked, "expired:")).buttons == []
        result = await ended(handle)
    assert engine.mailbox.requests("send_email") == 0
    assert result["outcome"] == "completed"


@promise("clients:bot-forged")
async def test_forged_and_old_notices_and_people_without_a_confirmed_address_change_nothing(
    temporal, nursery, open_engine, tmp_path
):
    async with (
        bot(temporal, nursery, tmp_path) as (slack, hook),
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
        for more in (
            {"confirmed": False},
            {"team_id": "T9"},
            {"enterprise_user": {"teams": ["T9"]}},
            {"is_restricted": True},
        ):
            slack.add_user("U1", "ana@example.com", **more)
            before = len(slack.messages)
            await slack.press(asked, "approve")
            await slack.message("Only members with a confirmed e-mail address decide.", after=before)
        assert (await pending(handle))[0]["decided"] == []
        await handle.terminate("the test is over")


@promise("clients:bot-proven")
@pytest.mark.thorough
async def test_what_is_too_long_for_a_message_or_a_request_has_no_buttons(temporal, nursery, open_engine, tmp_path):
    several = Reply(calls=mail("word " * 300).calls * 3)
    async with (
        bot(temporal, nursery, tmp_path) as (slack, hook),
        open_engine([several, mail("x" * 2500)], **told_to(hook)) as engine,
    ):
        handle = await engine.start("write to a")
        asked = await slack.message("asked:")
        assert asked.buttons == []
        (request,) = await pending(handle)
        decision = {"request_id": request["id"], "verdict": "reject", "by": "ana@example.com"}
        await handle.execute_update("decide", await signed(handle, decision, key=APPROVER_KEY))
        assert (await slack.message("asked:", after=1)).buttons == []
        await handle.terminate("the test is over")


pytestmark = pytest.mark.timeout(400)
