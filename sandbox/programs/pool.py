"""Jails that are ready before anyone needs one."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from sandbox.programs.jail import Jail

_LONGEST_PAUSE_S = 30.0
# Starting a process holds the event loop up for a moment, which the program that has just been given a jail would feel.
_AFTER_S = 0.01


class JailPool:
    """Keep some jails ready; each is taken once, and another is started in its place."""

    def __init__(
        self, start: Callable[[], Awaitable[Jail]], *, size: int, oldest_s: float, end: Callable[[Jail], None]
    ) -> None:
        """Keep so many that are not older than this; `start` makes one, `end` gets rid of one."""
        self._start = start
        self._size = size
        self._oldest_s = oldest_s
        self._end = end
        self._ready: deque[Jail] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()

    def __len__(self) -> int:
        return sum(self._is_fit(jail) for jail in self._ready)

    def open(self) -> None:
        """Begin to fill up in the background."""
        if self._size > 0:
            self._filling = asyncio.create_task(self._fill())

    async def take(self) -> Jail:
        """Return a jail that is ready, or start one.

        Raises SandboxLost when none can be started.
        """
        while self._ready:
            jail = self._ready.popleft()
            self._wanted.set()
            if self._is_fit(jail):
                return jail
            self._end(jail)
        return await self._start()

    async def close(self) -> None:
        """Stop filling up and get rid of those that are ready."""
        if self._filling is not None:
            self._filling.cancel()
            with suppress(asyncio.CancelledError):
                await self._filling
        while self._ready:
            self._end(self._ready.popleft())

    def _is_fit(self, jail: Jail) -> bool:
        return jail.alive and jail.age_s < self._oldest_s

    async def _fill(self) -> None:
        pause_s = 0.0
        while True:
            self._wanted.clear()
            self._sort_out()
            try:
                while len(self._ready) < self._size:
                    jail = await self._start()
                    # One that dies while it waits is replaced at once.
                    jail.when_gone(self._wanted.set)
                    self._ready.append(jail)
                pause_s = 0.0
            except Exception:
                # `take` raises the reason to its caller; here it is only tried again.
                pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s or 0.5)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s or self._next_aging_s()):
                    await self._wanted.wait()
                    await asyncio.sleep(_AFTER_S)

    def _sort_out(self) -> None:
        fit = [jail for jail in self._ready if self._is_fit(jail)]
        for jail in self._ready:
            if jail not in fit:
                self._end(jail)
        self._ready = deque(fit)

    def _next_aging_s(self) -> float:
        ages = [jail.age_s for jail in self._ready]
        return max(1.0, self._oldest_s - max(ages)) if ages else 1.0
