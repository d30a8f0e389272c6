"""A server of revision 2026-07-28 that answers calls by tasks of the extension, in the process of the test.

It keeps what it was asked, never tells two calls apart, and does what the arguments of a call say: `mark` names it,
`lasts_s` says how long it works, `asks` that it asks a person first, `now` that it answers at once.
"""

import asyncio
import json
import time
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.serving import served

EXTENSION = "io.modelcontextprotocol/tasks"
ASKED = {
    "sure": {
        "method": "elicitation/create",
        "params": {
            "mode": "form",
            "message": "Really?",
            "requestedSchema": {"type": "object", "properties": {"yes": {"type": "boolean"}}, "required": ["yes"]},
        },
    }
}
NAMES = ("mark", "lasts_s", "asks", "now", "ttl_ms", "fails", "stubborn", "slowly")
ANYTHING: dict[str, Any] = {"type": "object", "properties": {name: {} for name in NAMES}}
TOOLS: list[dict[str, Any]] = [
    {"name": "look", "inputSchema": ANYTHING, "annotations": {"readOnlyHint": True}},
    {"name": "find", "inputSchema": ANYTHING, "annotations": {"readOnlyHint": True}},
    {"name": "send", "inputSchema": ANYTHING},
    {"name": "plain", "inputSchema": ANYTHING},
    {"name": "recall", "inputSchema": ANYTHING},
]
DECLARED: dict[str, Any] = {
    "send": {
        "safety": "write_safe",
        "undo": {"tool": "recall", "arguments": {"mark": "{{ arguments.mark }}"}},
        "verify": {
            "tool": "find",
            "arguments": {"mark": "{{ arguments.mark }}"},
            "applied_if": "{{ result.found }}",
        },
    },
    "plain": {"safety": "write_safe"},
    "recall": {"safety": "write_safe"},
}


async def _clock() -> float:
    return time.time()


@dataclass
class Work:
    """Hold one task of the server."""

    id: str
    tool: str
    arguments: dict[str, Any]
    began: float
    offered: bool = True
    cancelled: bool = False
    answers: list[dict[str, Any]] = field(default_factory=list)
    asked: int = 0
    """How often somebody asked how far it is."""

    @property
    def mark(self) -> str:
        return str(self.arguments.get("mark", ""))


@dataclass
class TaskServer:
    """Look into the server, and say how it goes wrong."""

    clock: Callable[[], Awaitable[float]] = _clock
    address: str = ""
    works: list[Work] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """The calls that arrived, also those whose answer was lost."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """The methods about tasks that arrived, with the header by which they are routed."""
    loses: set[str] = field(default_factory=set)
    """Of which tools the next answer is lost, after they have begun."""
    begins: dict[str, Any] = field(default_factory=dict)
    """What stands in place of the fields of a task that begins."""
    says: list[Any] = field(default_factory=list)
    """What the next questions about a task are answered with, whatever its state."""
    poll_ms: float = 20
    answers: dict[str, Any] = field(default_factory=dict)
    """What a tool comes to, by its name."""

    def marks(self, tool: str) -> list[str]:
        return [work.mark for work in self.works if work.tool == tool]

    def toolbox(self, folder: Path, **declared: Any) -> Path:
        """Write a toolbox file over this server, under the name `slow`."""
        tools = {name: {**DECLARED[name], **declared.get(name, {})} for name in DECLARED}
        data = {
            "mcpServers": {"slow": {"url": f"{self.address}/mcp"}},
            "providers": {"slow": {"trusted": True, "tools": tools}},
        }
        path = folder / "slow.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        return path

    async def answer(self, request: Request) -> Response:
        body = json.loads(await request.body() or b"null")
        if not isinstance(body, dict) or "id" not in body:
            return Response(status_code=202)
        identity = {"jsonrpc": "2.0", "id": body["id"]}
        params = body.get("params") or {}
        match body["method"]:
            case "server/discover":
                said: Any = {"supportedVersions": ["2026-07-28"], "serverInfo": {"name": "slow", "version": "1"}}
                said |= {"capabilities": {"tools": {}, "extensions": {EXTENSION: {}}}}
                said |= {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
            case "tools/list":
                said = {"tools": TOOLS, "resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"}
            case "tools/call":
                said = await self._called(params)
                if params["name"] in self.loses:
                    self.loses.discard(params["name"])
                    return Response(b'{"jsonrpc": "2.0", "id"', media_type="application/json")
            case "tasks/get" | "tasks/update" | "tasks/cancel":
                self.asked.append((body["method"], request.headers.get("mcp-name", "")))
                said = await self._about(body["method"], params)
            case _:
                said = {"code": -32601, "message": "no such method"}
        return JSONResponse(identity | ({"error": said} if "code" in said else {"result": said}))

    async def _called(self, params: dict[str, Any]) -> dict[str, Any]:
        tool, arguments = params["name"], params.get("arguments") or {}
        self.calls.append((tool, arguments))
        meta = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        offered = EXTENSION in meta.get("extensions", {})
        work = Work(f"task-{uuid.uuid4()}", tool, arguments, await self.clock(), offered)
        if tool == "find" or arguments.get("now") or (not offered and not self.begins):
            if tool == "find" and arguments.get("slowly") and offered:
                self.works.append(work)
                return await self._state(work) | {"resultType": "task"}
            return self._result(work)
        self.works.append(work)
        return {**await self._state(work), "resultType": "task", **self.begins}

    def _result(self, work: Work) -> dict[str, Any]:
        default = {"mark": work.mark, "done": True, "task": work.id}
        if work.tool == "find":
            default = {"found": work.mark in self.marks("send")}
        return {
            "content": [],
            "structuredContent": self.answers.get(work.tool, default),
            "isError": False,
            "resultType": "complete",
        }

    async def _state(self, work: Work) -> dict[str, Any]:
        passed = await self.clock() - work.began
        lasts = float(work.arguments.get("lasts_s", 0.1))
        state: dict[str, Any] = {
            "taskId": work.id,
            "createdAt": "2026-11-29T10:00:00Z",
            "lastUpdatedAt": "2026-11-29T10:00:00Z",
            "ttlMs": work.arguments.get("ttl_ms"),
            "pollIntervalMs": self.poll_ms,
            "statusMessage": f"{min(100, round(100 * passed / max(lasts, 0.001)))} % of {work.mark}",
        }
        if work.cancelled:
            return state | {"status": "cancelled", "statusMessage": "told to end"}
        if work.arguments.get("asks") and not work.answers:
            return state | {"status": "input_required", "inputRequests": ASKED}
        if "fails" in work.arguments and passed >= lasts:
            return state | {"status": "failed", "error": {"code": -32603, "message": work.arguments["fails"]}}
        if passed >= lasts:
            return state | {"status": "completed", "result": self._result(work)}
        return state | {"status": "working"}

    async def _about(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        work = next((work for work in self.works if work.id == params.get("taskId")), None)
        meta = params.get("_meta", {}).get("io.modelcontextprotocol/clientCapabilities", {})
        if EXTENSION not in meta.get("extensions", {}):
            return {"code": -32021, "message": "Missing required client capability"}
        if method == "tasks/get" and self.says:
            said = self.says.pop(0)
            return {"taskId": params.get("taskId"), **said} if isinstance(said, dict) and "code" not in said else said
        if work is None:
            return {"code": -32602, "message": f"Task {params.get('taskId')} not found"}
        if method == "tasks/update":
            work.answers.append(params.get("inputResponses", {}))
        if method == "tasks/cancel":
            work.cancelled = not work.arguments.get("stubborn")
        if method != "tasks/get":
            return {"resultType": "complete"}
        work.asked += 1
        if (ttl := work.arguments.get("ttl_ms")) is not None and await self.clock() - work.began > ttl / 1000:
            return {"code": -32602, "message": f"Task {work.id} has expired"}
        return await self._state(work) | {"resultType": "complete"}


@asynccontextmanager
async def open_task_server(clock: Callable[[], Awaitable[float]] = _clock) -> AsyncGenerator[TaskServer]:
    """Serve on a loopback port until the block ends."""
    server = TaskServer(clock)
    app = Starlette(routes=[Route("/mcp", server.answer, methods=["POST"])])
    async with served(app) as address:
        server.address = address
        yield server


async def until(condition: Callable[[], bool], within_s: float = 30) -> None:
    """Wait until something has happened."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)
