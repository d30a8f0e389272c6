"""A local server that speaks Slack's Web API, signs what it sends, and acts as the people in its workspace.

An app under test is given `api_url` as the address of the Web API, and is reached over HTTP at `events_url`, or over
socket mode where that is None. Everything that the app calls is in `calls`; messages and modals are kept as Slack would
keep them, and what Slack would refuse is refused. A test presses buttons, fills in modals and writes commands:

    async with open_slack() as slack:
        ... start the app with slack.api_url, slack.bot_token, slack.signing_secret (and slack.app_token) ...
        message = await slack.message(containing="May I")
        delivery = await slack.press(message, "backstay.approve", user="U1")
        again = await slack.repeat(delivery)
        view = await slack.view()
        await slack.submit(view, {"comment": "too risky"}, user="U1")
"""

import asyncio
import contextlib
import itertools
import json
import secrets
import socket
import time
import urllib.parse
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
from aiohttp import WSMsgType, web
from slack_sdk.signature import SignatureVerifier

from tests.slack_blocks import faults_of, faults_of_view, filled, find, numbered, text_of
from tests.slack_web_api import answer_of

WITHIN_S = 30
TEAM, APP, BOT_USER, BOT = "T0TEST", "A0TEST", "U0BOT", "B0BOT"
JSON_FIELDS = ("blocks", "attachments", "view", "metadata", "files", "prompts")


@dataclass(frozen=True)
class Call:
    """What the app asked of the Web API, and what it was told."""

    method: str
    arguments: dict[str, Any]
    answer: dict[str, Any]


@dataclass(frozen=True)
class Message:
    """A message as somebody saw it once; a newer version of it may stand there now."""

    channel: str
    ts: str
    text: str
    blocks: list[dict[str, Any]]
    thread_ts: str | None = None
    edited: int = 0
    """How often it has been changed."""
    to: str | None = None
    """The only person who sees it."""
    metadata: dict[str, Any] | None = None
    """What the app has attached to it, which people do not see."""
    broadcast: bool = False
    """Whether an answer in a thread is shown in the channel, too."""

    @property
    def shown(self):
        """Every text in it, one a line."""
        return text_of(self.blocks) if self.blocks else self.text

    @property
    def buttons(self):
        """The action ids that can be pressed, in order."""
        return [each["action_id"] for block in self.blocks for each in _pressable(block)]


@dataclass(frozen=True)
class View:
    """A modal as somebody saw it once."""

    id: str
    user: str
    body: dict[str, Any]

    @property
    def shown(self):
        return text_of([self.body.get("title"), self.body["blocks"]])


@dataclass(frozen=True)
class Delivery:
    """What was sent to the app, and what it answered."""

    kind: str
    """`interactive`, `slash_commands` or `events_api`."""
    payload: dict[str, Any]
    status: int = 0
    """Of the HTTP answer; 200 for an envelope that was acknowledged."""
    answer: Any = None
    raw: tuple[bytes, dict[str, str]] | None = None
    """The very bytes and headers, over HTTP."""


@dataclass
class _Refusal:
    error: str
    status: int
    headers: dict[str, str]
    left: int
    plain: bool


def _pressable(block):
    return [each for each in block.get("elements", [block.get("accessory")]) if each and each.get("type") == "button"]


class AppDidNotAnswer(AssertionError):
    """Say that the app took too long, or was not there."""


@dataclass
class Slack:
    """One workspace with one app in it."""

    url: str
    events_url: str | None = None
    """Where the app listens; None: over socket mode."""
    bot_token: str = "bot-token-of-the-test"
    app_token: str = "app-token-of-the-test"
    signing_secret: str = "signing-secret-of-the-test"
    organization: str = ""
    """The Enterprise organization that the workspace is a part of, if any."""
    calls: list[Call] = field(default_factory=list)
    users: dict[str, dict[str, Any]] = field(default_factory=dict)
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    """As they stand now, by channel and time; deleted ones are gone."""
    views: dict[str, View] = field(default_factory=dict)
    """The modals that are open."""
    responses: list[dict[str, Any]] = field(default_factory=list)
    """What came to a response URL."""
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    _refusals: dict[str, _Refusal] = field(default_factory=dict)
    _held: dict[str, int] = field(default_factory=dict)
    _dropped: dict[str, int] = field(default_factory=dict)
    _released: asyncio.Event = field(default_factory=asyncio.Event)
    _triggers: dict[str, tuple[str, float]] = field(default_factory=dict)
    _response_urls: dict[str, tuple[str, str | None, int]] = field(default_factory=dict)
    _acks: dict[str, asyncio.Future[Any]] = field(default_factory=dict)
    _clock: Any = field(default_factory=lambda: itertools.count(int(time.time() * 1000)))

    def __post_init__(self):
        self.add_user("U1", "ana@example.com", name="ana")
        self.add_user("U2", "bo@example.com", name="bo")
        self.add_channel("C1", "approvals")

    @property
    def api_url(self):
        return f"{self.url}/api/"

    # What the workspace holds.

    def add_user(self, user, email, *, name=None, confirmed=True, **more):
        """Add a person, or change one; `more` such as `is_restricted=True`, `deleted=True`, `team_id="T9"`.

        Of a person with an `enterprise_user` Slack says no `team_id`, unless that is given.
        """
        profile = {"real_name": name or user, "display_name": name or user} | ({"email": email} if email else {})
        self.users[user] = {
            "id": user,
            **({} if "enterprise_user" in more else {"team_id": TEAM}),
            "name": name or user.lower(),
            "real_name": name or user,
            "profile": profile,
            "is_email_confirmed": confirmed,
            "is_bot": False,
            "is_app_user": False,
            "is_restricted": False,
            "is_ultra_restricted": False,
            "deleted": False,
            **more,
        }

    def add_channel(self, channel, name, **more):
        """Add a channel that the app is in."""
        self.channels[channel] = {"id": channel, "name": name, "is_member": True, "is_archived": False, **more}

    def refuse(self, method, error, *, times=1, status=200, headers=None, plain=False):
        """Refuse the next calls of a method, such as with `"ratelimited", status=429, headers={"Retry-After": "1"}`.

        `plain`: as what stands in front of Slack answers, in plain text unless `headers` name another Content-Type.
        """
        self._refusals[method] = _Refusal(error, status, headers or {}, times, plain)

    def hold(self, method, *, after=0):
        """Take the calls of a method, beyond the first so many, and answer them only when they are released."""
        self._released.clear()
        self._held[method] = after

    def release(self):
        """Answer what is held, and hold nothing more."""
        self._held.clear()
        self._released.set()

    def drop(self, method, *, times=1):
        """Take the next calls of a method, and break the connection instead of answering."""
        self._dropped[method] = times

    def called(self, method):
        """Return the arguments of the calls of a method that were accepted."""
        return [call.arguments for call in self.calls if call.method == method and call.answer["ok"]]

    def standing(self, channel=None, thread_ts=...):
        """Return the messages as they stand now, oldest first."""
        return [
            message
            for message in self.messages.values()
            if channel in (None, message.channel) and (thread_ts is ... or message.thread_ts == thread_ts)
        ]

    def now(self, message):
        """Return what stands now in the place of a message, None where it was deleted."""
        return self.messages.get((message.channel, message.ts))

    async def until(self, found, within_s=WITHIN_S):
        """Wait until `found()` returns something true, and return that."""
        try:
            async with asyncio.timeout(within_s):
                while not (result := found()):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            said = "\n".join(f"{call.method}: {call.answer.get('error', 'ok')}" for call in self.calls[-10:])
            shown = "\n--\n".join(message.shown for message in self.standing()[-3:])
            raise AssertionError(f"it did not happen; the last calls:\n{said}\nthe last messages:\n{shown}") from None
        return result

    async def message(self, containing="", *, channel=None, after=0, within_s=WITHIN_S):
        """Wait for the newest standing message with that text; of the messages beyond the first `after` ones."""

        def newest():
            found = [each for each in self.standing(channel)[after:] if containing in f"{each.text}\n{each.shown}"]
            return found[-1] if found else None

        return await self.until(newest, within_s)

    async def changed(self, message, containing="", *, within_s=WITHIN_S):
        """Wait until a message has been changed to one with that text."""

        def newer():
            now = self.now(message)
            return now if now and now.edited > message.edited and containing in f"{now.text}\n{now.shown}" else None

        return await self.until(newer, within_s)

    async def shows(self, message, containing, *, within_s=WITHIN_S):
        """Wait until a message has that text, also if it had it when it was first seen."""

        def now():
            found = self.now(message)
            return found if found and containing in f"{found.text}\n{found.shown}" else None

        return await self.until(now, within_s)

    async def view(self, containing="", *, user=None, within_s=WITHIN_S):
        """Wait for an open modal, and return the newest one."""

        def newest():
            found = [view for view in self.views.values() if containing in view.shown and user in (None, view.user)]
            return found[-1] if found else None

        return await self.until(newest, within_s)

    # What people do.

    async def press(self, place, action_id, *, user="U1", value=None, values=None, choose=None, **how):
        """Press a button in a message or a modal, as it was seen then.

        `value`: of the button, where several have the id. `choose`: the value of the option, of a menu. `values`: what
        was filled in beside it.
        """
        blocks = place.blocks if isinstance(place, Message) else place.body["blocks"]
        block, element = find(blocks, action_id, value)
        pressed = {key: element[key] for key in ("type", "action_id", "value", "text", "style") if key in element}
        if choose is not None:
            options = element.get("options", [])
            pressed["selected_option"] = next(option for option in options if option["value"] == choose)
        action = {**pressed, "block_id": block["block_id"], "action_ts": self._now()}
        payload = {**self._envelope("block_actions", user), "actions": [action]}
        state = {"values": filled(_optional(blocks), values or {})}
        if isinstance(place, Message):
            where = {"channel_id": place.channel, "message_ts": place.ts, "type": "message"}
            payload |= {
                "container": {**where, "is_ephemeral": place.to is not None},
                "channel": {"id": place.channel, "name": self.channels[place.channel]["name"]},
                "message": self._as_sent(place),
                "state": state,
                "response_url": self._response_url(place.channel, place.ts),
            }
        else:
            payload["container"] = {"type": "view", "view_id": place.id}
            payload["view"] = {**place.body, "state": state}
        return await self.deliver("interactive", payload, **how)

    async def submit(self, view, values=None, *, user=None, **how):
        """Fill in a modal and send it; what the app answers happens to the modal."""
        state = {"values": filled(view.body["blocks"], values or {})}
        payload = self._envelope("view_submission", user or view.user)
        payload |= {"view": {**view.body, "state": state}, "response_urls": []}
        delivery = await self.deliver("interactive", payload, **how)
        if delivery.status == 200:
            self._after_submission(view, delivery.answer)
        return delivery

    async def close(self, view, **how):
        """Close a modal; the app is told where it asked for that."""
        self.views.pop(view.id, None)
        payload = {**self._envelope("view_closed", view.user), "view": view.body, "is_cleared": False}
        return await self.deliver("interactive", payload, **how) if view.body.get("notify_on_close") else None

    async def command(self, text, *, name="/backstay", user="U1", channel="C1", **how):
        """Write a command."""
        payload = {
            "token": "deprecated",
            "team_id": TEAM,
            "team_domain": "test",
            "channel_id": channel,
            "channel_name": self.channels[channel]["name"],
            "user_id": user,
            "user_name": self.users.get(user, {}).get("name", user),
            "command": name,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "response_url": self._response_url(channel, None, user),
            "trigger_id": self._trigger(user),
        }
        delivery = await self.deliver("slash_commands", payload, **how)
        if delivery.status == 200 and delivery.answer:
            said = delivery.answer if isinstance(delivery.answer, dict) else {"text": delivery.answer}
            self._say(channel, said, to=None if said.get("response_type") == "in_channel" else user)
        return delivery

    async def event(self, event, **how):
        """Send an event, such as `{"type": "app_mention", "user": "U1", "text": "...", "channel": "C1"}`."""
        stamp = {"ts": self._now(), "event_ts": self._now()} if "user" in event else {}
        payload = {
            "token": "deprecated",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": {**stamp, **event},
            "type": "event_callback",
            "event_id": f"Ev{secrets.token_hex(5)}",
            "event_time": int(time.time()),
            "authorizations": [{"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "enterprise_id": None}],
        }
        return await self.deliver("events_api", payload, **how)

    # How it reaches the app.

    async def deliver(self, kind, payload, *, secret=None, age_s=0, headers=None, within_s=WITHIN_S):
        """Send something to the app and wait for its answer.

        `secret` and `age_s` forge the signature, or its time; `headers` are sent besides, both over HTTP only.
        """
        if self.events_url is None:
            return await self._over_socket(Delivery(kind, payload), within_s)
        if kind == "events_api":
            body, content = json.dumps(payload).encode(), "application/json"
        else:
            form = payload if kind == "slash_commands" else {"payload": json.dumps(payload)}
            body, content = urllib.parse.urlencode(form).encode(), "application/x-www-form-urlencoded"
        stamp = str(int(time.time() - age_s))
        signature = SignatureVerifier(secret or self.signing_secret).generate_signature(timestamp=stamp, body=body)
        signed = {"Content-Type": content, "X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": signature}
        return await self._over_http(Delivery(kind, payload, raw=(body, {**signed, **(headers or {})})), within_s)

    async def repeat(self, delivery, *, reason="http_timeout", attempt=1, within_s=WITHIN_S):
        """Send the very same once more, as Slack does when it heard no answer in time."""
        if delivery.raw is None:
            return await self._over_socket(delivery, within_s, attempt=attempt, reason=reason)
        body, headers = delivery.raw
        retried = {**headers, "X-Slack-Retry-Num": str(attempt), "X-Slack-Retry-Reason": reason}
        return await self._over_http(replace(delivery, raw=(body, retried)), within_s)

    async def _over_http(self, delivery, within_s):
        body, headers = delivery.raw
        try:
            timeout = aiohttp.ClientTimeout(total=within_s)
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
                session.post(self.events_url, data=body, headers=headers) as answer,
            ):
                text = await answer.text()
                is_json = answer.content_type == "application/json"
                said = json.loads(text) if is_json and text else text or None
                return replace(delivery, status=answer.status, answer=said)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise AppDidNotAnswer(f"{self.events_url}: {error!r}") from None

    async def _over_socket(self, delivery, within_s, *, attempt=0, reason=""):
        await self.until(lambda: self.sockets, within_s)
        number = secrets.token_hex(8)
        envelope = {
            "envelope_id": number,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api" or attempt:
            envelope |= {"retry_attempt": attempt, "retry_reason": reason}
        self._acks[number] = asyncio.get_running_loop().create_future()
        await self.sockets[-1].send_json(envelope)
        try:
            answer = await asyncio.wait_for(self._acks[number], within_s)
        except TimeoutError:
            raise AppDidNotAnswer(f"no acknowledgement of {delivery.kind}") from None
        finally:
            del self._acks[number]
        return replace(delivery, status=200, answer=answer)

    async def disconnect(self, reason="refresh_requested"):
        """Ask the app to connect anew, and end the connections that it has."""
        ending, self.sockets = self.sockets, []
        for link in ending:
            await link.send_json({"type": "disconnect", "reason": reason})
            await link.close()

    def _envelope(self, kind, user):
        person = self.users.get(user, {"name": user, "team_id": TEAM})
        name, of = person["name"], person.get("team_id", self.organization)
        return {
            "type": kind,
            "team": {"id": TEAM, "domain": "test"},
            "user": {"id": user, "username": name, "name": name, "team_id": of},
            "api_app_id": APP,
            "token": "deprecated",
            "trigger_id": self._trigger(user),
            "enterprise": None,
            "is_enterprise_install": False,
        }

    def _trigger(self, user):
        trigger = f"{next(self._clock)}.{secrets.token_hex(8)}"
        self._triggers[trigger] = (user, time.monotonic())
        return trigger

    def _response_url(self, channel, ts, user=None):
        secret = secrets.token_hex(12)
        self._response_urls[secret] = (channel, ts, 5)
        return f"{self.url}/response/{secret}" + (f"?user={user}" if user else "")

    def _now(self):
        moment = next(self._clock)
        return f"{moment // 1000}.{moment % 1000:03}000"

    def _as_sent(self, message):
        sent = {"type": "message", "user": BOT_USER, "bot_id": BOT, "app_id": APP, "team": TEAM, "ts": message.ts}
        thread = {"thread_ts": message.thread_ts} if message.thread_ts else {}
        attached = {"metadata": message.metadata} if message.metadata else {}
        return {**sent, "text": message.text, "blocks": message.blocks, **thread, **attached}

    def _after_submission(self, view, answer):
        said = answer if isinstance(answer, dict) else {}
        match said.get("response_action"):
            case "errors":
                known = {block["block_id"] for block in view.body["blocks"] if block["type"] == "input"}
                assert set(said["errors"]) <= known, f"errors for blocks that are no inputs: {said['errors']}"
            case "update" | "push" as how:
                assert not (faults := faults_of_view(said["view"])), faults
                if how == "update":
                    self.views.pop(view.id, None)
                self.open_view(said["view"], view.user)
            case "clear":
                self.views.clear()
            case _:
                self.views.pop(view.id, None)

    # What the Web API does; `web_api` finds a method by its name.

    def open_view(self, body, user, view_id=None):
        """Keep a modal as Slack would."""
        number = view_id or f"V{secrets.token_hex(5)}"
        kept = {
            **deepcopy(body),
            "id": number,
            "team_id": TEAM,
            "app_id": APP,
            "bot_id": BOT,
            "blocks": numbered(body["blocks"]),
            "state": {"values": {}},
            "hash": f"{next(self._clock)}.{secrets.token_hex(4)}",
            "private_metadata": body.get("private_metadata", ""),
            "callback_id": body.get("callback_id", ""),
            "root_view_id": number,
            "previous_view_id": None,
        }
        self.views[number] = View(number, user, kept)
        return kept

    def _say(self, channel, said, *, to=None, ts=None):
        before = self.messages.get((channel, ts)) if ts else None
        thread = before.thread_ts if before else said.get("thread_ts")
        edited = before.edited + 1 if before else 0
        blocks = numbered(said.get("blocks"))
        attached = said.get("metadata", before.metadata if before else None)
        broadcast = before.broadcast if before else bool(said.get("reply_broadcast"))
        place, text = ts or self._now(), said.get("text") or ""
        message = Message(channel, place, text, blocks, thread, edited, to, attached, broadcast)
        self.messages[channel, message.ts] = message
        return message


SLACK = web.AppKey("slack", Slack)


def _optional(blocks):
    """Inputs beside a button need not be filled in when it is pressed."""
    return [{**block, "optional": True} for block in blocks]


async def _api(request):
    slack, method = request.app[SLACK], request.match_info["method"]
    given = await (request.json() if request.content_type == "application/json" else request.post())
    arguments = {**request.query, **given}
    for name in JSON_FIELDS:
        if isinstance(arguments.get(name), str):
            arguments[name] = json.loads(arguments[name])
    token = request.headers.get("Authorization", "").removeprefix("Bearer ") or arguments.pop("token", "")
    refusal, headers, status = slack._refusals.get(method), {}, 200
    if refusal and refusal.left:
        refusal.left -= 1
        answer, status, headers = {"ok": False, "error": refusal.error}, refusal.status, refusal.headers
    elif token != (slack.app_token if method == "apps.connections.open" else slack.bot_token):
        answer = {"ok": False, "error": "invalid_auth" if token else "not_authed"}
    else:
        answer = answer_of(slack, method, arguments)
    slack.calls.append(Call(method, arguments, answer))
    if not answer["ok"] and refusal and refusal.plain:
        headers = {"Content-Type": "text/plain", **headers}
        return web.Response(body=answer["error"].encode("latin-1"), status=status, headers=headers)
    if slack._dropped.get(method) and answer["ok"]:
        slack._dropped[method] -= 1
        request.transport.abort()
    if method in slack._held and answer["ok"]:
        slack._held[method] -= 1
        if slack._held[method] < 0:
            await slack._released.wait()
    return web.json_response(answer, status=status, headers=headers)


async def _response(request):
    """Take what comes to a response URL, five times at most."""
    slack, secret = request.app[SLACK], request.match_info["secret"]
    channel, ts, left = slack._response_urls.get(secret, ("", None, 0))
    if not left:
        return web.json_response({"ok": False, "error": "used_url"}, status=404)
    said = await request.json()
    if "blocks" in said and (faults := faults_of(said["blocks"])):
        return web.json_response({"ok": False, "error": "invalid_blocks", "errors": faults}, status=400)
    slack._response_urls[secret] = (channel, ts, left - 1)
    slack.responses.append(said)
    if ts and said.get("delete_original"):
        slack.messages.pop((channel, ts), None)
    elif ts and said.get("replace_original"):
        slack._say(channel, said, ts=ts)
    else:
        in_channel = said.get("response_type") == "in_channel"
        slack._say(channel, said, to=None if in_channel else request.query.get("user", "somebody"))
    return web.json_response({"ok": True})


async def _upload(request):
    kept = request.app[SLACK].files[request.match_info["file"]]
    given = await request.post() if request.content_type == "multipart/form-data" else None
    kept["content"] = next(iter(given.values())).file.read() if given else await request.read()
    return web.Response(text=f"OK - {len(kept['content'])}")


async def _link(request):
    """Hold a connection of socket mode."""
    slack, link = request.app[SLACK], web.WebSocketResponse()
    await link.prepare(request)
    hello = {"type": "hello", "num_connections": len(slack.sockets) + 1, "connection_info": {"app_id": APP}}
    await link.send_json(hello)
    slack.sockets.append(link)
    async for said in link:
        if said.type is WSMsgType.TEXT:
            acknowledged = json.loads(said.data)
            waiting = slack._acks.get(acknowledged.get("envelope_id"))
            if waiting and not waiting.done():
                waiting.set_result(acknowledged.get("payload"))
    with contextlib.suppress(ValueError):
        slack.sockets.remove(link)
    return link


@contextlib.asynccontextmanager
async def open_slack(**options):
    """Serve a workspace on a free port of this machine until the block ends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        slack = Slack(f"http://127.0.0.1:{listener.getsockname()[1]}", **options)
        app = web.Application(client_max_size=2**26)
        app[SLACK] = slack
        app.router.add_route("*", "/api/{method}", _api)
        app.router.add_post("/response/{secret}", _response)
        app.router.add_post("/upload/{file}", _upload)
        app.router.add_get("/link", _link)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            yield slack
        finally:
            for link in list(slack.sockets):
                await link.close()
            await runner.cleanup()
