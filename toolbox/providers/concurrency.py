"""How many calls of one provider may run at the same time."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from backstay.errors import ToolUnavailable


class ConcurrencyLimit:
    """Let calls through, as many at once as the provider takes."""

    def __init__(self, provider: str, most: int | None) -> None:
        """Set no limit when `most` is None."""
        self._provider = provider
        self._most = most
        self._free = None if most is None else asyncio.Semaphore(most)

    def one_at_a_time(self) -> None:
        """Let calls run one after another from now on; those under way are not waited for."""
        if self._most != 1:
            self._most, self._free = 1, asyncio.Semaphore(1)

    @asynccontextmanager
    async def taken(self, patience_s: float) -> AsyncGenerator[None]:
        """Hold one turn; raises ToolUnavailable when none comes within the patience."""
        free = self._free
        if free is None:
            yield
            return
        try:
            await asyncio.wait_for(free.acquire(), patience_s)
        except TimeoutError:
            raise ToolUnavailable(f"{self._provider} is busy with other calls") from None
        try:
            yield
        finally:
            free.release()
