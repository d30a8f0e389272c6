"""The jails of programs that are paused, kept until they are resumed: bounded in number, memory and time."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from sandbox.programs.jail import Jail


@dataclass(frozen=True, slots=True)
class _Kept:
    jail: Jail
    mb: float
    since: float


class PausedJails:
    """Keep paused jails by key, the last used longest. The others are ended; replay brings their programs back."""

    def __init__(self, *, jails: int, mb: float, idle_s: float, end: Callable[[Jail], None]) -> None:
        """Keep at most so many, of at most so much memory together, each for at most so long."""
        self._jails = jails
        self._mb = mb
        self._idle_s = idle_s
        self._end = end
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
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
        self._kept[key] = _Kept(jail, jail.anonymous_mb(), time.monotonic())
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
