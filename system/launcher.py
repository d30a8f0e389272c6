"""Tie this process to its parent and bound it, then become another program; run as a script of its own.

Limits that the parent sets after the start come too late for a program that is faster, and code between fork and exec
may not run safely in a process with threads. argv: report file, parent's id, NAME=limit..., --, command...
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
_STDERR = 2


def main() -> None:
    """Become the command, or write into the report file why not."""
    end = sys.argv.index("--")
    report, parent, *limits = sys.argv[1:end]
    command = sys.argv[end + 1 :]
    if int(report) > _STDERR:
        os.set_inheritable(int(report), False)
    try:
        _die_with(int(parent))
        for name, _, value in (limit.partition("=") for limit in limits):
            _bound(getattr(resource, f"RLIMIT_{name}"), int(value))
        for sign in (signal.SIGPIPE, signal.SIGXFSZ):  # this interpreter ignores them, and that would be inherited
            signal.signal(sign, signal.SIG_DFL)
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except (OSError, ValueError) as error:
        os.write(int(report), f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}".encode()[:1000])
    os._exit(127)


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, and notice a parent that is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(127)


def _bound(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    main()
