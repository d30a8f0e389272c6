"""Stand between a transport and the MCP client, and turn each result into one that the client accepts.

The client refuses a result as a whole when one field is off. The answer of a tool is hidden from it, to be read where
its meaning is known.
"""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.message import SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId

from toolbox.mcp.elicitation import ELICITS, readable_params, readable_requests
from toolbox.mcp.pages import readable_page
from toolbox.mcp.revisions import ALIKE, next_revision, offered_of, offering
from toolbox.mcp.wire import MALFORMED

WHOLE = "backstay/whole"
"""Under this key of a result's `_meta`: the result as the server wrote it."""
TASKS = "io.modelcontextprotocol/tasks"
"""The extension by which a server may answer a call by a task."""
FOLLOWS = "backstay/follows-tasks"
"""Under this key of a request's `_meta`, which is not sent: whether a task may be the answer."""
_STATE = "backstay/state:"
"""Begins the text that stands for the state of a question, where the server's own is not a string, or begins so too."""
_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
_LISTED = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "resources/read": "contents",
    "prompts/list": "prompts",
    "prompts/get": "messages",
}
"""What holds the entries of these results."""
_READ_ANEW = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_WAITING = 10_000
"""How many requests without an answer are remembered."""


@asynccontextmanager
async def tolerant(streams: Any) -> AsyncGenerator[Any]:
    """Open the streams of a transport; the client accepts what is read from them."""
    async with streams as (reads, writes):
        asked: dict[RequestId, str] = {}
        written = _Writes(writes, asked)
        yield _Reads(reads, asked, written), written


class _Stream:
    def __init__(self, inner: Any, asked: dict[RequestId, str]) -> None:
        self._inner = inner
        self._asked = asked

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Any:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> Any:
        return await self._inner.__aexit__(*raised)


class _Writes(_Stream):
    handshake: SessionMessage | None = None
    """The last one that was sent."""
    offered: tuple[str, ...] = ()
    """The revisions that handshakes have offered."""

    async def send(self, item: SessionMessage) -> None:
        """Send a message and remember what a request asks for."""
        if isinstance(item.message, JSONRPCRequest):
            if (revision := offered_of(item.message)) is not None:
                self.handshake, self.offered = item, (*self.offered, revision)
            self._asked[item.message.id] = item.message.method
            if len(self._asked) > _WAITING:
                del self._asked[next(iter(self._asked))]
            _offer_tasks(item.message)
            _give_state_back(item.message)
        await self._inner.send(item)


def _offer_tasks(request: JSONRPCRequest) -> None:
    """Offer the extension with a request that is marked so; those of older revisions have no place for it."""
    meta = (request.params or {}).get("_meta")
    if not isinstance(meta, dict) or not meta.pop(FOLLOWS, False):
        return
    if isinstance(offered := meta.get(_CAPABILITIES), dict):
        # The client hands out one object for all of its requests.
        meta[_CAPABILITIES] = {**offered, "extensions": {**offered.get("extensions", {}), TASKS: {}}}


def _give_state_back(request: JSONRPCRequest) -> None:
    """Send the state of a question as its server wrote it."""
    params = request.params or {}
    if isinstance(state := params.get("requestState"), str) and state.startswith(_STATE):
        params["requestState"] = json.loads(state.removeprefix(_STATE))


class _Reads(_Stream):
    def __init__(self, inner: Any, asked: dict[RequestId, str], written: _Writes | None = None) -> None:
        super().__init__(inner, asked)
        self._written = written

    def __aiter__(self) -> "_Reads":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._next(self._inner.__anext__)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self._next(self._inner.receive)

    async def _next(self, read: Callable[[], Awaitable[SessionMessage | Exception]]) -> SessionMessage | Exception:
        while await self._is_offered_anew(item := await read()):
            pass
        return self._read(item)

    async def _is_offered_anew(self, item: SessionMessage | Exception) -> bool:
        """Offer another revision where a server refuses the one of the handshake; return whether one was offered."""
        sent = None if self._written is None else self._written.handshake
        if self._written is None or sent is None or not isinstance(item, SessionMessage):
            return False
        refusal, handshake = item.message, sent.message
        if not isinstance(refusal, JSONRPCError) or not isinstance(handshake, JSONRPCRequest):
            return False
        if refusal.id != handshake.id or handshake.id not in self._asked:
            return False
        revision = next_revision(refusal.error, list(self._written.offered))
        if revision is not None:
            await self._written.send(SessionMessage(offering(handshake, revision), sent.metadata))
        return revision is not None

    def _read(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            if item.message.method == ELICITS:
                item.message.params = readable_params(item.message.params)
            return item
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            method = self._method(item.message.id)
            if isinstance(item.message, JSONRPCResponse):
                try:
                    item.message.result = readable_result(method, item.message.result)
                except Exception as error:  # an error here would end the connection, and every other call with it
                    return _unreadable(item.message.id, error)
        return item

    def _method(self, answered: RequestId | None) -> str:
        if answered in self._asked:
            return self._asked.pop(answered)
        # The client takes such an id for that of the request, too.
        return "" if answered is None else self._asked.pop(coerce_request_id(answered), "")


def _unreadable(answered: RequestId, error: Exception) -> SessionMessage:
    said = ErrorData(code=MALFORMED, message=f"the answer cannot be read ({type(error).__name__})")
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=answered, error=said))


def readable_result(method: str, said: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request as the client accepts it; what it says of a tool's answer is `WHOLE`."""
    match method:
        case "initialize" | "server/discover":
            return _handshake(said)
        case "tools/list":
            return readable_page(said)
        case "tools/call" if said.get("resultType") != "task" and _wants_input(said):
            return _question(said)
        case "tools/call":
            return {"content": [], "resultType": "complete", "_meta": {WHOLE: said}}
        case "tasks/get" | "tasks/update" | "tasks/cancel":
            return {"resultType": "complete", "_meta": {WHOLE: said}}
        case "resources/read" | "prompts/get" if _wants_input(said):
            return _question(said)
        case _ if (field := _LISTED.get(method)) is not None:
            return {field: [], **_READ_ANEW, "_meta": {WHOLE: said}}
        case _:
            return said


def _wants_input(said: dict[str, Any]) -> bool:
    requests = said.get("inputRequests")
    return said.get("resultType") == "input_required" or (isinstance(requests, dict) and bool(requests))


def _question(said: dict[str, Any]) -> dict[str, Any]:
    """Return what a server asks before it answers, with its state as text; nothing beside it is an answer."""
    state = said.get("requestState")
    if state is not None and (not isinstance(state, str) or state.startswith(_STATE)):
        state = _STATE + json.dumps(state)
    asks = {"inputRequests": readable_requests(said.get("inputRequests")) or None, "requestState": state}
    kind = said.get("resultType")
    return {**({"resultType": kind} if kind == "input_required" else said), **asks}


def _handshake(said: dict[str, Any]) -> dict[str, Any]:
    given = said.get("capabilities")
    capabilities = {
        name: value if isinstance(value, dict) else {}
        for name, value in (given.items() if isinstance(given, dict) else ())
        if isinstance(value, dict | list) or value is True  # as some servers write one without options
    }
    offered = {
        name: {"listChanged": True} if capabilities[name].get("listChanged") is True else {}
        for name in ("tools", "resources", "prompts")
        if isinstance(capabilities.get(name), dict)
    }
    info = said.get("serverInfo")
    names = info if isinstance(info, dict) else {}
    server = {key: str(names.get(key) or "unknown") for key in ("name", "version")}
    instructions = said.get("instructions")
    revision = said.get("protocolVersion")
    return {
        **{key: value for key, value in said.items() if key not in {"instructions", "_meta"}},
        **({"protocolVersion": ALIKE[revision]} if isinstance(revision, str) and revision in ALIKE else {}),
        **({"instructions": instructions} if isinstance(instructions, str) else {}),
        **({"_meta": said["_meta"]} if isinstance(said.get("_meta"), dict) else {}),
        "capabilities": offered,
        "serverInfo": server,
    }
