"""Measure wall time that counts: not while only a person is awaited."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime


class Stopwatch:
    """Add up active seconds on the workflow's clock."""

    def __init__(self, now: Callable[[], datetime], seconds: float = 0) -> None:
        """Start counting."""
        self._now = now
        self._seconds = seconds
        self._since = now()
        self._busy = 0
        self._waiting = 0

    @property
    def seconds(self) -> float:
        """Return the active seconds so far."""
        self._tick()
        return self._seconds

    def add(self, seconds: float) -> None:
        """Count what an execution before this one has counted."""
        self._seconds += seconds

    @contextmanager
    def busy(self) -> Generator[None]:
        """Count time in which an activity is under way."""
        self._tick()
        self._busy += 1
        try:
            yield
        finally:
            self._tick_unless_evicted()
            self._busy -= 1

    @contextmanager
    def waiting(self) -> Generator[None]:
        """Do not count time in which a person is awaited and nothing else is under way."""
        self._tick()
        self._waiting += 1
        try:
            yield
        finally:
            self._tick_unless_evicted()
            self._waiting -= 1

    def _tick_unless_evicted(self) -> None:
        # A run that its worker has evicted has no clock any more when its coroutines are collected.
        if not isinstance(sys.exc_info()[1], GeneratorExit):
            self._tick()

    def _tick(self) -> None:
        now = self._now()
        if self._busy or not self._waiting:
            self._seconds += (now - self._since).total_seconds()
        self._since = now
