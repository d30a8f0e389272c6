"""Bound what one caller may have under way, and how often it may begin something."""

import time
from collections import Counter, deque
from collections.abc import Callable, Generator
from contextlib import contextmanager

MOST_AT_ONCE = 16
MOST_STARTS = 30
MOST_STREAMS = 4
_MINUTE_S = 60.0


class TooMany(Exception):
    """A caller asks for more at the same time, or more often, than it may."""


class CallerLimits:
    """Count what callers do, in this process."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        most_at_once: int = MOST_AT_ONCE,
        most_starts: int = MOST_STARTS,
    ) -> None:
        """`most_starts` are those of one minute."""
        self._clock = clock
        self._most_at_once, self._most_starts = most_at_once, most_starts
        self._under_way: Counter[str] = Counter()
        self._listening: Counter[str] = Counter()
        self._starts: dict[str, deque[float]] = {}

    @contextmanager
    def under_way(self, caller: str) -> Generator[None]:
        """Count a request of a caller until the block ends; raises TooMany."""
        refusal = f"{self._most_at_once} requests of this caller are under way; wait until one of them ends"
        with _counted(self._under_way, caller, self._most_at_once, refusal):
            yield

    @contextmanager
    def listening(self, caller: str) -> Generator[None]:
        """Count a stream on which a caller is told of tasks until the block ends; raises TooMany."""
        refusal = f"this caller listens on {MOST_STREAMS} streams already; close one, or name more tasks on it"
        with _counted(self._listening, caller, MOST_STREAMS, refusal):
            yield

    def start(self, caller: str) -> None:
        """Count a start of a caller; raises TooMany."""
        now = self._clock()
        self._starts = {name: made for name, made in self._starts.items() if made and made[-1] > now - _MINUTE_S}
        made = self._starts.setdefault(caller, deque())
        while made and made[0] <= now - _MINUTE_S:
            made.popleft()
        if len(made) >= self._most_starts:
            raise TooMany(f"this caller has started {self._most_starts} runs within a minute; try again later")
        made.append(now)


@contextmanager
def _counted(counts: Counter[str], caller: str, most: int, refusal: str) -> Generator[None]:
    if counts[caller] >= most:
        raise TooMany(refusal)
    counts[caller] += 1
    try:
        yield
    finally:
        counts[caller] -= 1
        if not counts[caller]:
            del counts[caller]
