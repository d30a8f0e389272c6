"""Watch limits that apply to a whole jail: the memory of all its processes, and what they write."""

import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from sandbox.workspaces.command import WROTE

_MB = 1 << 20
_TAKEN = frozenset({"RssAnon:", "VmSwap:", "VmPTE:"})
_BUFFER = 212_992
"""What one socket takes before its writer must wait; jails cannot raise it."""
_STREAM = 10 << 20
"""The same of a connection to the proxy, which the kernel lets grow."""
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
        self._held = DiskUsage() if root is None else held_by(root)
        self._free = None if root is None else _free(root)
        self._looked = 0.0
        self.peak = 0
        """The most bytes of memory that its processes were seen to take together."""

    def __call__(self, pid: int) -> str | None:
        """Return why the jail of this nsjail process must end, or None."""
        living = list(descendants(pid))
        taken = sum(map(_memory, living))
        self.peak = max(self.peak, taken)
        if taken + max(map(_buffers, living), default=0) > self._memory:
            return f"its processes took more than {self._memory // _MB} MB of memory"
        return self._overfull(living) if self._root is not None else None

    def _overfull(self, living: Sequence[int]) -> str | None:
        """Measure the folder, but only if its file system has lost enough space for the jail to be the cause."""
        assert self._root is not None  # noqa: S101 - asked before
        assert self._free is not None  # noqa: S101 - made together
        free = _free(self._root)
        lost = self._free[0] - free[0] > self._written or self._free[1] - free[1] > _MOST_FILES
        if not lost or time.monotonic() - self._looked < _LOOK_AGAIN_S:
            return None
        held, nameless = held_by(self._root), nameless_of(living, self._root.stat().st_dev)
        self._looked = time.monotonic()
        if held.size + nameless.size - self._held.size > self._written:
            return f"{WROTE} {self._written // _MB} MB"
        if held.files - self._held.files > _MOST_FILES:
            return f"{WROTE} {_MOST_FILES} files"
        if held.hidden > self._held.hidden or nameless.hidden:
            return f"{WROTE} {self._written // _MB} MB, as far as can be seen: it closed folders, or hid files"
        return None


@dataclass
class DiskUsage:
    """Count what takes space on disk."""

    size: int = 0
    files: int = 0
    hidden: int = 0
    """How many folders or files could not be looked at."""


def held_by(root: Path) -> DiskUsage:
    """Return how many bytes a folder takes on disk, and how many entries it has."""
    held = DiskUsage()
    waiting = [str(root)]
    while waiting and held.files < 10 * _MOST_FILES:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        facts = entry.stat(follow_symlinks=False)
                        held.size += facts.st_blocks * _BLOCK
                        held.files += 1
                        if stat.S_ISDIR(facts.st_mode):
                            waiting.append(entry.path)
        except PermissionError:
            held.hidden += 1
        except OSError:
            continue
    return held


def nameless_of(living: Iterable[int], device: int) -> DiskUsage:
    """Return what processes hold of files of a file system that have no name any more, open or mapped."""
    sizes: dict[int, int] = {}
    hidden = 0
    for pid in living:
        # Each thread may have open files of its own, and the first one may have ended before the others.
        places = list(_of_threads(pid, "fd"))
        for place in [*places, Path(f"/proc/{pid}/map_files")] if _maps_nameless(pid) else places:
            try:
                with os.scandir(place) as links:
                    for link in links:
                        with suppress(FileNotFoundError):
                            facts = os.stat(link.path)  # noqa: PTH116 - of what is open, whatever it is called
                            if facts.st_nlink == 0 and facts.st_dev == device:
                                sizes[facts.st_ino] = facts.st_blocks * _BLOCK
            except PermissionError:
                hidden += not _has_ended(place.parent)
            except OSError:
                continue
    return DiskUsage(size=sum(sizes.values()), files=len(sizes), hidden=hidden)


def _has_ended(place: Path) -> bool:
    """Return whether a thread, or every thread of a process, has ended: their memory and files are shown to root only.

    A process that has ended has no memory any more, and closes its files; a process that hides what it holds lives on.
    """
    told = [place / "status"] if place.parent.name == "task" else _of_threads(int(place.name), "status")
    return not any(map(_has_memory, told))


def _has_memory(status: Path) -> bool:
    with suppress(OSError):
        return "\nVmSize:" in status.read_text(encoding="utf-8", errors="replace")
    return False


def _maps_nameless(pid: int) -> bool:
    """Return whether a process maps a file that has no name any more, or does not show what it maps."""
    try:
        return " (deleted)\n" in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace")
    except PermissionError:
        return True
    except OSError:
        return False


def descendants(pid: int) -> Iterator[int]:
    """Yield all descendants of a process; some may have ended by now."""
    waiting = [pid]
    while waiting:
        for number in _children(waiting.pop()):
            yield number
            waiting.append(number)


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for place in _of_threads(pid, "children"):
        with suppress(OSError, ValueError):
            found += [int(number) for number in place.read_text(encoding="ascii").split()]
    return found


def _of_threads(pid: int, name: str) -> Iterator[Path]:
    """Yield a file of each thread of a process, which may end at any moment, also while its threads are listed."""
    with suppress(OSError):
        yield from Path(f"/proc/{pid}/task").glob(f"*/{name}")


def _memory(pid: int) -> int:
    """Return the memory of a process that is not a file's, whether it is in use or swapped out, and of its tables."""
    # When the first thread of a process has ended, only the others tell.
    for place in chain([Path(f"/proc/{pid}/status")], _of_threads(pid, "status")):
        with suppress(OSError):
            facts = place.read_text(encoding="utf-8", errors="replace")
            if "\nRssAnon:" in facts:
                lines = (line.split() for line in facts.splitlines())
                return sum(int(words[1]) << 10 for words in lines if words and words[0] in _TAKEN)
    return 0


def _buffers(pid: int) -> int:
    """Return how much the sockets in a process's jail can hold, wherever they are: pairs, and connections.

    A process that starts a jail is still among the sockets of the whole machine, which are not the jail's.
    """
    with suppress(OSError):
        if os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net"):  # noqa: PTH121 - of what both are in
            return 0
    with suppress(OSError, ValueError):
        rows = [line.split() for line in Path(f"/proc/{pid}/net/protocols").read_text(encoding="ascii").splitlines()]
        pairs = sum(int(row[2]) for row in rows if row[0].startswith("UNIX"))
        return pairs * _BUFFER + sum(int(row[2]) for row in rows if row[0] == "TCP") * _STREAM
    return 0


def _free(root: Path) -> tuple[int, int]:
    facts = os.statvfs(root)
    return facts.f_bfree * facts.f_frsize, facts.f_ffree
