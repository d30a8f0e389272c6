"""An MCP server as a provider: connect, list tools, and call them, each call over one open connection."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import structlog

from backstay.errors import ToolUnavailable
from backstay.redaction.redactor import Redactor
from backstay.shown import message_block
from system.dialing import AddressRefused
from toolbox.mcp.connection import AUTO, CONNECT_S, FIRST_START_S, HANDSHAKE, McpConnection
from toolbox.mcp.errors import cause_of, describe_fault, of_status
from toolbox.mcp.http_transport import HttpExchange, current
from toolbox.mcp.listing import list_all_tools
from toolbox.mcp.resources import beside_of, request_for_tool, tools_beside, with_reader
from toolbox.mcp.tasks import ask_about
from toolbox.mcp.tool_call import SessionGone, ToolCallRequest
from toolbox.mcp.transports import NOT_SPOKEN_HERE, Transport
from toolbox.providers.answer import Answer
from toolbox.providers.concurrency import ConcurrencyLimit, SharedTask
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import Listing, ServerExtras
from toolbox.providers.provider import NotSent, ProviderCall
from toolbox.providers.server_tasks import TaskRequest

_INSTRUCTIONS = 2000
"""How much of what a server says of itself is read."""
_LIST_S = 15.0
_PATIENCE_S = CONNECT_S + _LIST_S
"""How long whoever looks for tools waits for a server, from the time at which it began to start."""
_BACKOFF_S = (2.0, 30.0)
_IDLE_S = 1800.0
"""After how long without a call a connection is closed; the server may keep something for whoever uses it."""
_STATELESS_IDLE_S = 60.0
"""The same over HTTP at a server that says it keeps nothing between requests."""
_ASLEEP_FRESH_S = 3600.0
"""How long a list is good whose connection was closed since nobody used it; a call reads it again."""
_SESSIONS = 3
"""Under how many sessions a read is tried, when a server forgets them."""
_log = structlog.get_logger("toolbox")


class McpProvider:
    """Offer the tools of one MCP server; the connection is opened when first needed, and again after it broke."""

    kind = "mcp"

    def __init__(
        self,
        name: str,
        transports: tuple[Transport, ...],
        *,
        most: int | None = None,
        url: str | None = None,
        log: Path | None = None,
        init_timeout: float | None = None,
        idle_timeout: float | None = None,
        redactor: Callable[[], Redactor],
        look_up: Callable[[str], Awaitable[object]] | None = None,
    ) -> None:
        """Use the first of the transports that the server supports; `log` is where what it prints is kept.

        `redactor` returns what knows now what a server may repeat of its settings and tokens. `look_up` tells what its
        address may stand for.
        """
        self.name = name
        self._transports = transports
        self._greetings = self._all_greetings = (AUTO, HANDSHAKE) if url is None else (AUTO,)
        self._url, self._look_up = url, look_up
        self._log = log
        self._init_timeout = init_timeout
        self._idle_timeout = idle_timeout
        self._idle: asyncio.TimerHandle | None = None
        self._redactor = redactor
        self._turns = ConcurrencyLimit(name, most)
        self._connection: McpConnection | None = None
        self._retired: list[McpConnection] = []
        """Those that take no more calls and still wait for answers."""
        self._opening = SharedTask(self._open)
        self._refreshing = SharedTask(self._refresh)
        self._refreshed_since = 0.0
        self._listing = Listing()
        self._read_at = float("-inf")
        self._fresh_s = 0.0
        self._changes = 0
        self._failures, self._pause_s = 0, 0.0
        self._asleep = self._closed = False

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools, read again when their server says, else after 60 s, and after a change.

        A failed server is retried in the background.
        """
        age = time.monotonic() - self._read_at
        if not fresh and self._listing.reason is not None:
            if age >= self._pause_s:
                self._refreshed()
            return self._listing
        if not fresh and self._asleep and age < _ASLEEP_FRESH_S:
            return self._listing
        if fresh or age >= self._fresh_s or (self._connection is not None and not self._connection.alive):
            refreshed = self._refreshed()
            left_s = self._refreshed_since + _PATIENCE_S - time.monotonic()
            await asyncio.wait({refreshed}, timeout=None if fresh else max(0.0, left_s))
        if self._starting:
            return replace(self._listing, reason="the server is still starting", starting=True)
        return self._listing

    async def wait_started(self, patience_s: float) -> None:
        """Wait for a server that is starting for the first time; one that has failed is not waited for."""
        if self._connection is None and self._listing.reason is None and not self._asleep:
            await asyncio.wait({self._refreshed()}, timeout=patience_s)

    async def call(self, call: ProviderCall) -> Answer:
        """Call one tool; ToolUnavailable before, NotSent or OutcomeUnknown after `before_send`.

        The deadline counts from here: it is also the end of the lease under which an effect is sent.
        """
        ends = asyncio.get_running_loop().time() + call.deadline_s
        async with self._turns.taken(call.deadline_s):
            for left in reversed(range(_SESSIONS)):
                try:
                    return await self._called(call, ends)
                except SessionGone:
                    # A read is simply made again. A write is left to whoever keeps the record of it.
                    if call.before_send is not None or not left:
                        raise
        raise AssertionError("a loop that returns or raises")

    async def _called(self, call: ProviderCall, ends: float) -> Answer:
        connection = await self._connected(max(0.0, ends - asyncio.get_running_loop().time()))
        if call.still_listed is not None:
            call.still_listed(self._listing)
        try:
            # Once an intent is committed, nothing else may close the connection before the call is sent.
            with connection.used():
                if call.before_send is not None:
                    await self._reachable()
                    await call.before_send()
                asked = request_for_tool(call.tool) if self._is_of_engine(call.tool) else ToolCallRequest
                answer = await asked(connection, call, ends, over_http=self._url is not None).answer()
                return with_reader(answer, self.name, self._listing.tools)
        except NotSent as error:
            if error.login:
                # The connection stays open: other calls may be using it.
                self._fail(ToolUnavailable(str(error)))
            raise
        finally:
            if connection.wants_handshake:
                self._greetings = (HANDSHAKE,)
            if connection.elicitations.used:
                self._turns.one_at_a_time()
            self._wait_idle()

    def _is_of_engine(self, tool: str) -> bool:
        return any(listed.of_engine and listed.name == tool for listed in self._listing.tools)

    async def follow(self, request: TaskRequest) -> Answer:
        """Ask about a task; TaskGone, and ToolUnavailable, NotSent and OutcomeUnknown where another try may do.

        It takes no turn: the work under way at the server is the task itself.
        """
        connection = await self._connected(request.deadline_s)
        try:
            with connection.used():
                answer = await ask_about(connection, request, over_http=self._url is not None)
                return with_reader(answer, self.name, self._listing.tools)
        finally:
            self._wait_idle()

    def _wait_idle(self) -> None:
        """Close the connection after a while in which nobody calls; the next call opens another."""
        connection = self._connection
        if self._idle is not None:
            self._idle.cancel()
        if connection is None or self._closed:
            return
        stateless = self._url is not None and not connection.shook_hands
        usual = _STATELESS_IDLE_S if stateless else _IDLE_S
        idle_s = usual if self._idle_timeout is None else self._idle_timeout
        if idle_s > 0:
            self._idle = asyncio.get_running_loop().call_later(idle_s, self._fall_asleep, connection)

    def _fall_asleep(self, connection: McpConnection) -> None:
        if self._connection is not connection or not connection.alive:
            return
        if connection.in_use or self._refreshing.running:
            self._wait_idle()
            return
        connection.retire()
        self._retired.append(connection)
        self._connection, self._asleep = None, True
        _log.debug("provider.idle", provider=self.name)

    async def close(self) -> None:
        """End the connection and the server behind it."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        await asyncio.gather(self._opening.cancel(), self._refreshing.cancel())
        left = {*self._retired, self._connection} - {None}
        await asyncio.gather(*(connection.close() for connection in left if connection is not None))

    async def _reachable(self) -> None:
        """Check that an HTTP server can be reached before the intent is committed; later it counts as unknown."""
        if self._url is None:
            return
        parts = urlsplit(self._url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            async with asyncio.timeout(_LIST_S):
                host = parts.hostname if self._look_up is None else str(await self._look_up(self._url))
                _, writer = await asyncio.open_connection(host, port)
        except AddressRefused as error:
            raise ToolUnavailable(f"{self.name} cannot be reached: {error}") from None
        except (OSError, TimeoutError, httpx2.HTTPError) as error:
            raise ToolUnavailable(f"{self.name} cannot be reached: {describe_fault(error)}") from None
        writer.close()

    async def _connected(self, timeout_s: float | None = None) -> McpConnection:
        """Return a connection whose tools were listed; concurrent callers share one attempt to open it."""
        if self._connection is not None and self._connection.alive:
            return self._connection
        if self._closed:
            raise ToolUnavailable(f"{self.name} is closed")
        opening = self._opening.start()
        await asyncio.wait({opening}, timeout=timeout_s)
        if not opening.done():
            raise ToolUnavailable(f"{self.name} could not be connected in time")
        if opening.cancelled():
            raise ToolUnavailable(f"{self.name} is closed")
        return opening.result()

    async def _open(self) -> McpConnection:
        self._retired = [connection for connection in self._retired if not connection.ended]
        if self._connection is not None and self._connection.retired:
            self._retired.append(self._connection)
        elif self._connection is not None:
            await self._connection.close()
        self._connection = None
        ways = [(transport, greeting) for transport in self._transports for greeting in self._greetings]
        for position, (transport, greeting) in enumerate(ways, 1):
            connection = McpConnection(transport, self._forget, self._may_take_s, self._log, greeting)
            try:
                await connection.wait_open()
                await self._read(connection)
            except BaseException as error:
                await connection.close()
                # Many commands that are older than the newest revision's question end when they read it.
                ended = connection.exited and self._url is None
                if position < len(ways) and (ended or connection.seen.status in NOT_SPOKEN_HERE):
                    continue
                if isinstance(error, ToolUnavailable):
                    self._greetings = self._all_greetings
                    self._fail(error)
                raise
            self._connection, self._asleep = connection, False
            self._wait_idle()
            # The way that worked is the one to use again.
            self._transports = (transport,)
            self._greetings = (HANDSHAKE,) if connection.shook_hands else self._all_greetings
            return connection
        raise ToolUnavailable(f"{self.name} has no address")

    async def _read(self, connection: McpConnection) -> None:
        exchange = HttpExchange(ends=asyncio.get_running_loop().time() + _LIST_S)
        token = current.set(exchange)
        changes = self._changes
        try:
            async with asyncio.timeout(_LIST_S):
                listed = await list_all_tools(connection.client)
        except TimeoutError:
            raise ToolUnavailable(f"the server did not list its tools within {_LIST_S:g} s") from None
        except Exception as error:
            if exchange.session and ((exchange.status or 0) >= 400 or exchange.probe is not None):
                connection.retire()  # whatever the server holds against the session, another one may do
            if exchange.status == 401:
                raise ToolUnavailable(of_status(401)) from None
            raise ToolUnavailable(f"the server cannot list its tools: {cause_of(error, exchange)}") from None
        finally:
            current.reset(token)
        beside = connection.beside or await self._beside(connection)
        connection.beside = beside if beside.whole and changes == self._changes else None
        more = tools_beside(beside, (tool.name for tool in listed.tools))
        tools, was = (*listed.tools, *more), self._listing
        redactor = self._redactor()
        problems = tuple(map(redactor.clipped_text, listed.problems))
        said = json_safe(message_block(connection.client.instructions or ""))
        instructions = redactor.clipped_text(str(said)[:_INSTRUCTIONS])
        connection.output_schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}
        # Equality would hold True and 1 for the same.
        found = (tools, problems, instructions)
        changed = repr(found) != repr((was.tools, was.problems, was.instructions))
        told: Any = {"problems": problems, "instructions": instructions, "generation": was.generation + changed}
        self._listing = Listing(tools=tools, **told)
        self._fresh_s = listed.fresh_s
        # Tools that changed while the list was read may be missing in it.
        self._read_at = time.monotonic() if changes == self._changes else float("-inf")
        self._failures = 0

    async def _beside(self, connection: McpConnection) -> ServerExtras:
        """Return what the server offers besides tools; failures meanwhile say nothing of its tools."""
        token = current.set(HttpExchange(ends=asyncio.get_running_loop().time() + _LIST_S))
        try:
            return await beside_of(connection)
        finally:
            current.reset(token)

    @property
    def _may_take_s(self) -> float:
        """Return for how long the server may start and not answer."""
        if self._init_timeout is not None:
            return self._init_timeout
        first = self._url is None and self._listing.generation == 0
        return FIRST_START_S if first else CONNECT_S

    @property
    def _starting(self) -> bool:
        return self._refreshing.running and self._connection is None and self._listing.reason is None

    def _refreshed(self) -> "asyncio.Task[None]":
        if not self._refreshing.running:
            self._refreshed_since = time.monotonic()
        return self._refreshing.start()

    async def _refresh(self) -> None:
        connection = self._connection
        if connection is not None and connection.alive:
            try:
                await self._read(connection)
            except ToolUnavailable as error:
                if connection.alive:
                    self._fail(error)
                    return
            else:
                return
        with suppress(ToolUnavailable):  # opening says by itself why it failed
            await self._connected()

    def _fail(self, error: ToolUnavailable) -> None:
        reason = self._redactor().clipped_text(str(error))
        if self._listing.reason != reason:
            _log.warning("provider.unavailable", provider=self.name, reason=reason)
        self._failures += 1
        # Workers that lost a server at the same moment should not all return at the same moment.
        self._pause_s = min(_BACKOFF_S[0] * 2 ** (self._failures - 1), _BACKOFF_S[1]) * random.uniform(0.75, 1.25)  # noqa: S311  # no secret
        self._listing = replace(self._listing, reason=reason)
        self._read_at = time.monotonic()

    def _forget(self) -> None:
        self._changes += 1
        self._read_at = float("-inf")
