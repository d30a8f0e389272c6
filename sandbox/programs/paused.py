"""Where paused programs stay until they go on: few enough, small enough and not for ever."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sandbox.programs.jail import Jail
from sandbox.programs.types import ProgramCall, Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Halted:
    """Say why the program does not go on: it waits for calls, has finished with a result, or has crashed."""

    kind: Literal["waiting", "finished", "crashed"]
    round: Round
    """What has just been exchanged."""
    calls: tuple[ProgramCall, ...] = ()
    """One batch, numbered consecutively; empty unless it waits."""
    result: Any = None
    error: dict[str, str] | None = None
    """`type` and `message`, one line each."""
    output: str = ""
    """What the program has printed so far, as far as it is kept."""
    output_dropped: int = 0
    """How many bytes of what it printed are not kept."""
    fed: int = 0
    """How many rounds had to be replayed to get here."""
    jail: Jail | None = None
    """The paused jail of a program that waits; hand it back with `keep` or `discard`."""


@dataclass(frozen=True, slots=True)
class _Kept:
    jail: Jail
    mb: float
    since: float


class PausedJails:
    """Keep paused jails by key, the last used longest. What leaves is ended; its journal brings it back."""

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
        return sum(one.mb for one in self._kept.values())

    def put(self, key: str, jail: Jail) -> None:
        """Keep a jail; the least recently kept ones make room for it."""
        self._drop(key)
        self._kept[key] = _Kept(jail, jail.anonymous_mb(), time.monotonic())
        while self._kept and (len(self._kept) > self._jails or self.mb > self._mb):
            self._end(self._kept.popitem(last=False)[1].jail)
        self._watch()

    def rename(self, old: str, new: str) -> None:
        """Keep what is under one key under another; a jail that is there goes."""
        kept = self._kept.pop(old, None)
        if kept is not None:
            self._drop(new)
            self._kept[new] = kept

    def take(self, key: str) -> Jail | None:
        """Return the jail under this key, if it is here and lives; it is then no longer here."""
        kept = self._kept.pop(key, None)
        return kept.jail if kept is not None and kept.jail.alive else None

    def forget(self, prefix: str) -> int:
        """End every jail whose key begins so; return how many there were."""
        keys = [key for key in self._kept if key.startswith(prefix)]
        for key in keys:
            self._end(self._kept.pop(key).jail)
        return len(keys)

    def discard(self, jail: Jail) -> None:
        """End this jail if it is here; one that is not may be going on."""
        for key in [key for key, one in self._kept.items() if one.jail is jail]:
            self._drop(key)

    def clear(self) -> None:
        """End every jail."""
        self.forget("")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop(self, key: str) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._end(kept.jail)

    def _watch(self) -> None:
        if self._timer is None and self._kept:
            oldest = next(iter(self._kept.values()))
            wait = max(0.0, oldest.since + self._idle_s - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = time.monotonic()
        late = [key for key, one in self._kept.items() if now - one.since >= self._idle_s or not one.jail.alive]
        for key in late:
            self._end(self._kept.pop(key).jail)
        self._watch()
