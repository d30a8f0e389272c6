"""The same plugins as MCP tools over stdio: typed schemas, progress for each step of a job, and cancellation."""

import asyncio
import contextlib
import json
import sys
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from mcp import MCPError, types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from backstay.version import version
from gateways.mcp_serving import failed, serve_stdio
from gateways.plugin_jobs.following import JobFollower
from gateways.plugin_jobs.help_cache import HelpCache
from gateways.plugin_jobs.jobs import Jobs, PluginJob, digest_of
from gateways.plugin_jobs.log import JobLog
from gateways.plugin_jobs.places import DaemonPaths, PlaceInvalid
from gateways.plugin_jobs.protocol import LOCAL, REJECTED, RequestInvalid, internal, timed_arguments, timed_schema
from gateways.plugin_jobs.running import LocalPlugins, redactor

_ENDED = ("success", "error", "timeout")
_LONGEST_NAME = 64
_CLOSING_S = 5.0
_LOOK_S = 0.02
_STEPS = {"queued": 0.0, "started": 1.0}
_INSTRUCTIONS = "Command-line tools of this machine. A call may wait until a person approves it."
Context = ServerRequestContext[Any]


class Router:
    """Bring what is told of each job to the call that waits for it."""

    def __init__(self) -> None:
        """Know no call yet."""
        self.calls: dict[str | int, asyncio.Queue[tuple[str, Any]]] = {}

    def send(self, id: str | int | None, status: str, payload: Any) -> None:  # noqa: A002 - the protocol's word
        """Hand one answer on."""
        if id in self.calls:
            self.calls[id].put_nowait((status, payload))


class OpenCall:
    """Hold what became of one call of the client so far."""

    __slots__ = ("is_cancelled", "job")

    def __init__(self) -> None:
        """Begin without a job."""
        self.job: PluginJob | None = None
        self.is_cancelled = False


class JobBackend(Protocol):
    """Carry out jobs, and let go of one."""

    async def begin(self, job: PluginJob) -> None:
        """Take a job."""
        ...

    async def cancel(self, job: PluginJob) -> None:
        """Let go of a job whose client does not want it any more."""
        ...


class PluginServer:
    """Offer every action of every plugin as a tool."""

    def __init__(self, cache: HelpCache, jobs: Jobs, router: Router, runs: JobBackend) -> None:
        """Have jobs carried out by `runs`, and hear of them from the router."""
        self._cache = cache
        self._jobs = jobs
        self._router = router
        self._runs = runs
        self._calls: dict[str, OpenCall] = {}
        self._cancelling: set[asyncio.Task[None]] = set()

    def server(self) -> Server[Any]:
        """Return the MCP server."""
        server = Server[Any](
            "backstay-plugins",
            version=version(),
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )
        server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, self._cancelled)
        return server

    async def finish(self) -> None:
        """Let go of what the client has cancelled, and wait until the engine has the jobs of a client that has left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await asyncio.gather(*self._cancelling, return_exceptions=True)
                while self._jobs.unanswered():  # noqa: ASYNC110 - they are known to any thread
                    await asyncio.sleep(_LOOK_S)

    async def _list(self, _context: Context, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        try:
            await asyncio.to_thread(self._cache.refresh)
        except PlaceInvalid as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from None
        tools = [
            types.Tool(
                name=name,
                description=self._cache.plain["plugins"][plugin][action]["description"] or f"{plugin} {action}",
                input_schema=timed_schema(self._cache.schema(plugin, action) or {"type": "object"}),
            )
            for name, (plugin, action) in self._named().items()
        ]
        return types.ListToolsResult(tools=tools)

    async def _call(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        key, call, is_cut = str(context.request_id), OpenCall(), False
        self._calls[key] = call
        try:
            return await self._carried_out(context, params, call)
        except asyncio.CancelledError:
            # The client cancels this call, which `_cancelled` hears of; or it has left, and its job goes on.
            is_cut = True
            raise
        finally:
            if not is_cut:
                self._calls.pop(key, None)

    async def _cancelled(self, _context: Context, params: types.CancelledNotificationParams) -> None:
        call = self._calls.pop(str(params.request_id), None)
        if call is None:
            return
        call.is_cancelled = True
        if call.job is not None:
            task = asyncio.ensure_future(self._runs.cancel(call.job))
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)

    async def _carried_out(
        self, context: Context, params: types.CallToolRequestParams, call: OpenCall
    ) -> types.CallToolResult:
        try:
            await asyncio.to_thread(self._cache.refresh)
            found = self._named().get(params.name)
            if found is None:
                return failed(f"there is no tool {params.name!r}")
            job = self._job_of(*found, params.arguments or {})
        except (PlaceInvalid, RequestInvalid) as error:
            return failed(str(error))
        if call.is_cancelled:
            return failed(REJECTED)
        call.job = job
        told = self._router.calls[job.id] = asyncio.Queue()
        try:
            self._jobs.admit(job)
            await self._runs.begin(job)
            return await self._followed(context, told)
        finally:
            del self._router.calls[job.id]

    def _job_of(self, plugin: str, action: str, given: dict[str, Any]) -> PluginJob:
        """Return what a call asks to run. Raises RequestInvalid."""
        arguments, timeout_s = timed_arguments(given, self._cache.schema(plugin, action) or {})
        return PluginJob(
            id=str(uuid.uuid4()),
            plugin=plugin,
            action=action,
            arguments=arguments,
            timeout_s=timeout_s,
            digest=digest_of({"plugin": plugin, "action": action, "args": given}),
        )

    async def _followed(self, context: Context, told: "asyncio.Queue[tuple[str, Any]]") -> types.CallToolResult:
        """Report how far a job is until it ends."""
        steps = 0.0
        while True:
            status, payload = await told.get()
            if status in _ENDED:
                return _answer(status, payload)
            steps = max(steps + 0.001, _STEPS[status])  # progress only ever grows
            await context.session.report_progress(steps, message=_words(status, payload))

    def _named(self) -> dict[str, tuple[str, str]]:
        """Return the actions by the names of their tools, which hold only what every client takes."""
        named: dict[str, tuple[str, str]] = {}
        for plugin, actions in self._cache.plain["plugins"].items():
            for action in actions:
                plain = "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in f"{plugin}__{action}")
                name, number = plain[:_LONGEST_NAME], 1
                while name in named:
                    number += 1
                    name = f"{plain[: _LONGEST_NAME - 4]}_{number}"
                named[name] = (plugin, action)
        return named


class DurableRuns:
    """Carry out jobs as runs of the engine."""

    def __init__(self, follower: JobFollower) -> None:
        """Use a follower that runs in this loop."""
        self._follower = follower

    async def begin(self, job: PluginJob) -> None:
        """Let a job wait for its turn."""
        self._follower.submit(job)

    async def cancel(self, job: PluginJob) -> None:
        """Take a job out of its lane, or cancel its run."""
        await self._follower.cancel(job)


class LocalRuns:
    """Carry out jobs in this process, one after another."""

    def __init__(self, jobs: Jobs) -> None:
        """Carry out nothing yet."""
        self._jobs = jobs
        self._plugins = LocalPlugins()
        self._turn = asyncio.Lock()
        self._tasks: dict[str | int, asyncio.Task[None]] = {}

    async def begin(self, job: PluginJob) -> None:
        """Let a job wait for its turn."""
        self._jobs.tell(job, "queued", {})
        self._tasks[job.id] = asyncio.ensure_future(self._run(job))
        self._tasks[job.id].add_done_callback(lambda _: self._tasks.pop(job.id, None))

    async def cancel(self, job: PluginJob) -> None:
        """End a job, or let it not begin."""
        if task := self._tasks.get(job.id):
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, job: PluginJob) -> None:
        async with self._turn:
            try:
                ended = await self._plugins.run(job, lambda: self._jobs.tell(job, "started", {}))
            except Exception as error:  # whoever waits for the job must hear of its end
                ended = ("error", {"error": internal(error)})
        self._jobs.tell(job, *ended)


async def serve(place: DaemonPaths, describe: Sequence[str], *, local: bool) -> None:
    """Serve one client until it leaves; the home is there. Raises PlaceInvalid for what it cannot begin with."""
    cache = HelpCache(place, describe)
    await asyncio.to_thread(cache.load)
    router, log = Router(), JobLog(place.home, redactor)
    jobs = Jobs(router, log)
    following: asyncio.Task[None] | None = None
    runs: JobBackend = LocalRuns(jobs)
    if local:
        sys.stderr.write(LOCAL)
    else:
        follower = JobFollower(jobs, cache.is_parallel)
        following = asyncio.ensure_future(follower.run())
        runs = DurableRuns(follower)
    served = PluginServer(cache, jobs, router, runs)
    try:
        await serve_stdio(served.server())
        await served.finish()
    finally:
        cache.end()
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
        log.close()


def _words(status: str, payload: Any) -> str:
    asked = payload.get("request") if isinstance(payload, dict) else None
    return f"waits for a person: {asked['link']}" if asked else status


def _answer(status: str, payload: Any) -> types.CallToolResult:
    if status != "success":
        return failed(str(payload.get("error", status)) if isinstance(payload, dict) else str(payload))
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    structured = payload if isinstance(payload, dict) else None
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], structured_content=structured)
