"""Notice that a folder was deleted, or replaced by another one, while a process uses it.

A process keeps what it has opened: it would go on writing into files that nobody else sees.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

LOOK_S = 1.0
Identity = tuple[int, int]


class WatchedPath:
    """Remember which folder or file a path leads to now."""

    def __init__(self, name: str, path: Path) -> None:
        """Look at it once; `name` is the setting that it belongs to."""
        self.name = name
        self.path = path
        self._was = identity_of(path)

    def fault(self) -> str:
        """Return what has become of it; nothing when it is still the same, or was not there from the beginning."""
        now = identity_of(self.path)
        if self._was is None or now == self._was:
            return ""
        what = "deleted" if now is None else "replaced by another one"
        return f"{self.name}: {self.path} was {what} under a running worker; bring it back, or restart the worker"


def identity_of(path: Path) -> Identity | None:
    """Return what tells a folder or file from any other; None when there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        found = path.stat()
        return found.st_dev, found.st_ino
    return None


async def lost(places: Sequence[WatchedPath], stop: asyncio.Event) -> str:
    """Wait until places are lost and return the fault of the first of them, or nothing once `stop` is set."""
    while not stop.is_set():
        if fault := await _first_fault(places):
            # A folder may have gone with what is in it while only the latter was looked at.
            return await _first_fault(places) or fault
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), LOOK_S)
    return ""


async def _first_fault(places: Sequence[WatchedPath]) -> str:
    for place in places:
        with suppress(OSError):  # a disk that does not answer is not a folder that is gone
            if fault := await asyncio.to_thread(place.fault):
                return fault
    return ""
