"""The tools that the conformance suite calls to try tasks, in a server of the same code that serves the engine.

Prints the address. What the engine adds is runs; here a task is an entry of a dictionary.
"""

import asyncio
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp import types
from starlette.middleware import Middleware
from starlette.requests import Request

from gateways.engine_mcp.limits import CallerLimits
from gateways.engine_mcp.server import ServedTool, TaskServer, ToolRequest
from gateways.engine_mcp.serving import caller_of, http_app
from gateways.engine_mcp.tasks import ServedTask, TaskStart, UnknownTask
from gateways.mcp_serving import answered
from gateways.web.guard import Guard

ASKED: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "Really?",
        "requestedSchema": {"type": "object", "properties": {"confirm": {"type": "boolean"}}},
    },
}
FIELDS = {"seconds": "number", "label": "string", "name": "string", "filename": "string"}


def text(words: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)], is_error=is_error)


@dataclass
class Work:
    """Hold one task."""

    tool: str
    lasts_s: float
    words: str
    asks: frozenset[str] = frozenset()
    began: float = field(default_factory=time.time)
    cancelled: bool = False
    answers: set[str] = field(default_factory=set)

    def served(self, name: str) -> ServedTask:
        task = ServedTask(name, "working", self.began, time.time(), message=self.words)
        left = dict.fromkeys(sorted(self.asks - self.answers), ASKED)
        if self.cancelled:
            return task._replace(status="cancelled")
        if left:
            return task._replace(status="input_required", requests=left)
        if time.time() - self.began < self.lasts_s:
            return task
        if self.tool == "protocol_error_job":
            return task._replace(status="failed", error="the server broke")
        return task._replace(status="completed", result=text(self.words, is_error=self.tool == "failing_job"))


class Works:
    """Keep tasks in memory, of one caller."""

    def __init__(self) -> None:
        self._works: dict[str, Work] = {}

    def begin(self, tool: str, lasts_s: float, words: str, *asks: str) -> TaskStart:
        name = str(uuid.uuid4())
        self._works[name] = Work(tool, lasts_s, words, frozenset(asks))
        return TaskStart(name, wait_s=30)

    async def look(self, caller: str, task: str) -> ServedTask:
        return self._found(task).served(task)

    async def answer(self, caller: str, task: str, responses: Mapping[str, Any]) -> None:
        work = self._found(task)
        work.answers |= work.asks & responses.keys()

    async def cancel(self, caller: str, task: str) -> bool:
        work = self._found(task)
        work.cancelled = work.cancelled or not work.served(task).has_ended
        return work.cancelled

    async def handle(self, caller: str, task: ServedTask) -> types.CallToolResult:
        return answered({"task": task.id, "status": task.status})

    def _found(self, task: str) -> Work:
        if task not in self._works:
            raise UnknownTask
        return self._works[task]


class Fixtures:
    """Do what the tools of the suite are to do."""

    def __init__(self, works: Works) -> None:
        self._works = works

    async def greet(self, call: ToolRequest) -> types.CallToolResult:
        return text(f"Hello, {call.arguments.get('name')}!")

    async def slow_compute(self, call: ToolRequest) -> TaskStart:
        return self._works.begin("slow_compute", float(call.arguments.get("seconds", 0)), "computed")

    async def failing_job(self, call: ToolRequest) -> TaskStart:
        return self._works.begin("failing_job", 1, "it did not work")

    async def protocol_error_job(self, call: ToolRequest) -> TaskStart:
        return self._works.begin("protocol_error_job", 0.2, "")

    async def confirm_delete(self, call: ToolRequest) -> TaskStart:
        return self._works.begin("confirm_delete", 0, "deleted", "sure")

    async def multi_input(self, call: ToolRequest) -> TaskStart:
        return self._works.begin("multi_input", 0, "done", "first", "second")

    async def test_tool_with_task(self, call: ToolRequest) -> types.InputRequiredResult | TaskStart:
        named = (call.answers.get("user_name") or {}).get("content") or {}
        if "name" not in named:
            return types.InputRequiredResult.model_validate({"inputRequests": {"user_name": ASKED}}, by_name=False)
        return self._works.begin("test_tool_with_task", 0.1, f"Hello, {named['name']}!")


def tools(works: Works) -> list[ServedTool]:
    fixtures = Fixtures(works)
    schema = {"type": "object", "properties": {name: {"type": kind} for name, kind in FIELDS.items()}}
    named = ("greet", "slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input")
    return [
        ServedTool(
            types.Tool(name=name, description=f"The suite calls {name}.", input_schema=schema),
            getattr(fixtures, name),
            name == "failing_job",
        )
        for name in (*named, "test_tool_with_task")
    ]


async def anybody(request: Request) -> str:
    return "anybody"


async def main() -> None:
    works = Works()
    served = TaskServer(
        tools(works), works, name="fixtures", instructions="", caller=caller_of, limits=CallerLimits(most_starts=1000)
    )
    app = http_app(served.server(), "/mcp", anybody, Middleware(Guard, url=None))
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    print(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp", flush=True)
    await serving


if __name__ == "__main__":
    asyncio.run(main())
