"""Start a jail so that it cannot outlive the process that started it."""

import os
import resource
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backstay.errors import IsolationUnavailable, SandboxLost

_SETPRIV = tuple(Path(folder, "setpriv") for folder in ("/usr/bin", "/bin", "/usr/local/bin"))
_STREAMS = 3
# A jail must meet signals that Python ignores or handles in the worker as the kernel made them.
_RESET = {signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ, signal.SIGCHLD}


@dataclass(frozen=True, slots=True)
class ChildProcess:
    """Hold a started process and the host's ends of its pipes, none of which blocks."""

    pid: int
    pidfd: int
    control_in: int
    control_out: int
    printed: int


def spawn(command: list[str]) -> ChildProcess:
    """Start the command with three pipes, in a session of its own and with an empty environment.

    The kernel ends it when the thread that called this ends, so call it from one that lives as long as the worker.
    A worker that dies before the kernel was told has also closed the control pipe, and a jail that reads its end exits.
    """
    whole = guarded(command)
    mine: list[int] = []
    theirs: list[int] = []
    try:
        for place in range(_STREAMS):
            reading, writing = os.pipe()
            mine.append(writing if place == 0 else reading)
            theirs.append(reading if place == 0 else writing)
        moves = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate(theirs)]
        pid = os.posix_spawn(whole[0], whole, {}, file_actions=moves, setsigdef=_RESET, setsigmask=(), setsid=True)
        mine.append(_watched(pid))
    except OSError as error:
        _close(*mine, *theirs)
        raise SandboxLost(f"a jail could not be started: {error}") from None
    _close(*theirs)
    for fd in mine[:_STREAMS]:
        os.set_blocking(fd, False)
    return ChildProcess(pid, mine[3], mine[0], mine[1], mine[2])


def guarded(command: Sequence[str], *, without_rights: bool = False) -> list[str]:
    """Return the command line of a process that the kernel sends SIGTERM when the thread that started it ends.

    `without_rights`: it keeps none of the capabilities that this process could hand on.

    Raises IsolationUnavailable where that cannot be arranged.
    """
    dropped = ["--ambient-caps=-all", "--inh-caps=-all"] if without_rights else []
    return [str(_setpriv()), "--pdeathsig", "TERM", *dropped, "--", *command]


def allow_files(needed: int) -> None:
    """Raise the limit of open files to this number, or as far as allowed; child processes inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _watched(pid: int) -> int:
    """Return a file that tells when the process ends; one that cannot be watched is not left alone."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _setpriv() -> Path:
    for path in _SETPRIV:
        if path.exists():
            return path
    raise IsolationUnavailable(
        cause="setpriv is not installed, so a jail could outlive its worker",
        fix="install util-linux, which it is part of",
    )


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
