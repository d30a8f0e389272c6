"""The extension `io.modelcontextprotocol/tasks` of revision 2026-07-28, as a server speaks it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Protocol

from mcp import types
from mcp.shared.exceptions import MCPError

from backstay.errors import Transient

EXTENSION = "io.modelcontextprotocol/tasks"
MISSING_CAPABILITY, HEADER_MISMATCH = -32021, -32020
MOST_ID = 200
"""Characters of the id of a task."""
POLL_MS = 2000
"""How often a client is told to ask how far a task is."""
_FIRST_LOOK_S, _LOOK_S = 0.2, 2.0
"""How long a call that waits for a task looks away from it, at first and later."""
Report = Callable[[float, str], Awaitable[None]]
"""Tells a client how far its call is: a number that grows, and words."""


class ServedTask(NamedTuple):
    """Hold what a client is told of one task."""

    id: str
    status: Literal["working", "input_required", "completed", "cancelled", "failed"]
    created_at: float
    updated_at: float
    """Unix seconds."""
    message: str = ""
    requests: Mapping[str, dict[str, Any]] = {}
    """What it asks its client, by the names under which the answers are sent."""
    result: types.CallToolResult | None = None
    """What it came to, when it is completed."""
    error: str = ""
    """Why it failed."""
    progress: float = 0
    """A number that grows while it works."""

    @property
    def has_ended(self) -> bool:
        """Return whether nothing of it changes any more."""
        return self.status in {"completed", "cancelled", "failed"}

    @classmethod
    def new(cls, name: str) -> "ServedTask":
        """Return a task that has begun just now."""
        now = time.time()
        return cls(name, "working", now, now)

    def created(self) -> dict[str, Any]:
        """Return what a call is answered with that has begun it."""
        return {"resultType": "task", **self._task(), "status": "working"}

    def detailed(self, *, elicits: bool) -> dict[str, Any]:
        """Return what a client is told that asks about it; one that cannot elicit is asked nothing."""
        told: dict[str, Any] = {"resultType": "complete", **self._task()}
        match self.status:
            case "completed" if self.result is not None:
                result = self.result.model_dump(mode="json", by_alias=True, exclude_none=True)
                told["result"] = {"resultType": "complete", **result}
            case "failed":
                told["error"] = {"code": types.INTERNAL_ERROR, "message": self.error}
            case "input_required" if elicits:
                told["inputRequests"] = dict(self.requests)
            case "input_required":
                told["status"] = "working"
            case _:
                pass
        return told

    def _task(self) -> dict[str, Any]:
        times = {"createdAt": _moment(self.created_at), "lastUpdatedAt": _moment(self.updated_at)}
        said = {"statusMessage": self.message} if self.message else {}
        return {"taskId": self.id, "status": self.status, **times, "ttlMs": None, "pollIntervalMs": POLL_MS, **said}


class TaskStart(NamedTuple):
    """Say that a call has begun a task, and how long a client without the extension waits for its end."""

    task: str
    wait_s: float


class UnknownTask(Exception):
    """There is no such task, or it is not the caller's."""


class Tasks(Protocol):
    """Know the tasks of callers; each caller has only those that it began."""

    async def look(self, caller: str, task: str) -> ServedTask:
        """Return how far a task is; raises UnknownTask."""
        ...

    async def answer(self, caller: str, task: str, responses: Mapping[str, Any]) -> None:
        """Take answers to what a task asks, and ignore those to anything else; raises UnknownTask or BackstayError."""
        ...

    async def cancel(self, caller: str, task: str) -> bool:
        """Have a task end, and return whether it had not; raises UnknownTask or BackstayError."""
        ...

    async def handle(self, caller: str, task: ServedTask) -> types.CallToolResult:
        """Return what a client without the extension is told of a task that goes on, or was cancelled."""
        ...


class AboutTask(types.RequestParams):
    """Name the task that a request is about."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def require_extension(capabilities: types.ClientCapabilities | None) -> None:
    """Raise MCPError unless a client says that it knows the extension."""
    if not has_extension(capabilities):
        needed = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        raise MCPError(MISSING_CAPABILITY, f"Missing required client capability: {EXTENSION}", needed)


def has_extension(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client says that it knows the extension."""
    return capabilities is not None and EXTENSION in (capabilities.extensions or {})


def elicits(capabilities: types.ClientCapabilities | None) -> bool:
    """Return whether a client can ask its person."""
    return capabilities is not None and capabilities.elicitation is not None


async def settled(look: Callable[[], Awaitable[ServedTask]], report: Report, wait_s: float) -> ServedTask:
    """Wait until a task ends or asks something, at most so long; return how far it is then.

    Raises Transient where nobody can say so at the end of that time.
    """
    ends, told, pause = asyncio.get_running_loop().time() + wait_s, 0.0, _FIRST_LOOK_S
    while True:
        left = ends - asyncio.get_running_loop().time()
        task = await _looked(look, is_last=left <= 0)
        if task is not None and task.progress > told:
            told = task.progress
            await report(told, task.message)
        if task is not None and (task.has_ended or task.status == "input_required" or left <= 0):
            return task
        await asyncio.sleep(min(pause, max(left, 0)))
        pause = min(pause * 1.5, _LOOK_S)


async def _looked(look: Callable[[], Awaitable[ServedTask]], *, is_last: bool) -> ServedTask | None:
    try:
        return await look()
    except Transient:
        # The task goes on, whoever cannot be asked about it just now.
        if is_last:
            raise
        return None


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
