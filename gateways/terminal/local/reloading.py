"""Tell when a file of the operator has changed, and whether what it says may be obeyed.

A worker reads its files when it starts. One that changes leads to another worker, which takes over once it is ready;
the old one ends its work first. So a file that cannot be used changes nothing.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backstay.errors import BackstayError
from backstay.settings import Settings
from backstay.shown import message_line

LOOK_S = 1.0
"""How often the files are looked at; one that is being written is obeyed when it has not changed for so long."""
Stamp = tuple[int, int, int]
"""Time of the last change in nanoseconds, bytes, and inode."""


class Watch:
    """Know the files of the operator as they were when a worker last read them."""

    def __init__(self, files: Callable[[], Sequence[Path]], fault: Callable[[], str]) -> None:
        """`files` returns what to look at; `fault` says why they may not be obeyed, and is empty otherwise."""
        self._files = files
        self._fault = fault
        self._known: Mapping[Path, Stamp] = {}
        self._known = self._stamps()

    async def changed(self) -> tuple[list[Path], str]:
        """Wait for a change; return which files changed, and why they may not be obeyed, if they may not.

        They count as known from then on, also those that may not be obeyed.
        """
        while True:
            await asyncio.sleep(LOOK_S)
            before = await asyncio.to_thread(self._stamps)
            if before == self._known:
                continue
            await asyncio.sleep(LOOK_S)
            if (now := await asyncio.to_thread(self._stamps)) != before:
                continue
            both = sorted(now.keys() | self._known.keys())
            changed = [path for path in both if now.get(path) != self._known.get(path)]
            self._known = now
            return changed, await asyncio.to_thread(self._fault)

    def _stamps(self) -> Mapping[Path, Stamp]:
        """Return the stamps of all files that are there."""
        found: dict[Path, Stamp] = {}
        try:
            files = self._files()
        except OSError:
            # A folder that cannot be listed just now is looked at again.
            return self._known
        for path in files:
            if (seen := _stamp(path)) is not None:
                found[path] = seen
        return found


class _WorkerFiles:
    """Name the files of a worker at every look; the toolbox's files are read again only when they have changed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: Stamp | None = None
        self._modules: list[str] = []

    def __call__(self) -> list[Path]:
        from opening import operator_files, tool_modules

        seen = _stamp(self._settings.toolbox)
        if seen != self._read:
            self._read = seen
            with suppress(Exception):  # what is wrong with the file, `fault_of` says
                self._modules = tool_modules(self._settings)
        return operator_files(self._settings, self._modules)


def _stamp(path: Path) -> Stamp | None:
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino


def watch_of(settings: Settings) -> Watch:
    """Return the watch over all files that a worker of these settings reads."""
    return Watch(_WorkerFiles(settings), lambda: fault_of(settings))


def policy_watch(settings: Settings) -> Watch:
    """Return the watch over the one file that the page reads."""
    return Watch(lambda: [settings.policy], lambda: fault_of(settings))


def fault_of(settings: Settings) -> str:
    """Return why the files of the operator may not be obeyed, in one line; empty when they may.

    All of them are looked at, not only those that changed: another worker reads all of them.
    """
    from opening import require_files

    try:
        require_files(settings)
    except BackstayError as error:
        return message_line(str(error), 500)
    except Exception as error:  # whatever it is, the worker that runs goes on with what it read before
        return message_line(f"they cannot be read: {type(error).__name__}: {error}", 500)
    return ""
