"""One open MCP client, opened and closed by its own task."""

import asyncio
import contextvars
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import structlog
from mcp import Client, MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolResult,
    Implementation,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ServerNotification,
    ToolListChangedNotification,
)

from backstay.errors import ToolUnavailable
from backstay.shown import one_line
from backstay.version import version
from toolbox.mcp.elicitation import ElicitationRouter
from toolbox.mcp.errors import describe_fault, of_status, unwrap
from toolbox.mcp.http_transport import HttpExchange, current
from toolbox.mcp.printed import ServerOutput
from toolbox.mcp.streams import tolerant
from toolbox.mcp.transports import Transport
from toolbox.providers.listing import ServerExtras
from toolbox.schema import compile_schema, misfits

CONNECT_S = 15.0
"""How long a server may take to answer at all, unless its `initTimeout` says otherwise."""
FIRST_START_S = 60.0
"""The same for a command that has never answered yet: `npx` and `uvx` download at their first start."""
AUTO, HANDSHAKE = "auto", "legacy"
"""How a connection begins, in the client's words: with the newest revision's question, or as all older ones began."""
_CLOSE_S = 5.0
_LISTEN_AGAIN_S = 1.0
_LISTEN_MOST_S = 300.0
_CHANGES = (ToolListChangedNotification, ResourceListChangedNotification, PromptListChangedNotification)
_log = structlog.get_logger("toolbox")


class McpConnection:
    """Hold one client; every call may use it, only its own task opens and closes it."""

    def __init__(
        self, transport: Transport, changed: Any, within_s: float, log: Path | None = None, greeting: str = AUTO
    ) -> None:
        self._within_s = within_s
        self._printed = ServerOutput(log)
        self._ended = asyncio.Event()
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._changed = changed
        self._waiting = 0
        self.retired = False
        """Whether it takes no more calls, because its session is gone."""
        self.exited = False
        """Whether the server ended before it answered anything."""
        self.wants_handshake = False
        """Whether the server refuses calls for want of the handshake that it said it can do without."""
        self.output_schemas: dict[str, Any] = {}
        """What the server's tools say about their answers, by tool."""
        self.beside: ServerExtras | None = None
        """What the server offers besides tools, once it was asked for that."""
        self._validators: dict[str, tuple[Any, Any]] = {}
        self._validating = asyncio.Lock()
        self._noted = set[str]()
        self.seen = HttpExchange()
        self.elicitations = ElicitationRouter()
        self.client = Client(
            tolerant(transport(self._ended)),
            elicitation_callback=self.elicitations.elicit,
            message_handler=self._on_message,
            client_info=Implementation(name="backstay", version=version()),
            cache=None,
            mode=greeting,
        )
        # An empty context: nothing of the caller that opens the connection may remain in it.
        self._task = asyncio.create_task(self._own(), context=contextvars.Context())

    @property
    def alive(self) -> bool:
        """Return whether requests can still be sent."""
        return not (self.retired or self.ended or self._closing.is_set())

    @property
    def ended(self) -> bool:
        """Return whether nothing is left of it."""
        return self._ended.is_set() or self._task.done()

    @property
    def shook_hands(self) -> bool:
        """Return whether it began with the handshake of the older revisions."""
        return self.client.session.discover_result is None

    @property
    def in_use(self) -> bool:
        """Return whether a call waits for its answer here."""
        return self._waiting > 0

    @contextmanager
    def used(self) -> Generator[None]:
        """Count a call that waits for its answer here."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if self.retired and not self._waiting:
                self._closing.set()

    async def wait_open(self) -> None:
        """Wait until the handshake is done; raises ToolUnavailable with the cause when it fails or takes too long."""
        done, _ = await asyncio.wait({self._opened}, timeout=self._within_s)
        if not done:
            await self.close()
            why = self._printed.unread() or "raise its `initTimeout`"
            raise ToolUnavailable(f"the server did not answer within {self._within_s:g} s of its start; {why}")
        error = self._opened.exception()
        if error is not None:
            raise self._unavailable(error) from None

    async def close(self) -> None:
        """End the client and whatever it started, within bounded time."""
        self._closing.set()
        if not self._opened.done():
            self._task.cancel()
        _, running = await asyncio.wait({self._task}, timeout=_CLOSE_S)
        if running:
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=1)

    def retire(self) -> None:
        """Take no more calls; close in the background when those under way have their answers."""
        self.retired = True
        if not self._waiting:
            self._closing.set()

    async def _own(self) -> None:
        current.set(self.seen)
        try:
            async with self.client:
                # The client's own check runs on the event loop, has no bounds, and throws the answer away.
                self.client.session.validate_tool_result = self._leave_output
                self._opened.set_result(None)
                listening = asyncio.create_task(self._listen())
                ends = [asyncio.create_task(event.wait()) for event in (self._closing, self._ended)]
                try:
                    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    tasks: set[asyncio.Task[Any]] = {*ends, listening}
                    for task in tasks:
                        task.cancel()
                    await asyncio.wait(tasks)
        except BaseException as error:
            if not self._opened.done():
                self._opened.set_exception(error if isinstance(error, Exception) else ToolUnavailable("closed"))
                self._opened.exception()  # the waiting task reads it; nobody may be waiting
            elif isinstance(error, asyncio.CancelledError):
                raise
        finally:
            self._ended.set()

    async def _leave_output(self, name: str, result: CallToolResult) -> None:
        """Check nothing: a tool that does not keep its own output schema has answered all the same."""

    async def note_answer(self, tool: str, said: Any) -> None:
        """Tell the operator, once for each tool, that its answers do not fit the schema that it names for them."""
        schema = self.output_schemas.get(tool)
        if schema is None or tool in self._noted or not isinstance(said, dict) or said.get("isError"):
            return
        content = said.get("structuredContent")
        async with self._validating:
            if content is not None and not await asyncio.to_thread(self._misfits, tool, schema, content):
                return
        self._noted.add(tool)
        _log.info("tool.output_schema_not_kept", tool=one_line(tool, 100), structured=content is not None)

    def _misfits(self, name: str, schema: Any, content: Any) -> bool:
        known = self._validators.get(name)
        if known is None or known[0] is not schema:
            known = self._validators[name] = (schema, compile_schema(schema))
        return misfits(known[1], content)

    async def _listen(self) -> None:
        """Subscribe to changes of the lists on servers of the stateless revision; older servers notify unasked."""
        offered = self.client.server_capabilities
        named = {"tools": offered.tools, "resources": offered.resources, "prompts": offered.prompts}
        wanted: Any = {f"{name}_list_changed": True for name, of in named.items() if of is not None and of.list_changed}
        if not wanted:
            return
        pause_s = _LISTEN_AGAIN_S
        while True:
            with suppress(Exception):  # early notice is a convenience; listings expire anyway
                async with self.client.listen(**wanted) as events:
                    async for _ in events:
                        self._forget_lists()
                        pause_s = _LISTEN_AGAIN_S
            if self.shook_hands:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LISTEN_MOST_S)
            self._forget_lists()  # a change meanwhile was told to nobody

    async def _on_message(self, message: ServerNotification | Exception) -> None:
        if isinstance(message, _CHANGES):
            self._forget_lists()

    def _forget_lists(self) -> None:
        self.beside = None
        self._changed()

    def _unavailable(self, raised: BaseException) -> ToolUnavailable:
        error = unwrap(raised)
        if isinstance(error, ToolUnavailable):
            return error
        if self.seen.status is not None and self.seen.status >= 400:
            return ToolUnavailable(of_status(self.seen.status, error))
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED and self.seen.fault is None:
            self.exited = True
            return ToolUnavailable(f"the server exited before it answered{self._printed.last_words()}")
        return ToolUnavailable(f"the server cannot be reached: {self.seen.fault or describe_fault(error)}")
