"""Which processes stand under this one, as the kernel says it."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Let processes whose parents die become children of this one, so that none can hide."""
    assert ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def descendants(root: int) -> dict[int, tuple[int, str, int]]:
    """Return parent, name and number of threads of every living process under this one, by its number."""
    parents: dict[int, tuple[int, str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                before, _, after = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
                fields = after.split()
                if fields[0] not in ("Z", "X"):
                    parents[int(entry.name)] = (int(fields[1]), before.partition("(")[2], int(fields[17]))
    found: dict[int, tuple[int, str, int]] = {}
    waiting = [root]
    while waiting:
        parent = waiting.pop()
        children = {pid: facts for pid, facts in parents.items() if facts[0] == parent}
        found |= children
        waiting += children
    return found


def strays(root: int, *, allowed: set[int], jails: int) -> dict[int, str]:
    """Return every process under this one that is neither allowed nor one of so many jails of one process each."""
    living = descendants(root)
    supervisors = [pid for pid, (parent, name, _) in living.items() if name == "nsjail" and parent == root]
    kept = set(allowed)
    for pid in supervisors[:jails]:
        inside = [child for child, (parent, _, threads) in living.items() if parent == pid and threads == 1]
        kept |= {pid, *inside[:1]}
    return {pid: name for pid, (_, name, _) in living.items() if pid not in kept}


def end(pids: list[int]) -> None:
    """End processes by their numbers."""
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def reap(known: set[int]) -> None:
    """Take leave of dead children that nobody else waits for: adopted ones."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) not in known:
            with suppress(OSError, IndexError, ChildProcessError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
                if fields[2].split()[:2] == ["Z", str(os.getpid())] and "nsjail" not in fields[0]:
                    os.waitpid(int(entry.name), os.WNOHANG)
