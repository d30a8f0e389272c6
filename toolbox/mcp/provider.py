"""An MCP server as a provider: connect, list tools, and call them, each call over one open connection."""

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import structlog
from mcp import Client, MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, InputRequiredResult, Tool

from backstay.errors import OutcomeUnknown, ToolUnavailable
from backstay.shown import message_line
from toolbox.mcp.connection import CONNECT_S, FIRST_START_S, Connection
from toolbox.mcp.elicitation import CallElicitations, elicit_results, input_required
from toolbox.mcp.errors import TOO_LARGE, describe_fault, of_fault, of_protocol_error, of_status
from toolbox.mcp.http_transport import CAP, HttpExchange, current
from toolbox.mcp.transports import NOT_SPOKEN_HERE, Transport
from toolbox.providers.answer import Answer, answer_of, refused
from toolbox.providers.concurrency import ConcurrencyLimit, SharedTask
from toolbox.providers.elicitation import InputRequired, InputResponse
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, Listing, ToolAnnotations
from toolbox.providers.provider import Call, NotSent

_FRESH_S = 60.0
_LIST_S = 15.0
_PATIENCE_S = CONNECT_S + _LIST_S
"""How long whoever looks for tools waits for a server, from the time at which it began to start."""
_BACKOFF_S = (2.0, 30.0)
_log = structlog.get_logger("toolbox")
_PAGES = 1000
_TOOLS = 20_000


async def list_all_tools(client: Client) -> tuple[ListedTool, ...]:
    """Return every tool once, in the server's order; a paginator that never ends is an error."""
    found: dict[str, ListedTool] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            found.setdefault(tool.name, _listed(tool))
        if page.next_cursor is None:
            return tuple(found.values())
        if page.next_cursor == cursor or len(found) > _TOOLS:
            break
        cursor = page.next_cursor
    raise ValueError("the list of tools has no end")


def _listed(tool: Tool) -> ListedTool:
    given: Any = tool.annotations
    annotations = ToolAnnotations()
    if given is not None:
        annotations = ToolAnnotations(
            read_only=given.read_only_hint,
            destructive=given.destructive_hint,
            idempotent=given.idempotent_hint,
            open_world=given.open_world_hint,
        )
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=json_safe(tool.input_schema),
        output_schema=json_safe(tool.output_schema),
        annotations=annotations,
    )


class ToolCallRequest:
    """Send one call and read its answer."""

    def __init__(self, connection: Connection, call: Call, ends: float, *, over_http: bool) -> None:
        """Send over this connection, until the loop's clock shows `ends`."""
        self._connection = connection
        self._call = call
        self._ends = ends
        self._exchange = HttpExchange(ends=ends) if over_http else None

    async def answer(self) -> Answer:
        """Return the tool's answer or its question; raises NotSent and OutcomeUnknown."""
        reply = self._call.reply
        with self._connection.elicitations.collect(reply) as asked:
            answer = await self._sent(None if reply is None or reply.required.in_call else reply)
        return _with_elicitations(answer, asked) if asked.unanswered else answer

    async def _sent(self, reply: InputResponse | None, *, anew: bool = True) -> Answer:
        token = current.set(self._exchange)
        try:
            async with asyncio.timeout_at(self._ends):
                result = await self._called(reply)
        except TimeoutError:
            raise OutcomeUnknown(f"no answer within {self._call.deadline_s:g} s", timed_out=True) from None
        except MCPError as error:
            if reply is not None and anew and error.code == INVALID_PARAMS:
                # The server no longer knows its own question, and refuses before it does anything.
                return await self._asked_again(reply)
            return self._refusal(error)
        except Exception as error:  # whatever else is no answer: the request is already under way
            raise of_fault(error) from None
        finally:
            current.reset(token)
        if isinstance(result, CallToolResult):
            return answer_of(result)
        question = input_required(result)
        if question is None:
            return refused("the server asks for sampling or for roots, which are not available to servers")
        return Answer(success=False, question=question)

    async def _asked_again(self, reply: InputResponse) -> Answer:
        answer = await self._sent(None)
        question = answer.question
        if question is None or question.requests != reply.required.requests:
            return answer
        return await self._sent(replace(reply, required=question), anew=False)

    async def _called(self, reply: InputResponse | None) -> CallToolResult | InputRequiredResult:
        call = self._call
        more: dict[str, Any] = {}
        if reply is not None:
            more["input_responses"] = elicit_results(reply)
            more["request_state"] = reply.required.state
        left = max(0.1, self._ends - asyncio.get_running_loop().time())
        return await self._connection.client.session.call_tool(
            call.tool,
            call.arguments,
            read_timeout_seconds=left + 1,
            progress_callback=None if call.on_progress is None else self._progress,
            meta={"backstay/effect-id": call.effect_id} if call.effect_id else None,  # type: ignore[typeddict-unknown-key]
            allow_input_required=True,
            **more,
        )

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._call.on_progress is not None:
            of = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            self._call.on_progress(message_line(f"{of} {message or ''}", 200))

    def _refusal(self, error: MCPError) -> Answer:
        exchange, call = self._exchange, self._call
        if exchange is not None and exchange.status == 404:
            self._connection.drop()  # the server forgot the session; the next call opens another
        if error.code == TOO_LARGE or (exchange is not None and exchange.too_large):
            reason = f"the answer is larger than {CAP // 1024**2} MB, which is the most one result may have"
            if call.before_send is None:
                return refused(reason)
            raise OutcomeUnknown(reason) from None
        try:
            return of_protocol_error(error.code, error.message, exchange)
        except Exception as known:  # the cause is an implementation's detail and may quote a payload
            raise known from None


def _with_elicitations(answer: Answer, asked: CallElicitations) -> Answer:
    """Return the answer with what the server asked meanwhile, and what it said when nobody answered."""
    said = answer.error if not answer.success else str(answer.data)
    question = InputRequired(
        requests=tuple(asked.unanswered), said=message_line(said or "nothing"), failed=not answer.success
    )
    return replace(answer, question=question)


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
    ) -> None:
        """Use the first of the transports that the server supports; `log` is where what it prints is kept."""
        self.name = name
        self._transports = transports
        self._url = url
        self._log = log
        self._init_timeout = init_timeout
        self._turns = ConcurrencyLimit(name, most)
        self._connection: Connection | None = None
        self._opening = SharedTask(self._open)
        self._refreshing = SharedTask(self._refresh)
        self._refreshed_since = 0.0
        self._listing = Listing()
        self._read_at = float("-inf")
        self._failures = 0
        self._pause_s = 0.0
        self._closed = False

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools, read again after 60 s or a change; a failed server is retried in the background."""
        age = time.monotonic() - self._read_at
        if not fresh and self._listing.reason is not None:
            if age >= self._pause_s:
                self._refreshed()
            return self._listing
        if fresh or age >= _FRESH_S or (self._connection is not None and not self._connection.alive):
            refreshed = self._refreshed()
            left_s = self._refreshed_since + _PATIENCE_S - time.monotonic()
            await asyncio.wait({refreshed}, timeout=None if fresh else max(0.0, left_s))
        if self._starting:
            return replace(self._listing, reason="the server is still starting", starting=True)
        return self._listing

    async def wait_started(self, patience_s: float) -> None:
        """Wait for a server that is starting for the first time; one that has failed is not waited for."""
        if self._connection is None and self._listing.reason is None:
            await asyncio.wait({self._refreshed()}, timeout=patience_s)

    async def call(self, call: Call) -> Answer:
        """Call one tool; ToolUnavailable before, NotSent or OutcomeUnknown after `before_send`.

        The deadline counts from here: it is also the end of the lease under which an effect is sent.
        """
        ends = asyncio.get_running_loop().time() + call.deadline_s
        async with self._turns.taken(call.deadline_s):
            connection = await self._connected(max(0.0, ends - asyncio.get_running_loop().time()))
            if call.still_listed is not None:
                call.still_listed(self._listing)
            if call.before_send is not None:
                await self._reachable()
                await call.before_send()
            try:
                return await ToolCallRequest(connection, call, ends, over_http=self._url is not None).answer()
            except NotSent as error:
                if error.login:
                    # The connection stays open: other calls may be using it.
                    self._fail(ToolUnavailable(str(error)))
                raise
            finally:
                if connection.elicitations.used:
                    self._turns.one_at_a_time()

    async def close(self) -> None:
        """End the connection and the server behind it."""
        self._closed = True
        await asyncio.gather(self._opening.cancel(), self._refreshing.cancel())
        if self._connection is not None:
            await self._connection.close()

    async def _reachable(self) -> None:
        """Check that an HTTP server can be reached before the intent is committed; later it counts as unknown."""
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

    async def _connected(self, timeout_s: float | None = None) -> Connection:
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

    async def _open(self) -> Connection:
        if self._connection is not None:
            await self._connection.close()
        self._connection = None
        for position, transport in enumerate(self._transports, 1):
            connection = Connection(transport, self._forget, self._may_take_s, self._log)
            try:
                await connection.wait_open()
                await self._read(connection)
            except BaseException as error:
                await connection.close()
                if position < len(self._transports) and connection.seen.status in NOT_SPOKEN_HERE:
                    continue
                if isinstance(error, ToolUnavailable):
                    self._fail(error)
                raise
            self._connection = connection
            # The transport that worked is the one to use again.
            self._transports = (transport,)
            return connection
        raise ToolUnavailable(f"{self.name} has no address")

    async def _read(self, connection: Connection) -> None:
        exchange = HttpExchange(ends=asyncio.get_running_loop().time() + _LIST_S)
        token = current.set(exchange)
        try:
            async with asyncio.timeout(_LIST_S):
                tools = await list_all_tools(connection.client)
        except TimeoutError:
            raise ToolUnavailable(f"the server did not list its tools within {_LIST_S:g} s") from None
        except Exception as error:
            if exchange.status == 401:
                raise ToolUnavailable(of_status(401)) from None
            reason = f"HTTP {exchange.status}" if (exchange.status or 0) >= 400 else describe_fault(error)
            raise ToolUnavailable(f"the server cannot list its tools: {exchange.fault or reason}") from None
        finally:
            current.reset(token)
        connection.output_schemas = {tool.name: tool.output_schema for tool in tools if tool.output_schema is not None}
        changed = repr(tools) != repr(self._listing.tools)  # equality would hold True and 1 for the same
        self._listing = Listing(tools=tools, generation=self._listing.generation + changed)
        self._read_at = time.monotonic()
        self._failures = 0

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
        # Workers that lost a server at the same moment should not all return at the same moment.
        self._pause_s = min(_BACKOFF_S[0] * 2 ** (self._failures - 1), _BACKOFF_S[1]) * random.uniform(0.75, 1.25)  # noqa: S311  # no secret
        self._listing = Listing(tools=self._listing.tools, reason=reason, generation=self._listing.generation)
        self._read_at = time.monotonic()

    def _forget(self) -> None:
        self._read_at = float("-inf")
