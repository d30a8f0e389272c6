"""Watch limits that apply to a whole jail: the memory of all its processes, and what they write."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sandbox.workspaces.command import WROTE

_MB = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512
_LOOK_AGAIN_S = 1.0
_MOST_FILES = 200_000


class JailWatch:
    """Check one jail repeatedly, and report when it exceeds a limit."""

    def __init__(self, *, memory_mb: int, root: Path | None = None, written_mb: int = 0) -> None:
        """Limit the memory of all processes, and how much the jail adds below a folder that it may write."""
        self._memory = memory_mb * _MB
        self._root = root
        self._written = written_mb * _MB
        self._held = (0, 0) if root is None else held_by(root)
        self._free = None if root is None else _free(root)
        self._looked = 0.0

    def __call__(self, pid: int) -> str | None:
        """Return why the jail of this nsjail process must end, or None."""
        if sum(_memory(descendant) for descendant in descendants(pid)) > self._memory:
            return f"its processes took more than {self._memory // _MB} MB of memory"
        return self._overfull() if self._root is not None else None

    def _overfull(self) -> str | None:
        """Measure the folder, but only if its file system has lost enough space for the jail to be the cause."""
        assert self._root is not None  # noqa: S101 - asked before
        assert self._free is not None  # noqa: S101 - made together
        free = _free(self._root)
        lost = self._free[0] - free[0] > self._written or self._free[1] - free[1] > _MOST_FILES
        if not lost or time.monotonic() - self._looked < _LOOK_AGAIN_S:
            return None
        size, files = held_by(self._root)
        self._looked = time.monotonic()
        if size - self._held[0] > self._written:
            return f"{WROTE} {self._written // _MB} MB"
        if files - self._held[1] > _MOST_FILES:
            return f"{WROTE} {_MOST_FILES} files"
        return None


def held_by(root: Path) -> tuple[int, int]:
    """Return how many bytes a folder takes on disk, and how many entries it has."""
    size = files = 0
    waiting = [str(root)]
    while waiting and files < 10 * _MOST_FILES:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                facts = entry.stat(follow_symlinks=False)
                size += facts.st_blocks * _BLOCK
                files += 1
                if stat.S_ISDIR(facts.st_mode):
                    waiting.append(entry.path)
    return size, files


def descendants(pid: int) -> Iterator[int]:
    """Yield all descendants of a process; some may have ended by now."""
    waiting = [pid]
    while waiting:
        for number in _children(waiting.pop()):
            yield number
            waiting.append(number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError, ValueError):
        for place in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):
                found += [int(number) for number in place.read_text(encoding="ascii").split()]
    return found


def _memory(pid: int) -> int:
    """Return the memory that a process does not share with others."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except OSError:
        return 0
    return (int(pages[1]) - int(pages[2])) * _PAGE if len(pages) > 2 else 0


def _free(root: Path) -> tuple[int, int]:
    facts = os.statvfs(root)
    return facts.f_bfree * facts.f_frsize, facts.f_ffree
