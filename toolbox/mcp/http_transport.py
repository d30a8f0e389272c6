"""The HTTP transport under the MCP client: notes the status and faults of each request, which the MCP client hides."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar
from dataclasses import dataclass

import httpx2
from mcp.types import CONNECTION_CLOSED

CAP = 64 * 1024 * 1024
"""How many bytes one answer may have."""
PIECE_S = 60.0
"""How long one line or event may take to come, once it has begun: what comes after it waits for it."""
_ERROR_BODY = 1024 * 1024
_EVENT_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")


@dataclass(slots=True)
class HttpExchange:
    """Hold what was seen of the answer to one request."""

    ends: float | None = None
    """When the loop's clock shows this, nothing more of the answer is read."""
    status: int | None = None
    answered: bool = False
    """Whether a refusing status came with a JSON-RPC body."""
    fault: str | None = None
    too_large: bool = False
    retry_after_s: float | None = None


current: ContextVar[HttpExchange | None] = ContextVar("exchange", default=None)
"""Set by whoever sends; the MCP client sends each request in the context of its sender."""


class ObservedTransport(httpx2.AsyncBaseTransport):
    """Send requests, note what came back, and keep one failed request from ending the others."""

    def __init__(self, *, refused: Callable[[], None] | None = None) -> None:
        """Call `refused` for every request that was not accepted."""
        self._refused = refused
        self._inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=100, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request; a failed connection becomes a JSON-RPC error for this request alone."""
        # With `refused`, a failure of the stream that carries the answers counts too.
        noted = request.method == "POST" or self._refused is not None
        exchange = (current.get() if noted else None) or HttpExchange()
        ends = self._ends(request, exchange)
        request.headers["accept-encoding"] = "identity"
        try:
            async with asyncio.timeout_at(ends):
                response = await self._inner.handle_async_request(request)
        except (httpx2.HTTPError, TimeoutError) as error:
            exchange.fault = f"{type(error).__name__}: {error}"
            self._tell(request)
            return _failure(exchange.fault)
        exchange.status = response.status_code
        exchange.retry_after_s = _seconds(response.headers.get("retry-after"))
        stream = _Capped(response, exchange, ends, endless=request.method == "GET")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            exchange.fault = "the server compressed its answer although it was asked not to"
            return _failure(exchange.fault)
        seen = httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )
        if seen.status_code >= 400 and request.method == "POST":
            exchange.answered = await _is_answer(seen)
            self._tell(request)
        return seen

    def _ends(self, request: httpx2.Request, exchange: HttpExchange) -> float | None:
        if request.method != "POST":
            return None
        if self._refused is not None:
            # The answers come on another stream, and the client sends nothing more before this one is read.
            return asyncio.get_running_loop().time() + PIECE_S
        return exchange.ends

    def _tell(self, request: httpx2.Request) -> None:
        if self._refused is not None and request.method == "POST":
            self._refused()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


class _Capped(httpx2.AsyncByteStream):
    """Bound an answer in bytes and time; of a stream without end, bound each event."""

    def __init__(self, response: httpx2.Response, exchange: HttpExchange, ends: float | None, *, endless: bool) -> None:
        self._response = response
        self._exchange = exchange
        self._endless = endless
        self._most = _ERROR_BODY if response.status_code >= 400 else CAP
        self._size = 0
        self._tail = b""
        self._ends = ends

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._response.stream
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise httpx2.StreamError("the answer is no stream")
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
            recent = self._tail + chunk
            self._tail = recent[-3:]
            if any(end in recent for end in _EVENT_ENDS):
                # What follows the last end is at most one chunk, which the next count would miss by.
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


async def _is_answer(response: httpx2.Response) -> bool:
    try:
        body = await response.aread()
        parsed = json.loads(body) if "json" in response.headers.get("content-type", "").lower() else None
    except (httpx2.StreamError, ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and "jsonrpc" in parsed and "error" in parsed


def _failure(reason: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": CONNECTION_CLOSED, "message": reason}}
    return httpx2.Response(599, headers={"content-type": "application/json"}, content=json.dumps(error).encode())


def _seconds(value: str | None) -> float | None:
    try:
        return min(max(float(value or ""), 0.0), 86400.0)
    except ValueError:
        return None
