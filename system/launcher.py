"""Tie this process to its parent and bound it, then become another program; run as a script of its own.

Limits that the parent sets after the start come too late for a program that is faster, and code between fork and exec
may not run safely in a process with threads. argv: report file, parent's id, `kept` or `alone`, NAME=limit..., --,
command...
"""

import ctypes
import os
import resource
import signal
import sys
import time
from contextlib import suppress

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_STDERR = 2
_HEARD = (signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD)
_KILL_AGAIN_S = 0.01


def main() -> None:
    """Become the command, or write into the report file why not; a kept command becomes a child instead."""
    end = sys.argv.index("--")
    report, parent, way, *limits = sys.argv[1:end]
    command = sys.argv[end + 1 :]
    if int(report) > _STDERR:
        os.set_inheritable(int(report), False)
    try:
        if way == "kept" and sys.platform == "linux":
            _keep(int(parent), int(report))
        else:
            _die_with(int(parent))
        for name, _, value in (limit.partition("=") for limit in limits):
            _bound(getattr(resource, f"RLIMIT_{name}"), int(value))
        for sign in (signal.SIGPIPE, signal.SIGXFSZ):  # this interpreter ignores them, and that would be inherited
            signal.signal(sign, signal.SIG_DFL)
        os.execv(command[0], command)  # noqa: S606 - no shell is wanted
    except (OSError, ValueError) as error:
        os.write(int(report), f"{type(error).__name__}: {getattr(error, 'strerror', None) or error}".encode()[:1000])
    os._exit(127)


def _keep(parent: int, report: int) -> None:
    """Return in a child with a session of its own; stay above it, and end as it ends, once all that it started has.

    The kernel gives this process whatever loses its parent beneath it, so no session and no daemon leads out. On
    SIGTERM the child is asked to end; on SIGHUP, or when the parent dies, everything is killed.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _die_with(parent, signal.SIGHUP)
    keeper = os.getpid()
    if (child := os.fork()) == 0:
        os.setsid()
        _die_with(keeper)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        return
    os.close(report)
    ended: dict[int, int] = {}
    while child not in ended:
        heard = signal.sigwait(_HEARD)
        if heard == signal.SIGHUP:
            break
        if heard == signal.SIGTERM:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGTERM)
        _reap(ended)
    while not _reap(ended):
        _kill_children(keeper)
        time.sleep(_KILL_AGAIN_S)
    _end_as(os.waitstatus_to_exitcode(ended[child]))


def _reap(ended: dict[int, int]) -> bool:
    """Note how children ended; return whether none is left."""
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = found[1]
    except ChildProcessError:
        return True
    return False


def _kill_children(keeper: int) -> None:
    """Kill the children and their groups at once, which are quicker than this when they fork.

    A child keeps its number and that of its group until it is reaped here, and what is in that group came from it.
    """
    own = os.getpgid(0)
    with open(f"/proc/self/task/{keeper}/children", encoding="ascii") as file:  # noqa: PTH123 - each call would import it
        children = file.read().split()
    for child in children:
        with suppress(ProcessLookupError, PermissionError):
            if (group := os.getpgid(int(child))) != own:
                os.killpg(group, signal.SIGKILL)
            os.kill(int(child), signal.SIGKILL)


def _end_as(code: int) -> None:
    """End with the exit code, or by the signal, by which the command ended."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), -code)
    os._exit(code)


def _die_with(parent: int, sign: int = signal.SIGKILL) -> None:
    """Ask the kernel to signal this process when its parent dies, and notice a parent that is dead already."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(sign))
    if os.getppid() != parent:
        os._exit(127)


def _bound(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    most = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    main()
