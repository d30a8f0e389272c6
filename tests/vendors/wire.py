"""What the stand-ins for vendors share: what is asked, what a vendor refuses, and one server for all of them."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Literal

import yaml
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.serving import served

FIELDS: dict[str, list[str]] = yaml.safe_load(Path(__file__).with_name("fields.yaml").read_text(encoding="utf-8"))
"""The fields that a vendor knows, by vendor and place; a vendor that ignores the rest is not there."""
_numbers = count(1)


@dataclass
class Asked:
    """One request as it reached the vendor."""

    path: str
    body: dict[str, Any]
    query: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def streamed(self) -> bool:
        return self.body.get("stream") is True


@dataclass(frozen=True)
class Refusal:
    """What a vendor answers in place of a completion."""

    status: int
    body: Any


@dataclass(frozen=True)
class Rule:
    """One thing that a vendor refuses, where it says so, and a change of a correct request that breaks it."""

    name: str
    source: str
    refused: Callable[[Asked], Refusal | None]
    breach: Callable[[Asked], object]


@dataclass(frozen=True)
class Turn:
    """What the model says, in no vendor's form.

    `end`: `stop`, also of calls; `length`, which cuts the words or the last call; `refusal`, `filter` and `blocked`, a
    refusal of the model, of what watches its answer and of what watches the request, as far as the vendor has them;
    `broken`, an error after the first words of a stream, or in place of an answer.
    """

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    thought: str = ""
    end: Literal["stop", "length", "refusal", "filter", "blocked", "broken"] = "stop"

    def arguments(self, place: int) -> str:
        """Return the arguments of a call as text; those of the last call are cut where the answer is."""
        text = json.dumps(self.calls[place][1])
        return text[: len(text) // 2] if self.end == "length" and place == len(self.calls) - 1 else text

    def words(self) -> list[str]:
        """Return the text in the pieces of a stream."""
        return [word + " " for word in self.text.split(" ")[:-1]] + self.text.split(" ")[-1:] if self.text else []


@dataclass(frozen=True)
class Heard:
    """What a model reads of a request."""

    told: str
    """All texts of system, people and tools."""
    rounds: int
    """How often it has spoken."""
    results: int
    """How many calls were answered."""
    functions: Mapping[str, Any]
    schema: Any = None
    """The form that its text must have."""


@dataclass(frozen=True)
class Spent:
    """Tokens of one answer."""

    read: int
    written: int
    thought: int


def spent(turn: Turn, asked: Asked) -> Spent:
    """Return what an answer cost: four characters are a token."""
    said = turn.text + "".join(name + turn.arguments(place) for place, (name, _) in enumerate(turn.calls))
    thought = len(turn.thought) // 4
    return Spent(len(json.dumps(asked.body)) // 4 + 1, len(said) // 4 + 1 + thought, thought)


def number() -> int:
    """Return a number that no other answer has."""
    return next(_numbers)


def signature(*parts: object) -> str:
    """Return what a vendor alone can make of something that it said: other than ASCII, as its JSON may hold."""
    return "sig/+é\u2028=" + "|".join(str(part) for part in parts)


def event(data: Any, name: str = "") -> bytes:
    """Return one server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()


def unknown(body: Mapping[str, Any], known: Iterable[str]) -> Iterator[str]:
    """Return the fields that are not known."""
    return (name for name in body if name not in set(known))


class Vendor:
    """A vendor's endpoint: what it refuses, and how it answers."""

    name: str
    title: str = ""
    """Its name on the page; none where it is no row there."""
    base: str
    """The end of the address that a user writes into models.yaml."""
    model: str
    api: str = "chat"
    """What it speaks, in the words of models.yaml."""
    rules: tuple[Rule, ...] = ()
    functions = True
    """Whether it takes functions; without them a model writes its calls down as JSON, which nobody is shown."""
    refusals: tuple[str, ...] = ()
    """How an answer can be refused: ends of turns."""

    def refusal(self, asked: Asked) -> Refusal | None:
        """Return what breaks a rule, if anything does."""
        return next((found for rule in self.rules if (found := rule.refused(asked)) is not None), None)

    def correct(self) -> Asked:
        """Return a request as the vendor's own pages show it: two calls that were answered, more to come."""
        raise NotImplementedError

    def hear(self, asked: Asked) -> Heard:
        """Read a request."""
        raise NotImplementedError

    def blocked(self) -> Refusal:
        """Return what is answered when the request itself is refused by what watches it."""
        raise NotImplementedError

    def whole(self, turn: Turn, asked: Asked) -> Refusal:
        """Return an answer and its status."""
        raise NotImplementedError

    def pieces(self, turn: Turn, asked: Asked) -> Iterator[bytes]:
        """Return an answer as a stream."""
        raise NotImplementedError


@dataclass
class Seen:
    """One exchange."""

    vendor: str
    asked: Asked
    refusal: Refusal | None
    turn: Turn | None = None
    """What was answered."""


class Vendors:
    """Serve all vendors at one port, each below its name; what the model says comes from `play`."""

    def __init__(self, vendors: Iterable[Vendor], play: Callable[[str, Heard], Awaitable[Turn]]) -> None:
        self.by_name = {vendor.name: vendor for vendor in vendors}
        self.seen: list[Seen] = []
        self._play = play

    def of(self, name: str, word: str = "") -> list[Seen]:
        """Return what was asked of a vendor, where a text is in it."""
        return [seen for seen in self.seen if seen.vendor == name and word in json.dumps(seen.asked.body)]

    @asynccontextmanager
    async def serving(self):
        """Serve until the block ends; yields the address."""
        routes = [
            Route("/{vendor}/{path:path}", self._models, methods=["GET"]),
            Route("/{vendor}/{path:path}", self._answer, methods=["POST"]),
        ]
        async with served(Starlette(routes=routes)) as address:
            yield address

    async def _models(self, request: Request) -> Response:
        model = self.by_name[request.path_params["vendor"]].model
        return JSONResponse({"object": "list", "data": [{"id": model, "object": "model"}]})

    async def _answer(self, request: Request) -> Response:
        vendor = self.by_name[request.path_params["vendor"]]
        body = json.loads(await request.body())
        path = "/" + request.path_params["path"]
        asked = Asked(path, body, dict(request.query_params), dict(request.headers))
        seen = Seen(vendor.name, asked, vendor.refusal(asked))
        self.seen.append(seen)
        if seen.refusal is not None:
            return _json(seen.refusal)
        turn = seen.turn = await self._play(vendor.name, vendor.hear(asked))
        if turn.end == "blocked":
            return _json(vendor.blocked())
        if not self._streams(asked):
            return _json(vendor.whole(turn, asked))
        return StreamingResponse(vendor.pieces(turn, asked), media_type="text/event-stream")

    @staticmethod
    def _streams(asked: Asked) -> bool:
        return asked.streamed or "streamGenerateContent" in asked.path


def _json(answer: Refusal) -> Response:
    return Response(json.dumps(answer.body, ensure_ascii=False), answer.status, media_type="application/json")


def changed(asked: Asked, **body: Any) -> Asked:
    """Return the same request with other fields."""
    return replace(asked, body=asked.body | body)
