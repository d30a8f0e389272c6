"""Serve tools, and what they begin as tasks; a client that does not know the extension waits for it instead."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, NamedTuple

import structlog
from mcp import types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from backstay.errors import BackstayError, Transient
from backstay.shown import message_line, one_line
from backstay.version import version
from gateways.engine_mcp.limits import CallerLimits, TooMany
from gateways.engine_mcp.subscriptions import Subscriptions
from gateways.engine_mcp.tasks import (
    EXTENSION,
    HEADER_MISMATCH,
    MOST_ID,
    AboutTask,
    Report,
    ServedTask,
    Tasks,
    TaskStart,
    UnknownTask,
    elicits,
    has_extension,
    require_extension,
    settled,
)
from gateways.mcp_serving import answered, failed

_REFUSED = -32000
_LISTED_MS = 300_000
_LONGEST = 2000
Context = ServerRequestContext[Any]
log = structlog.get_logger("backstay.mcp")


class ToolRequest(NamedTuple):
    """Hold one call of a tool."""

    caller: str
    arguments: dict[str, Any]
    client: str
    """What the client calls itself; nobody vouches for that."""
    report: Report
    answers: dict[str, Any]
    """What the client says to what an earlier round of this call has asked."""


class ServedTool(NamedTuple):
    """Hold a tool: what clients are told of it, and what does it."""

    told: types.Tool
    call: Callable[[ToolRequest], Awaitable[types.CallToolResult | types.InputRequiredResult | TaskStart]]
    """Raises BackstayError, which the client is told as an error of the tool."""
    only_as_task: bool = False
    """Whether only clients that know the extension can call it."""


class TaskServer:
    """Answer clients, each in the name of its caller."""

    def __init__(
        self,
        tools: Sequence[ServedTool],
        tasks: Tasks,
        *,
        name: str,
        instructions: str,
        caller: Callable[[Context], str],
        limits: CallerLimits,
    ) -> None:
        """`caller` says who sends a request; nothing in the request itself does."""
        self._tools = {tool.told.name: tool for tool in tools}
        self._tasks = tasks
        self._name, self._instructions = name, instructions
        self._caller = caller
        self._limits = limits

    def server(self) -> Server[Any]:
        """Return the MCP server."""
        server = Server[Any](
            self._name,
            version=version(),
            instructions=self._instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=Subscriptions(self._tasks, self._caller, self._limits).listen,
            cache_hints={"tools/list": CacheHint(ttl_ms=_LISTED_MS, scope="public")},
        )
        server.extensions[EXTENSION] = {}
        for action in ("get", "update", "cancel"):
            server.add_request_handler(f"tasks/{action}", AboutTask, self._about(action))
        return server

    async def _list(self, _context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.told for tool in self._tools.values()])

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> Any:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {one_line(params.name, 80)}")
        capabilities = context.session.client_capabilities
        if tool.only_as_task:
            require_extension(capabilities)
        caller = self._caller(context)

        async def report(progress: float, words: str) -> None:
            await context.session.report_progress(progress, message=words or None)

        answers = {key: _plain(said) for key, said in (params.input_responses or {}).items()}
        call = ToolRequest(caller, params.arguments or {}, _client(context), report, answers)
        try:
            with self._limits.under_way(caller):
                made = await tool.call(call)
                if not isinstance(made, TaskStart):
                    return made
                if has_extension(capabilities):
                    return (await self._begun(caller, made)).created()
                return await self._waited(call, made)
        except TooMany as error:
            raise MCPError(_REFUSED, str(error)) from None
        except UnknownTask as error:
            return failed(str(error))
        except BackstayError as error:
            return failed(_told(error))

    async def _begun(self, caller: str, begun: TaskStart) -> ServedTask:
        try:
            return await self._tasks.look(caller, begun.task)
        except Transient:
            # The client must know the task by its name, even if its state cannot be read now.
            return ServedTask.new(begun.task)

    async def _waited(self, call: ToolRequest, begun: TaskStart) -> types.CallToolResult:
        """Return what a task came to, or else what it is told by that goes on without this call."""
        await call.report(0.001, begun.task)
        try:
            task = await settled(lambda: self._tasks.look(call.caller, begun.task), call.report, begun.wait_s)
            if task.result is not None:
                return task.result
            return failed(task.error) if task.status == "failed" else await self._tasks.handle(call.caller, task)
        except Transient as error:
            # It goes on, and whoever does not know it by its name would begin it once more.
            told = {"run": begun.task, "status": "working", "message": _told(error)}
            return answered(told | {"next": "call follow_run with this run"})

    def _about(self, action: Literal["get", "update", "cancel"]) -> Callable[[Context, AboutTask], Awaitable[Any]]:
        """Return what answers the requests of one kind about tasks."""

        async def answer(context: Context, params: AboutTask) -> dict[str, Any]:
            require_extension(context.session.client_capabilities)
            _require_routed(context, params.task_id)
            caller = self._caller(context)
            try:
                with self._limits.under_way(caller):
                    return await self._answered(action, context, caller, params)
            except UnknownTask:
                raise MCPError(types.INVALID_PARAMS, "Task not found") from None
            except TooMany as error:
                raise MCPError(_REFUSED, str(error)) from None
            except BackstayError as error:
                passing = isinstance(error, Transient)
                raise MCPError(types.INTERNAL_ERROR if passing else types.INVALID_PARAMS, _told(error)) from None

        return answer

    async def _answered(self, action: str, context: Context, caller: str, params: AboutTask) -> dict[str, Any]:
        if len(params.task_id) > MOST_ID:
            raise UnknownTask
        if action == "get":
            found: ServedTask = await self._tasks.look(caller, params.task_id)
            return found.detailed(elicits=elicits(context.session.client_capabilities))
        if action == "update":
            await self._tasks.answer(caller, params.task_id, params.input_responses or {})
        else:
            await self._tasks.cancel(caller, params.task_id)
        return {"resultType": "complete"}


def _told(error: BackstayError) -> str:
    if isinstance(error, Transient):
        log.warning("mcp.failed", error=type(error).__name__)
    return message_line(str(error), _LONGEST)


def _client(context: Context) -> str:
    params = context.session.client_params
    return "" if params is None else one_line(params.client_info.name, 80)


def _plain(said: Any) -> Any:
    return said.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(said, "model_dump") else said


def _require_routed(context: Context, task: str) -> None:
    """Raise MCPError where the header by which a request is routed names another task than its body."""
    headers = getattr(context.request, "headers", None)
    named = [] if headers is None else headers.getlist("mcp-name")
    if named and named != [task]:
        raise MCPError(HEADER_MISMATCH, "mcp-name header does not match the request body's 'taskId' parameter")
