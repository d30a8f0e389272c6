"""A worker and our gateway in one local Slack, over HTTP or over socket mode."""

import asyncio
import os
import re
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from starlette.applications import Starlette

import opening
from backstay import connect
from backstay.settings import Settings
from backstay.testing import Reply
from gateways.slack.app import open_slack as open_door
from gateways.slack.serving import slack_routes
from tests.engine import PLANS, ROOT, Engine, Scripts, engine, pending
from tests.nursery.nursery import COMMAND
from tests.serving import served
from tests.sizes import FULL
from tests.slack_server import Message, Slack, open_slack

MODES = ("http", "socket")
ONCE = MODES if FULL else ("http",)
"""For what is the same wherever a click comes from: one way in is enough, and `make soak` takes both."""
BOTH_WAYS = pytest.mark.parametrize("office", MODES, indirect=True)
OVER_HTTP = pytest.mark.parametrize("office", ["http"], indirect=True)
"""For what is there only where Slack calls us, since in socket mode we listen at no address."""
KEY = "the key that workers and gateways share"
ANA, BO = "ana@example.com", "bo@example.com"
U1, U2, U3 = "U1", "U2", "U3"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
repeated: allow
accepting: {approvers: [ana@example.com]}
groups: {"@boss": [bo@example.com]}
ask:
  - {tool: mail.send_email, when: {to: {ends_with: "@two.example"}}, approvers: [ana@example.com, bo@example.com],
     quorum: 2}
  - {tool: mail.send_email, when: {to: {ends_with: "@ana.example"}}, approvers: [ana@example.com]}
  - {tool: mail.send_email, when: {to: {ends_with: "@bo.example"}}, approvers: [bo@example.com]}
  - {tool: mail.send_email, when: {to: {ends_with: "@soon.example"}}, approvers: [ana@example.com, bo@example.com,
     OTHERS], timeout: 6s, remind_after: 2s}
  - {tool: mail.send_email, when: {to: {ends_with: "@boss.example"}}, approvers: [ana@example.com], timeout: 4s,
     on_expiry: escalate, escalate_to: ["@boss"]}
  - {tool: mail.send_email, when: {to: {ends_with: "@first.example"}}, approvers: [ana@example.com], timeout: 15s,
     on_expiry: escalate}
  - {tool: mail.send_email, when: {to: {ends_with: "@second.example"}}, approvers: [bo@example.com], timeout: 15s,
     on_expiry: escalate, escalate_to: [ana@example.com]}
  - {tool: mail.send_email, when: {to: {ends_with: "@anybody.example"}}, timeout: 8s, on_expiry: escalate,
     escalate_to: ["@boss"]}
"""
POLICY = POLICY.replace("OTHERS", ", ".join(f"p{n}@example.com" for n in range(60)))
FINISH = Reply(calls=[("finish", {"summary": "done"})])


@dataclass
class Office:
    """Hold what a test of the gateway needs."""

    slack: Slack
    engine: Engine
    scripts: Scripts
    settings: Settings
    stack: AsyncExitStack
    address: str | None = None
    """Where the process listens that was started last; None where it listens nowhere."""

    async def asked(self, *replies: Reply, count: int = 1, **fields: Any) -> tuple[Any, Message]:
        """Start a run, and return it and the message of the last of so many requests."""
        task = self.scripts.task(*replies, FINISH, **fields)
        handle = await self.engine.start(task)
        await pending(handle, count)
        return handle, await self.message(task["text"])

    async def message(self, text: str, within_s: float = 150) -> Message:
        """Wait for the newest message with buttons, or without any more, that belongs to a task."""

        def newest():
            found = [m for m in self.slack.standing() if m.broadcast and text in m.shown]
            return found[-1] if found else None

        return await self.slack.until(newest, within_s)

    async def whisper(self, containing: str, after: int = 0) -> Message:
        """Wait for what one person alone is told, which makes no mention, no link and no format."""

        def heard():
            found = [m for m in self.slack.standing() if m.to is not None][after:]
            return next((m for m in found if containing in m.text), None)

        message = await self.slack.until(heard)
        assert message.blocks
        assert "mrkdwn" not in str(message.blocks)
        return message

    def whispers(self) -> int:
        return sum(m.to is not None for m in self.slack.standing())

    def thread(self, message: Message) -> list[Message]:
        """Return what stands in the thread of a message, the message itself included."""
        return self.slack.standing(message.channel, message.thread_ts)

    def sent(self, handle: Any) -> list[str]:
        """Return the recipients of the mails of a run."""
        query = "SELECT json_extract(arguments, '$.to') FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?"
        return [row[0] for row in self.engine.mailbox.rows(f"{query} ORDER BY id", f"{handle.id}/%")]


def mail(*recipients: str, body: str = "Hello", subject: str = "s") -> Reply:
    calls = [("mail__send_email", {"to": to, "subject": subject, "body": body}) for to in recipients]
    return Reply(text="I write.", calls=calls)


def decisions(result: dict[str, Any]) -> list[tuple[str, str, bool]]:
    """Return what was decided in a run, as its Result tells it: verdict, by whom, and whether that was verified."""
    told = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    return [(data["verdict"], data["by"], data["verified"]) for data in told]


def slack_settings(slack: Slack, mode: str) -> dict[str, Any]:
    """Return the settings of a gateway in this Slack."""
    more = {"slack_app_token": slack.app_token} if mode == "socket" else {"slack_signing_secret": slack.signing_secret}
    return {
        "slack_bot_token": slack.bot_token,
        "slack_api_url": slack.api_url,
        "slack_channel": "C1",
        "approver_key": KEY,
        **more,
    }


@asynccontextmanager
async def door(engine_: Engine, slack: Slack, settings: Settings, *, look_s: float = 0.3, key: str = KEY):
    """Open our gateway in this process, where the worker of the engine is."""
    async with (
        opening.open_store(settings) as store,
        connect(client=engine_.client, task_queue=settings.task_queue, approver_key=key) as backstay,
        open_door(settings, store, backstay, look_s=look_s) as opened,
        AsyncExitStack() as stack,
    ):
        if opened.app is not None:
            address = await stack.enter_async_context(served(Starlette(routes=list(slack_routes(opened.app)))))
            slack.events_url = f"{address}/slack/events"
        yield opened


@asynccontextmanager
async def open_office(
    temporal,
    folder,
    mode: str,
    *,
    policy: str = POLICY,
    profiles: str = PLANS,
    gateway: bool = True,
    organization: str = "",
    **settings: Any,
):
    """Open a worker, a Slack and the gateway between them."""
    async with AsyncExitStack() as stack:
        address = None if mode == "socket" else "-"
        slack = await stack.enter_async_context(open_slack(events_url=address, organization=organization))
        scripts = Scripts()
        options = {**slack_settings(slack, mode), **settings}
        opened = await stack.enter_async_context(
            engine(temporal, folder, scripts, policy=policy, profiles=profiles, cached=200, **options)
        )
        if gateway:
            await stack.enter_async_context(door(opened, slack, opened.settings))
        yield Office(slack, opened, scripts, opened.settings, stack)


@asynccontextmanager
async def process(office, mode, nursery, program="slack"):
    """Start `backstay slack`, or the page with Slack in it, as a fork; yields the process once it serves."""
    settings, slack = office.settings, office.slack
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TEMPORAL_ADDRESS": office.engine.client.service_client.config.target_host,
        "BACKSTAY_TASK_QUEUE": settings.task_queue,
        "BACKSTAY_HOME": str(settings.home),
        "BACKSTAY_APPROVER_KEY": KEY,
        "BACKSTAY_SLACK_API_URL": slack.api_url,
        "BACKSTAY_SLACK_CHANNEL": "C1",
        "SLACK_BOT_TOKEN": slack.bot_token,
    }
    if mode == "socket":
        environment["SLACK_APP_TOKEN"] = slack.app_token
    else:
        environment["SLACK_SIGNING_SECRET"] = slack.signing_secret
    empty, log = settings.home.parent / "empty", settings.home.parent / f"{uuid.uuid4()}.log"
    empty.mkdir(exist_ok=True)
    running = await nursery.raised(COMMAND, program, "--port", "0", environment=environment, log=log, folder=empty)
    try:
        async with asyncio.timeout(150):
            while "ready: " not in (said := running.said()):
                assert not running.died.done(), said
                await asyncio.sleep(0.05)
        address = re.search(r"http://[\d.]+:\d+", said.partition("ready: ")[2])
        office.address = address and address[0]
        if mode == "http":
            slack.events_url = f"{office.address}/slack/events"
        yield running
    finally:
        await running.end()
