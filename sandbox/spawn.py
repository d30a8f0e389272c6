"""Start a jail so that it cannot outlive the process that started it."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from backstay.errors import IsolationUnavailable, SandboxLost

_SETPRIV = tuple(Path(folder, "setpriv") for folder in ("/usr/bin", "/bin", "/usr/local/bin"))


@dataclass(frozen=True, slots=True)
class Spawned:
    """Hold a started process and the host's ends of its pipes, none of which blocks."""

    pid: int
    pidfd: int
    control_in: int
    control_out: int
    printed: int


def spawn(command: list[str]) -> Spawned:
    """Start the command with three pipes, in a session of its own and with an empty environment.

    The kernel ends it when the thread that called this ends, so call it from one that lives as long as the worker.
    A worker that dies before the kernel was told has also closed the control pipe, and a jail that reads its end exits.
    """
    guarded = [str(_setpriv()), "--pdeathsig", "TERM", "--", *command]
    pipes: list[tuple[int, int]] = []
    try:
        pipes = [os.pipe() for _ in range(3)]
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
        moves = [(os.POSIX_SPAWN_DUP2, fd, place) for place, fd in enumerate((in_read, out_write, err_write))]
        reset = {signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXFSZ, signal.SIGCHLD}
        pid = os.posix_spawn(guarded[0], guarded, {}, file_actions=moves, setsigdef=reset, setsigmask=(), setsid=True)
    except OSError as error:
        for ends in pipes:
            _close(*ends)
        raise SandboxLost(f"a jail could not be started: {error}") from None
    _close(in_read, out_write, err_write)
    for fd in (in_write, out_read, err_read):
        os.set_blocking(fd, False)
    return Spawned(pid, os.pidfd_open(pid), in_write, out_read, err_read)


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
