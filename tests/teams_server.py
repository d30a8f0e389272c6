"""A local stand-in for what Bot Framework and Teams are to a bot.

It publishes keys and signs what it sends, gives out tokens, keeps the cards of conversations and says who their members
are. A test presses buttons as a member, with what is filled in of the card:

    async with open_teams() as teams:
        ... start the bot with teams.settings, and set teams.bot to where it listens ...
        card = await teams.card("May this call be made?")
        await teams.press(card, "Approve", user="ana")
"""

import asyncio
import itertools
import json
import time
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.utils import base64url_encode
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from examples.teams_bot.connector import ISSUER, SCOPE, BotSettings
from tests.serving import served

APP, SECRET, TENANT, OTHER_TENANT, CONVERSATION = "app-1", "secret-of-the-app", "tenant-1", "tenant-2", "19:desk@thread"
WITHIN_S = 60
MOST_UTF16 = 80_000
_INPUTS = frozenset({"Input.Text", "Input.ChoiceSet"})
_ELEMENTS = frozenset({"RichTextBlock", "ActionSet", *_INPUTS})
_ACTIONS = frozenset({"Action.Submit", "Action.ShowCard", "Action.OpenUrl"})


def member(name: str, tenant: str = TENANT, role: str = "user", **more: Any) -> dict[str, Any]:
    upn = f"{name}@example.com"
    own = {"id": f"29:{name}", "aadObjectId": f"oid-{name}", "email": upn, "userPrincipalName": upn}
    return own | {"tenantId": tenant, "userRole": role, "name": name.capitalize()} | more


@dataclass
class Standing:
    """A message as it stands in a conversation."""

    id: str
    versions: list[dict[str, Any]] = field(default_factory=list)

    @property
    def card(self) -> dict[str, Any]:
        return self.versions[-1]["attachments"][0]["content"]

    @property
    def text(self) -> str:
        return text_of(self.card)

    @property
    def buttons(self) -> list[str]:
        return [action["title"] for action in actions_of(self.card)]


def text_of(card: dict[str, Any]) -> str:
    """Return what is shown of a card as lines, without what its buttons open."""
    rows = [each["inlines"] for each in card["body"] if each["type"] == "RichTextBlock"]
    lines = ["".join(run if isinstance(run, str) else run["text"] for run in row) for row in rows]
    return "\n".join(lines).replace("\u00a0", " ")


def actions_of(card: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [each["actions"] for each in card["body"] if each["type"] == "ActionSet"]
    return [*itertools.chain(*rows), *card["actions"]]


def opened_by(card: dict[str, Any], title: str) -> dict[str, Any]:
    """Return the form that a button opens."""
    (action,) = [action for action in actions_of(card) if action["title"] == title]
    return action["card"]


def faults_of(card: dict[str, Any]) -> list[str]:
    """Return what Teams would refuse or not show of a card."""
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.5")
    faults = [str(each["type"]) for each in card["body"] if each["type"] not in _ELEMENTS]
    faults += [str(each["type"]) for each in actions_of(card) if each["type"] not in _ACTIONS]
    faults += ["a row of buttons" for each in card["body"] if each["type"] == "ActionSet" and len(each["actions"]) > 6]
    names = [each["id"] for each in card["body"] if each["type"] in _INPUTS]
    faults += ["two inputs of one id"] * (len(names) != len(set(names)))
    return faults + [f for action in actions_of(card) if "card" in action for f in faults_of(action["card"])]


@dataclass
class Teams:
    """Hold the stand-in, and act as the people in it."""

    address: str = ""
    bot: str = ""
    keys: dict[str, Any] = field(default_factory=dict)
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[str, Standing] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    sent: list[dict[str, Any]] = field(default_factory=list)
    """The activities that were sent to the bot."""
    refuses: int = 0
    """The status with which messages are refused just now; 0 for none."""
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        for kid in ("one", "elsewhere", "unpublished"):
            self.keys[kid] = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
        self.members = {name: member(name) for name in ("ana", "bo")}

    @property
    def settings(self) -> BotSettings:
        openid = f"{self.address}/v1/.well-known/openidconfiguration"
        return BotSettings(APP, SECRET, TENANT, f"{self.address}/emea/", CONVERSATION, openid, self.address)

    # What a bot calls.

    async def described(self, _: Request) -> JSONResponse:
        return JSONResponse({"issuer": ISSUER, "jwks_uri": f"{self.address}/v1/.well-known/keys"})

    async def published(self, _: Request) -> JSONResponse:
        channels = {"one": ["msteams", "webchat"], "elsewhere": ["slack"]}
        keys = [
            json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.keys[kid].public_key()))
            | {"kid": kid, "endorsements": endorsed}
            for kid, endorsed in channels.items()
        ]
        return JSONResponse({"keys": keys})

    async def token_given(self, request: Request) -> JSONResponse:
        async with request.form() as form:
            said = dict(form)
        wanted = {"grant_type": "client_credentials", "client_id": APP, "client_secret": SECRET, "scope": SCOPE}
        if said != wanted or request.path_params["tenant"] != TENANT:
            return JSONResponse({"error": "invalid_client"}, 401)
        self.tokens.append(f"token-{len(self.tokens)}")
        return JSONResponse({"token_type": "Bearer", "expires_in": 3600, "access_token": self.tokens[-1]})

    def _let_in(self, request: Request) -> bool:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return bool(self.tokens) and bearer == self.tokens[-1]

    async def said(self, request: Request) -> JSONResponse:
        if not self._let_in(request):
            return JSONResponse({}, 401)
        if self.refuses:
            return JSONResponse({}, self.refuses)
        raw = (await request.body()).decode()
        if len(raw.encode("utf-16-le")) > MOST_UTF16:
            return JSONResponse({"error": {"code": "MessageSizeTooBig"}}, 413)
        message = json.loads(raw)
        assert request.path_params["conversation"] == CONVERSATION
        assert faults_of(message["attachments"][0]["content"]) == []
        name = request.path_params.get("activity") or f"m{next(self._numbers)}"
        if request.method == "PUT" and name not in self.messages:
            return JSONResponse({}, 404)
        self.messages.setdefault(name, Standing(name)).versions.append(message)
        return JSONResponse({"id": name})

    async def member_of(self, request: Request) -> JSONResponse:
        if not self._let_in(request):
            return JSONResponse({}, 401)
        found = [each for each in self.members.values() if each["id"] == request.path_params["user"]]
        return JSONResponse(found[0]) if found else JSONResponse({}, 404)

    # What people and strangers do.

    def token(self, kid: str = "one", algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        """Return a token as Bot Framework makes it out; `claims` differ from the usual ones, None for none."""
        now = int(time.time())
        said = {"iss": ISSUER, "aud": APP, "nbf": now, "exp": now + 3600, "serviceurl": f"{self.address}/emea/"}
        said = {name: value for name, value in (said | claims).items() if value is not None}
        if algorithm == "none":
            head = base64url_encode(json.dumps({"alg": "none", "kid": kid, "typ": "JWT"}).encode()).decode()
            return f"{head}.{base64url_encode(json.dumps(said).encode()).decode()}."
        return jwt.encode(said, key or self.keys[kid], algorithm=algorithm, headers={"kid": kid})

    async def deliver(self, activity: Any, token: str | None = None, **headers: str) -> int:
        """Send something to the bot; return the status of its answer."""
        body = activity if isinstance(activity, bytes) else json.dumps(activity).encode()
        authorization = {"Authorization": f"Bearer {self.token() if token is None else token}"}
        async with httpx2.AsyncClient(timeout=WITHIN_S) as client:
            return (await client.post(self.bot, content=body, headers=authorization | headers)).status_code

    def activity(self, user: str, value: Any, reply_to: str, **changed: Any) -> dict[str, Any]:
        who = self.members[user]
        return {
            "type": "message",
            "id": f"a{next(self._numbers)}",
            "channelId": "msteams",
            "serviceUrl": f"{self.address}/emea/",
            "from": {"id": who["id"], "aadObjectId": who["aadObjectId"], "name": who["name"]},
            "conversation": {"id": f"{CONVERSATION};messageid={reply_to}", "tenantId": TENANT},
            "replyToId": reply_to,
            "value": value,
            **changed,
        }

    def value(self, card: dict[str, Any], title: str, /, **filled: str) -> dict[str, Any]:
        """Return what Teams sends for a button: its data, and the inputs of the form that it stands in."""
        (action,) = [action for action in actions_of(card) if action["title"] == title]
        form = card if action["type"] == "Action.Submit" else action["card"]
        inputs = {each["id"]: each for each in form["body"] if each["type"] in _INPUTS}
        assert filled.keys() <= inputs.keys(), inputs.keys()
        for name, value in filled.items():
            known = {each["value"] for each in inputs[name].get("choices", ())}
            assert not known or set(value.split(",")) <= known, (name, known)
        (send,) = form["actions"] if form is not card else (action,)
        return deepcopy(send["data"]) | {name: each["value"] for name, each in inputs.items()} | filled

    async def press(self, message: Standing, title: str, /, user: str = "ana", **filled: str) -> dict[str, Any]:
        """Press a button of a message; return the activity that the bot got for it."""
        return await self.send(self.activity(user, self.value(message.card, title, **filled), message.id))

    async def send(self, activity: dict[str, Any]) -> dict[str, Any]:
        assert await self.deliver(activity) == 202
        self.sent.append(activity)
        return activity

    async def until(self, found: Any, within_s: float = WITHIN_S) -> Any:
        async with asyncio.timeout(within_s):
            while not (result := found()):
                await asyncio.sleep(0.05)
        return result

    async def card(self, *words: str, after: int = 0) -> Standing:
        """Wait for the newest message in which all these words stand."""

        def newest():
            every = [*self.messages.values()][after:]
            return next((each for each in reversed(every) if all(word in each.text for word in words)), None)

        return await self.until(newest)

    async def changed(self, message: Standing, *words: str) -> Standing:
        """Wait until these words stand in a message."""
        await self.until(lambda: all(word in message.text for word in words))
        return message


@asynccontextmanager
async def open_teams():
    """Serve it on loopback."""
    teams = Teams()
    place = "/emea/v3/conversations/{conversation}"
    routes = [
        Route("/v1/.well-known/openidconfiguration", teams.described),
        Route("/v1/.well-known/keys", teams.published),
        Route("/{tenant}/oauth2/v2.0/token", teams.token_given, methods=["POST"]),
        Route(f"{place}/activities", teams.said, methods=["POST"]),
        Route(f"{place}/activities/{{activity}}", teams.said, methods=["PUT"]),
        Route("/emea/v3/conversations/{conversation}/members/{user}", teams.member_of),
    ]
    async with served(Starlette(routes=routes)) as teams.address:
        yield teams
