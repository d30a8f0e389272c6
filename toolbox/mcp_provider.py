"""An MCP server as a provider: connect, list, call, and say what its silence means."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import structlog
from mcp import MCPError
from mcp.types import CallToolResult

from backstay.errors import OutcomeUnknown, ToolUnavailable
from toolbox.answer import Answer, answer_of, refused
from toolbox.connection import Connection
from toolbox.exchange import CAP, Exchange, current
from toolbox.listed import Listing
from toolbox.outcome import TOO_LARGE, describe_fault, of_fault, of_protocol_error
from toolbox.provider import Call
from toolbox.roll import read_roll

_FRESH_S = 60.0
_LIST_S = 15.0
_BACKOFF_S = (2.0, 30.0)
_log = structlog.get_logger("toolbox")


class McpProvider:
    """Offer the tools of one MCP server; the connection is opened when first needed and again when it broke."""

    kind = "mcp"

    def __init__(
        self,
        name: str,
        transport: Callable[[asyncio.Event], AbstractAsyncContextManager[Any]],
        *,
        serial: bool = False,
        url: str | None = None,
    ) -> None:
        self.name = name
        self._transport = transport
        self._url = url
        self._turn = asyncio.Lock() if serial else None
        self._connection: Connection | None = None
        self._opening: asyncio.Task[Connection] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._listing = Listing()
        self._read_at = float("-inf")
        self._failures = 0
        self._closed = False

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools, read again after 60 s or a change; a server that failed is tried in the background."""
        age = time.monotonic() - self._read_at
        if not fresh and self._listing.reason is not None:
            if age >= min(_BACKOFF_S[0] * 2 ** (self._failures - 1), _BACKOFF_S[1]):
                self._begin_reading()
            return self._listing
        if fresh or age >= _FRESH_S or (self._connection is not None and not self._connection.alive):
            await asyncio.wait({self._begin_reading()})
        return self._listing

    async def call(self, call: Call) -> Answer:
        """Call one tool; ToolUnavailable before, NotSent or OutcomeUnknown after `before_send`.

        The deadline counts from here: it is also the end of the lease under which an effect is sent.
        """
        ends = time.monotonic() + call.deadline_s
        async with self._in_turn(call.deadline_s):
            connection = await self._connected_by(ends)
            if call.still_listed is not None:
                call.still_listed(self._listing)
            if call.before_send is not None:
                await self._reachable()
                await call.before_send()
            return await self._request(connection, call, max(0.1, ends - time.monotonic()))

    async def close(self) -> None:
        """End the connection and the server behind it."""
        self._closed = True
        both: tuple[asyncio.Task[Any] | None, ...] = (self._opening, self._reading)
        tasks = {task for task in both if task is not None and not task.done()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._connection is not None:
            await self._connection.close()

    async def _request(self, connection: Connection, call: Call, left_s: float) -> Answer:
        exchange = Exchange() if self._url is not None else None
        token = current.set(exchange)
        try:
            async with asyncio.timeout(left_s):
                result = await connection.client.session.call_tool(
                    call.tool,
                    call.arguments,
                    read_timeout_seconds=left_s + 1,
                    meta={"backstay/effect-id": call.effect_id} if call.effect_id else None,  # type: ignore[typeddict-unknown-key]
                    allow_input_required=True,
                )
        except TimeoutError:
            raise OutcomeUnknown(f"no answer within {call.deadline_s:g} s", timed_out=True) from None
        except MCPError as error:
            return self._refusal(connection, call, error, exchange)
        except Exception as error:  # whatever else is no answer: the request is already under way
            raise of_fault(error) from None
        finally:
            current.reset(token)
        if not isinstance(result, CallToolResult):
            return refused("the server asks for further input, which is not available in this version")
        return answer_of(result)

    def _refusal(self, connection: Connection, call: Call, error: MCPError, exchange: Exchange | None) -> Answer:
        if exchange is not None and exchange.status == 404:
            connection.drop()  # the server forgot the session; the next call opens another
        if error.code == TOO_LARGE or (exchange is not None and exchange.too_large):
            reason = f"the answer is larger than {CAP // 1024**2} MB, which is the most one result may have"
            if call.before_send is None:
                return refused(reason)
            raise OutcomeUnknown(reason) from None
        try:
            return of_protocol_error(error.code, error.message, exchange)
        except Exception as known:  # the cause is an implementation's detail and may quote a payload
            raise known from None

    @asynccontextmanager
    async def _in_turn(self, patience_s: float) -> AsyncGenerator[None]:
        if self._turn is None:
            yield
            return
        try:
            await asyncio.wait_for(self._turn.acquire(), patience_s)
        except TimeoutError:
            raise ToolUnavailable(f"{self.name} is busy with another call") from None
        try:
            yield
        finally:
            self._turn.release()

    async def _reachable(self) -> None:
        """Find out before the intent that an HTTP server is gone: afterwards it would count as unknown."""
        if self._url is None:
            return
        parts = urlsplit(self._url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(_LIST_S):
                _, writer = await asyncio.open_connection(parts.hostname, port)
        except (OSError, TimeoutError) as error:
            raise ToolUnavailable(f"{self.name} cannot be reached: {describe_fault(error)}") from None
        writer.close()

    async def _connected_by(self, ends: float) -> Connection:
        try:
            async with asyncio.timeout(max(0.1, ends - time.monotonic())):
                return await self._connected()
        except TimeoutError:
            raise ToolUnavailable(f"{self.name} could not be connected in time") from None

    async def _connected(self) -> Connection:
        """Return a connection whose tools were listed; whoever comes while it opens shares the attempt."""
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._closed:
            raise ToolUnavailable(f"{self.name} is closed")
        if self._opening is None or self._opening.done():
            self._opening = _start(self._open())
        opening = self._opening
        await asyncio.wait({opening})
        if opening.cancelled():
            raise ToolUnavailable(f"{self.name} is closed")
        return opening.result()

    async def _open(self) -> Connection:
        if self._connection is not None:
            await self._connection.close()
        self._connection = None
        connection = Connection(self._transport, self._forget)
        try:
            await connection.wait_open()
            await self._read(connection)
        except BaseException as error:
            await connection.close()
            if isinstance(error, ToolUnavailable):
                self._fail(error)
            raise
        self._connection = connection
        return connection

    async def _read(self, connection: Connection) -> None:
        exchange = Exchange()
        token = current.set(exchange)
        try:
            async with asyncio.timeout(_LIST_S):
                tools = await read_roll(connection.client)
        except TimeoutError:
            raise ToolUnavailable(f"the server did not list its tools within {_LIST_S:g} s") from None
        except Exception as error:
            reason = f"HTTP {exchange.status}" if (exchange.status or 0) >= 400 else describe_fault(error)
            raise ToolUnavailable(f"the server cannot list its tools: {exchange.fault or reason}") from None
        finally:
            current.reset(token)
        changed = repr(tools) != repr(self._listing.tools)  # equality would hold True and 1 for the same
        self._listing = Listing(tools=tools, generation=self._listing.generation + changed)
        self._read_at = time.monotonic()
        self._failures = 0

    def _begin_reading(self) -> "asyncio.Task[None]":
        if self._reading is None or self._reading.done():
            self._reading = _start(self._refresh())
        return self._reading

    async def _refresh(self) -> None:
        if self._connection is None or not self._connection.alive:
            with suppress(ToolUnavailable):  # opening says by itself why it failed
                await self._connected()
            return
        try:
            await self._read(self._connection)
        except ToolUnavailable as error:
            self._fail(error)

    def _fail(self, error: ToolUnavailable) -> None:
        reason = str(error)
        if self._listing.reason != reason:
            _log.warning("provider.unavailable", provider=self.name, reason=reason)
        self._failures += 1
        self._listing = Listing(tools=self._listing.tools, reason=reason, generation=self._listing.generation)
        self._read_at = time.monotonic()

    def _forget(self) -> None:
        self._read_at = float("-inf")


def _start(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task
