"""Jails that are kept: ready before anyone needs one, or paused until their program is resumed."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from sandbox.programs.jail import Jail

_LONGEST_PAUSE_S = 30.0
# Starting a process holds the event loop up for a moment, which the program that has just been given a jail would feel.
_AFTER_S = 0.01


class JailPool:
    """Keep some jails ready; each is taken once, and another is started in its place."""

    def __init__(
        self, start: Callable[[], Awaitable[Jail]], *, size: int, oldest_s: float, end: Callable[[Jail], None]
    ) -> None:
        """Keep the given number that are not older than this; `start` makes one, `end` gets rid of one."""
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


@dataclass(frozen=True, slots=True)
class _PoolEntry:
    jail: Jail
    mb: float
    since: float


class PausedJails:
    """Keep paused jails by key, the last used longest. The others are ended; replay brings their programs back."""

    def __init__(self, *, jails: int, mb: float, idle_s: float, end: Callable[[Jail], None]) -> None:
        """Keep at most a number, of at most so much memory together, each for at most so long."""
        self._jails = jails
        self._mb = mb
        self._idle_s = idle_s
        self._end = end
        self._kept: OrderedDict[str, _PoolEntry] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def mb(self) -> float:
        """Return how much memory the kept jails had when they came."""
        return sum(kept.mb for kept in self._kept.values())

    def put(self, key: str, jail: Jail) -> None:
        """Keep a jail; the least recently kept ones make room for it."""
        self._end_keys(key)
        self._kept[key] = _PoolEntry(jail, jail.anonymous_mb(), time.monotonic())
        while self._kept and (len(self._kept) > self._jails or self.mb > self._mb):
            self._end(self._kept.popitem(last=False)[1].jail)
        self._watch()

    def rename(self, old: str, new: str) -> None:
        """Keep what is under one key under another; a jail that is there goes."""
        kept = self._kept.pop(old, None)
        if kept is not None:
            self._end_keys(new)
            self._kept[new] = kept

    def take(self, key: str) -> Jail | None:
        """Return the jail under this key, if it is here and lives; it is then no longer here."""
        kept = self._kept.pop(key, None)
        return kept.jail if kept is not None and kept.jail.alive else None

    def forget(self, prefix: str) -> int:
        """End every jail whose key begins so; return how many there were."""
        return self._end_keys(*[key for key in self._kept if key.startswith(prefix)])

    def discard(self, jail: Jail) -> None:
        """End this jail if it is here; one that is not may be going on."""
        self._end_keys(*[key for key, kept in self._kept.items() if kept.jail is jail])

    def clear(self) -> None:
        """End every jail."""
        self.forget("")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end_keys(self, *keys: str) -> int:
        gone = [self._kept.pop(key) for key in keys if key in self._kept]
        for kept in gone:
            self._end(kept.jail)
        return len(gone)

    def _watch(self) -> None:
        if self._timer is None and self._kept:
            oldest = next(iter(self._kept.values()))
            wait = max(0.0, oldest.since + self._idle_s - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = time.monotonic()
        expired = {key for key, kept in self._kept.items() if now - kept.since >= self._idle_s or not kept.jail.alive}
        self._end_keys(*expired)
        self._watch()
