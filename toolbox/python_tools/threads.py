"""Run code of others that blocks, apart from the engine's own threads."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from backstay.errors import ToolUnavailable

MOST_THREADS = 64


class Threads:
    """Run functions that block in threads of their own, which a worker that stops does not wait for."""

    def __init__(self, name: str) -> None:
        """Name the threads."""
        self._name = name
        self._running = 0

    def check(self) -> None:
        """Raise ToolUnavailable when too many calls have not come back."""
        if self._running >= MOST_THREADS:
            raise ToolUnavailable(f"{self._name}: {self._running} calls have not come back; restart the worker")

    async def run(self, function: Callable[..., Any], *values: Any, **given: Any) -> Any:
        """Call the function; if nobody waits any more, it still runs to its end."""
        loop, within = asyncio.get_running_loop(), contextvars.copy_context()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            self._running -= 1
            if done.cancelled():
                return
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

        def work() -> None:
            result, raised = None, None
            try:
                result = within.run(function, *values, **given)
            except BaseException as error:  # an error of any kind belongs to the caller that waits
                passes = isinstance(error, Exception | SystemExit) and not isinstance(error, StopIteration)
                raised = error if passes else RuntimeError(type(error).__name__)
            with suppress(RuntimeError):  # the worker has stopped
                loop.call_soon_threadsafe(settle, result, raised)

        self._running += 1
        threading.Thread(target=work, name=f"tool {self._name}", daemon=True).start()
        return await done
