"""The HTTP transport under the MCP client: notes what the MCP client hides, and hands on bodies that it can read.

A request that is refused as if its session were gone is followed by a probe under the same session: a request that the
session has answered before. Only if that is refused now too does the refusal come from the session and not the call.
"""

import asyncio
import json
from codecs import BOM_UTF8
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import httpx2
from mcp.types import CONNECTION_CLOSED, JSONRPCError, JSONRPCResponse, RequestId

from backstay.tools.trying import retry_after
from system.encodings import compressions_of
from toolbox.mcp.event_stream import OF_JSON, EventEnds, EventReader
from toolbox.mcp.wire import answer_to, as_handed_on, dumped, messages_of, names

CAP = 64 * 1024 * 1024
"""How many bytes one answer may have."""
PIECE_S = 60.0
"""How long one line or event may take to come, once it has begun: what comes after it waits for it."""
PROBE_S = 10.0
"""How long a server may take to say whether it still knows a session."""
GONE = frozenset({400, 401, 404, 410})
"""The status of a request whose session the server does not know; some say that it is not authorized."""
UNSENT = frozenset({401, 403, 407, 429})
"""The status of a request that was turned away at the door, unless the answer itself names it."""
_PROBED = "tools/list"
"""The method of a probe: each connection is asked for its tools before anything is called."""
_ERROR_BODY = 1024 * 1024
_AT_ONCE = 256 * 1024
"""How many bytes are read on the event loop, where everything else waits meanwhile."""


@dataclass(slots=True)
class HttpExchange:
    """Hold what was seen of the answer to one request."""

    ends: float | None = None
    """When the loop's clock shows this, nothing more of the answer is read."""
    status: int | None = None
    answered: bool = False
    """Whether an error is the server's own, which it wrote as JSON-RPC."""
    worded: bool = False
    """Whether a refusing status came with an error as JSON-RPC, whatever it is about."""
    own: bool = False
    """Whether that body names the request, so that it answers the call and not the session."""
    session: bool = False
    """Whether the request was made under a session."""
    probe: int | None = None
    """The status of a probe under the session of a request that was refused as if it were gone; None without one."""
    same: bool = False
    """Whether that probe was refused word for word like the request."""
    fault: str | None = None
    unreadable: bool = False
    """Whether the answer came and is none, so that it would be the same at each try."""
    too_large: bool = False
    retry_after_s: float | None = None

    def begin(self) -> None:
        """Forget all findings: a request that is sent again, with a token that was renewed, is another one."""
        for finding in fields(self):
            if finding.name != "ends":
                setattr(self, finding.name, finding.default)


current: ContextVar[HttpExchange | None] = ContextVar("exchange", default=None)
"""Set by whoever sends; the MCP client sends each request in the context of its sender."""


class ObservedTransport(httpx2.AsyncBaseTransport):
    """Send requests, note what came back, and keep one failed request from ending the others."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport | None = None,
        *,
        answers_apart: bool = False,
        gone: Callable[[], None] | None = None,
        renews: bool = False,
    ) -> None:
        """Call `gone` when a stream shows that the session is.

        `inner` sends them, where not every address may be reached. `answers_apart`: whether all answers come on one
        stream. `renews`: whether a request that is refused for its token is sent again with another.
        """
        self._answers_apart = answers_apart
        self._gone = gone
        self._renews = renews
        self._asking: set[asyncio.Task[None]] = set()
        self._control: httpx2.Request | None = None
        """A request that the server has accepted, and whose repetition changes nothing."""
        self._inner = inner or httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=100, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; a failed connection becomes a JSON-RPC error for this request alone."""
        # A message in the middle of a call, a reply or a notification, says nothing of the call. A failure of the
        # stream that carries all answers counts too.
        asked = _asked(request)
        noted = asked is not None or (self._answers_apart and request.method == "GET")
        exchange = (current.get() if noted else None) or HttpExchange()
        if asked is not None:
            exchange.begin()
        ends = self._ends(request, exchange)
        request.headers["accept-encoding"] = "identity"
        try:
            async with asyncio.timeout_at(ends):
                response = await self._inner.handle_async_request(request)
        except (httpx2.HTTPError, TimeoutError) as error:
            exchange.fault = f"{type(error).__name__}: {error}"
            return _failure(exchange.fault)
        exchange.status = response.status_code
        exchange.retry_after_s = _seconds(response.headers.get("retry-after"))
        stream = _CappedBody(response, exchange, ends, endless=request.method == "GET")
        if compressions_of(response.headers.pop("content-encoding", "")):
            await response.aclose()
            exchange.fault = "the server compressed its answer although it was asked not to"
            return _failure(exchange.fault)
        exchange.session = self._answers_apart or "mcp-session-id" in request.headers
        if response.status_code >= 400:
            return await self._refusal(request, _with(response, stream), exchange, asked)
        if response.status_code < 300 and exchange.session:
            self._note_control(request)
        if self._answers_apart:
            asked = None
        if response.status_code == 202 and asked is not None:
            response.status_code, stream = await _accepted(_with(response, stream))
        body = _Body(stream, exchange, asked, response, partial(self._look_behind, request, exchange))
        return _readable(response, stream, body, exchange, asked, endless=request.method == "GET")

    async def _refusal(
        self, request: httpx2.Request, seen: httpx2.Response, exchange: HttpExchange, asked: RequestId | None
    ) -> httpx2.Response:
        of_token = self._renews and seen.status_code == 401
        of_session = request.method == "GET" and exchange.session and seen.status_code in GONE and not of_token
        if of_session and self._gone is not None:
            asking = asyncio.create_task(self._look(request, self._gone))
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
        if asked is None:
            return seen
        try:
            body = await _refusing_body(seen)
        except httpx2.StreamError:
            return seen
        answer = answer_to(asked, body, seen.charset_encoding)
        exchange.own = names(asked, body)
        if isinstance(answer, JSONRPCResponse):
            if exchange.own:
                # The tool's answer counts, whatever the status above it.
                exchange.status, exchange.answered = 200, True
                return httpx2.Response(200, headers=_JSON, content=dumped(answer))
            answer = None
        exchange.worded = answer is not None
        about_session = exchange.session and seen.status_code in GONE
        # An error that names no request may be about the session or the sign-in alone, and say nothing of the call.
        of_call = exchange.own or not (about_session or seen.status_code in UNSENT)
        exchange.answered = answer is not None and of_call
        if about_session:
            exchange.probe, said = await self._probe(request)
            exchange.same = exchange.probe == seen.status_code and said == _said(body)
        if answer is None:
            return seen
        return httpx2.Response(seen.status_code, headers=_JSON, content=dumped(answer), extensions=seen.extensions)

    def _note_control(self, request: httpx2.Request) -> None:
        """Keep the first request of a session that can be repeated as a probe."""
        if self._control is not None and _session(self._control) == _session(request):
            return
        sent = _sent(request)
        if sent.get("method") != _PROBED:
            return
        content = json.dumps({**sent, "id": "backstay-probe"}).encode()
        headers = {**dict(request.headers), "content-length": str(len(content))}
        self._control = httpx2.Request("POST", request.url, headers=headers, content=content)

    def _probe_of(self, refused: httpx2.Request) -> httpx2.Request | None:
        """Return a probe under the session of a request.

        Without a request that this session has answered, a refusal would prove nothing, and there is no probe.
        """
        control = self._control
        if control is None or _session(control) != _session(refused):
            return None
        # The token of then may have ended, which would say nothing of the session.
        headers = {name: value for name, value in control.headers.items() if name != "authorization"}
        if (token := refused.headers.get("authorization")) is not None:
            headers["authorization"] = token
        return httpx2.Request("POST", control.url, headers=headers, content=control.content)

    async def _probe(self, refused: httpx2.Request) -> tuple[int | None, object]:
        """Return the status and the words of the answer to a probe under the session of a request."""
        probe = self._probe_of(refused)
        if probe is None:
            return None, None
        exchange = HttpExchange()
        ends = asyncio.get_running_loop().time() + PROBE_S
        try:
            async with asyncio.timeout_at(ends):
                response = await self._inner.handle_async_request(probe)
                if response.status_code < 400:
                    await response.aclose()
                    return response.status_code, None
                seen = _with(response, _CappedBody(response, exchange, ends, endless=False))
                return response.status_code, _said(await seen.aread())
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError):
            return None, None

    async def _look_behind(self, request: httpx2.Request, exchange: HttpExchange, body: bytes) -> None:
        """Find out whether an error that names no request, in an accepted answer, is about the session alone."""
        probe, asked = self._probe_of(request), _asked(request)
        if probe is None or asked is None or names(asked, body):
            return
        seen = HttpExchange()
        ends = asyncio.get_running_loop().time() + PROBE_S
        try:
            async with asyncio.timeout(PROBE_S):
                response = await self._inner.handle_async_request(probe)
                said = await _with(response, _CappedBody(response, seen, ends, endless=False)).aread()
        except (httpx2.HTTPError, httpx2.StreamError, TimeoutError):
            return
        is_error = isinstance(answer_to(0, said), JSONRPCError) and not names("backstay-probe", said)
        if is_error and response.status_code == exchange.status and _said(said) == _said(body):
            exchange.probe, exchange.same = 404, True

    async def _look(self, refused: httpx2.Request, gone: Callable[[], None]) -> None:
        """A stream that is refused may only be one that the server does not offer."""
        status, _ = await self._probe(refused)
        if status in GONE:
            gone()

    def _ends(self, request: httpx2.Request, exchange: HttpExchange) -> float | None:
        if request.method != "POST":
            return None
        if self._answers_apart:
            # The answers come on another stream, and the client sends nothing more before this one is read.
            return asyncio.get_running_loop().time() + PIECE_S
        return exchange.ends

    async def aclose(self) -> None:
        """Close the connections."""
        for asking in self._asking:
            asking.cancel()
        await self._inner.aclose()


_JSON = {"content-type": "application/json"}
_EVENT_STREAM = "text/event-stream"
_OF_EVENTS = (b":", b"data:", b"event:", b"id:", b"retry:")
"""With what a stream of events begins."""


def _with(response: httpx2.Response, stream: httpx2.AsyncByteStream, **headers: str) -> httpx2.Response:
    kept: dict[str, str] = {**dict(response.headers), **headers}
    if headers:
        kept.pop("content-length", None)
    return httpx2.Response(response.status_code, headers=kept, stream=stream, extensions=response.extensions)


async def _refusing_body(response: httpx2.Response) -> bytes:
    """Return what a refusal says, and leave its body to be read again unless it is a stream of events."""
    if _kind_of(response) != _EVENT_STREAM:
        return await _told(httpx2.ByteStream(await response.aread()))
    return await _read(response)


async def _accepted(response: httpx2.Response) -> tuple[int, httpx2.AsyncByteStream]:
    """Return the body of what was accepted only, with the status under which the client looks for an answer in it."""
    try:
        said = await _read(response)
    except httpx2.StreamError:
        said = b""
    return 200 if said.lstrip()[:1] in OF_JSON else 202, httpx2.ByteStream(said)


async def _read(response: httpx2.Response) -> bytes:
    try:
        return await _told(response.aiter_raw(), EventReader(None) if _kind_of(response) == _EVENT_STREAM else None)
    finally:
        await response.aclose()


async def _told(chunks: AsyncIterable[bytes], reader: EventReader | None = None) -> bytes:
    """Return a body; of events, whatever type it names, no more than the first answer: their stream may stay open."""
    told: list[bytes] = []
    async for chunk in chunks:
        begun = b"" if told else chunk.removeprefix(BOM_UTF8).lstrip()
        if begun.startswith((*_OF_EVENTS, *OF_JSON)):
            reader = EventReader(None) if begun.startswith(_OF_EVENTS) else None
        told.append(chunk if reader is None else reader.feed(chunk))
        if reader is not None and (said := _answer_in(told[-1])) is not None:
            return said
    rest = b"" if reader is None else reader.end()
    return _answer_in(rest) or b"".join([*told, rest])


def _answer_in(events: bytes) -> bytes | None:
    """Return the first answer in whole events, as its server wrote it."""
    for line in events.split(b"\n"):
        data = line.removeprefix(b"data: ")
        if data != line and any(isinstance(said, JSONRPCResponse | JSONRPCError) for said in messages_of(data)):
            return data
    return None


def _kind_of(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _readable(
    response: httpx2.Response,
    stream: httpx2.AsyncByteStream,
    body: httpx2.AsyncByteStream,
    exchange: HttpExchange,
    asked: RequestId | None,
    *,
    endless: bool,
) -> httpx2.Response:
    """Return the response with a body that the MCP client can read."""
    if _kind_of(response) == _EVENT_STREAM:
        # The charset of a stream is UTF-8 whatever it says.
        events = _Events(stream, exchange, EventReader(asked))
        return _with(response, events, **{"content-type": "text/event-stream"})
    if endless or asked is None or response.status_code >= 300 or response.status_code == 202:
        return _with(response, stream)
    return _with(response, body, **_JSON)


class _Events(httpx2.AsyncByteStream):
    """Hand on a stream of events, each with one message."""

    def __init__(self, inner: httpx2.AsyncByteStream, exchange: HttpExchange, reader: EventReader) -> None:
        self._inner = inner
        self._exchange = exchange
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._inner:
            found = self._reader.feed(chunk)
            self._exchange.answered = self._exchange.answered or self._reader.refused
            if found:
                yield found
        rest = self._reader.end()
        self._exchange.answered = self._exchange.answered or self._reader.refused
        if rest:
            yield rest

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Body(httpx2.AsyncByteStream):
    """Hand on the answer that a body holds, under the id of its request."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        exchange: HttpExchange,
        asked: RequestId | None,
        response: httpx2.Response,
        looked_behind: Callable[[bytes], Awaitable[None]],
    ) -> None:
        self._inner = inner
        self._exchange = exchange
        self._asked = asked or 0
        self._looked_behind = looked_behind
        self._charset = response.charset_encoding
        self._kind = response.headers.get("content-type", "").partition(";")[0].strip()[:60]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = await _told(self._inner)
        if len(body) > _AT_ONCE:
            answer, written = await asyncio.to_thread(as_handed_on, self._asked, body, self._charset)
        else:
            answer, written = as_handed_on(self._asked, body, self._charset)
        if answer is None:
            self._exchange.unreadable = True
            what = f"{self._kind or 'a body without a type'}, which holds no answer" if body.strip() else "nothing"
            self._exchange.fault = self._exchange.fault or f"the server answered with {what}"
        else:
            self._exchange.answered = isinstance(answer, JSONRPCError)
            if self._exchange.answered and self._exchange.session:
                await self._looked_behind(body)
        yield written

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CappedBody(httpx2.AsyncByteStream):
    """Bound an answer in bytes and time; of a stream without end, bound each event."""

    def __init__(self, response: httpx2.Response, exchange: HttpExchange, ends: float | None, *, endless: bool) -> None:
        self._response = response
        self._exchange = exchange
        self._endless = endless
        self._most = _ERROR_BODY if response.status_code >= 400 else CAP
        self._size = 0
        self._events = EventEnds()
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise httpx2.StreamError("the answer is not a stream")
        chunks = aiter(stream)
        try:
            while True:
                async with asyncio.timeout_at(self._ends):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                self._count(chunk)
                yield chunk
        except TimeoutError:
            self._exchange.fault = "the answer did not end in time"
            raise httpx2.StreamError(self._exchange.fault) from None
        except httpx2.HTTPError as error:
            self._exchange.fault = f"the connection broke: {type(error).__name__}"
            # The MCP client survives only this class of error without dropping every other request.
            raise httpx2.StreamError(self._exchange.fault) from error

    def _count(self, chunk: bytes) -> None:
        if self._endless:
            if self._events.reached_in(chunk):
                # The rest after the last end is at most one chunk, which the next count would miss by.
                self._size, self._ends = 0, None
            elif self._ends is None:
                self._ends = asyncio.get_running_loop().time() + PIECE_S
        self._size += len(chunk)
        if self._size > self._most:
            self._exchange.too_large = True
            self._exchange.fault = f"the answer is larger than {self._most} bytes"
            raise httpx2.StreamError(self._exchange.fault)

    async def aclose(self) -> None:
        await self._response.aclose()


def _sent(request: httpx2.Request) -> dict[str, Any]:
    """Return the message that a POST carries; an empty one without it."""
    if request.method != "POST":
        return {}
    try:
        sent = json.loads(request.content)
    except (httpx2.RequestNotRead, ValueError, RecursionError):
        return {}
    return sent if isinstance(sent, dict) else {}


def _asked(request: httpx2.Request) -> RequestId | None:
    """Return the id of the request that a POST carries; None for a notification or an answer."""
    sent = _sent(request)
    asked = sent.get("id") if "method" in sent else None
    return asked if isinstance(asked, int | str) else None


def _session(request: httpx2.Request) -> str | None:
    """Return the session of a request; the older transport names it in its address, the same for each connection."""
    return request.headers.get("mcp-session-id")


def _said(body: bytes) -> object:
    """Return what a refusal says, without the id that it may repeat."""
    answer = answer_to(0, body)
    return (answer.error.code, answer.error.message) if isinstance(answer, JSONRPCError) else body.strip()


def _failure(reason: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": reason}}
    return httpx2.Response(599, headers={"content-type": "application/json"}, content=json.dumps(error).encode())


def _seconds(value: str | None) -> float | None:
    try:
        return retry_after(float(value or ""))
    except ValueError:
        return None
