"""How many calls of a provider run at the same time, and work in the background that all who need it share."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from backstay.errors import ToolUnavailable

Found = TypeVar("Found")
_NO_LIMIT = 1_000_000


class ConcurrencyLimit:
    """Limit how many calls of a provider run at the same time."""

    def __init__(self, provider: str, most: int | None) -> None:
        """Set no limit when `most` is None."""
        self._provider = provider
        self._most = most
        self._free = asyncio.Semaphore(_NO_LIMIT if most is None else most)

    def one_at_a_time(self) -> None:
        """Run calls one after another from now on, without waiting for those already running."""
        if self._most != 1:
            self._most, self._free = 1, asyncio.Semaphore(1)

    @asynccontextmanager
    async def taken(self, timeout_s: float) -> AsyncGenerator[None]:
        """Hold one turn; raises ToolUnavailable when none comes within the patience."""
        free = self._free
        try:
            await asyncio.wait_for(free.acquire(), timeout_s)
        except TimeoutError:
            raise ToolUnavailable(f"{self._provider} is busy with other calls") from None
        try:
            yield
        finally:
            free.release()


class SharedTask(Generic[Found]):
    """Run one piece of work in the background, once at a time; a call that needs it meanwhile shares it."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, Found]]) -> None:
        """Start nothing yet."""
        self._work = work
        self._task: asyncio.Task[Found] | None = None

    def start(self) -> "asyncio.Task[Found]":
        """Return the running task, or start a new one; it runs even if nothing awaits it."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return self._task

    @property
    def running(self) -> bool:
        """Return whether the work is under way."""
        return self._task is not None and not self._task.done()

    async def cancel(self) -> None:
        """End the task that runs, if any."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
