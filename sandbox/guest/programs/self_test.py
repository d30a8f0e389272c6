"""Try, from inside a jail, what must not be possible there, and report how each attempt ended.

Without an argument, all attempts that leave the process alive are reported on fd 1 as one line of JSON; the process
then stays until fd 0 is closed, so that it can be looked at from outside. With an argument, the deadly attempt of that
name is made.
"""

import _thread
import errno
import json
import mmap
import os
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

DONE = "done"
_TMP = Path("/tmp")  # noqa: S108 - the jail's own
_FORBIDDEN = _TMP / "forbidden"


def attempt(action: Callable[[], object]) -> str:
    """Return the name of the error that the action ends with, or `done`."""
    try:
        action()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))
    except BaseException as error:
        return type(error).__name__
    return DONE


def fork() -> None:
    """Start a process; the new one ends at once."""
    if os.fork() == 0:
        os._exit(0)


def socket(family: int) -> Callable[[], None]:
    """Return an attempt to open a socket of the family."""

    def opened() -> None:
        import _socket  # noqa: PLC0415 - an attempt ends with whatever this raises

        _socket.socket(family, 1 if family != 16 else 3).close()

    return opened


def reach() -> None:
    """Connect to an address that no jail has a way to."""
    import _socket  # noqa: PLC0415 - as above

    _socket.socket(2, 1).connect(("192.0.2.1", 80))


def write(path: str) -> Callable[[], object]:
    """Return an attempt to write a file."""
    return lambda: Path(path).write_text("x", encoding="utf-8")


def execute() -> None:
    """Execute a file in the one folder that may be written."""
    told = json.dumps({"attempts": {"execute": DONE}})
    _FORBIDDEN.write_text(f"#!/usr/bin/python3\nprint({told!r})\n", encoding="utf-8")
    _FORBIDDEN.chmod(0o700)
    os.execv(_FORBIDDEN, [str(_FORBIDDEN)])  # noqa: S606 - it must fail


def fill() -> int:
    """Fill the one folder that may be written, and return how many megabytes it took."""
    written = 0
    block = bytes(1 << 20)
    with _FORBIDDEN.open("wb", buffering=0) as opened:
        try:
            while written < 1 << 12 and opened.write(block) == len(block):
                written += 1
        except OSError:
            pass
    _FORBIDDEN.unlink()
    return written


def machine_code() -> None:
    """Map memory that can be both written and executed."""
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC).close()


def open_files() -> list[int]:
    """Return the file descriptors that are open."""
    numbers = range(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    return [number for number in numbers if attempt(partial(os.fstat, number)) == DONE]


def listed(path: str) -> list[str]:
    """Return what is in a folder; a missing one is empty."""
    try:
        return sorted(entry.name for entry in Path(path).iterdir())
    except OSError:
        return []


ATTEMPTS: dict[str, Callable[[], object]] = {
    "fork": fork,
    "spawn": lambda: os.posix_spawn("/usr/bin/python3", ["python3", "-S", "-c", ""], {}),
    "thread": lambda: _thread.start_new_thread(os.getpid, ()),
    "socket_unix": socket(1),
    "socket_internet": socket(2),
    "socket_internet_6": socket(10),
    "socket_netlink": socket(16),
    "socket_vsock": socket(40),
    "reach": reach,
    "write_root": write("/x"),
    "write_library": write("/usr/lib/backstay/x.py"),
    "write_workspace": write("/workspace/x"),
    "memory_file": lambda: os.memfd_create("x"),
    "machine_code": machine_code,
    "become_root": lambda: os.setuid(0),
    "kill": lambda: os.kill(os.getpid(), 0),
    "raise_limit": lambda: resource.setrlimit(resource.RLIMIT_CPU, (1 << 20, 1 << 20)),
    "link": lambda: (_TMP / "link").symlink_to("/"),
    "device": lambda: os.mknod(_TMP / "device", 0o020666, os.makedev(1, 3)),
    "memory": lambda: bytearray(most_memory()),
    "execute": execute,
}
DEADLY: dict[str, Callable[[], object]] = {
    "chroot": lambda: os.chroot("/"),
    "pidfd_open": lambda: os.pidfd_open(os.getpid()),
}


def most_memory() -> int:
    """Return how many bytes of memory this process may have at most."""
    limits = (resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA))
    return min(limit for limit in limits if limit != resource.RLIM_INFINITY)


def facts() -> dict[str, Any]:
    """Return what is seen from inside, and how every attempt ended."""
    names = ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "NOFILE", "NPROC", "STACK")
    space = os.statvfs(_TMP)
    return {
        "files": open_files(),
        "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
        "pid": os.getpid(),
        "host": os.uname().nodename,
        "environment": dict(os.environ),  # noqa: TID251 - it is what is asked about
        "arguments": [*sys.orig_argv],
        "hash": hash("backstay"),
        "address": id(object()),
        "limits": {name: list(resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))) for name in names},
        "tmp_bytes": space.f_blocks * space.f_frsize,
        "tmp_inodes": space.f_files,
        "seen": {path: listed(path) for path in ("/dev", "/etc", "/home", "/proc", "/root", "/run", "/sys", "/var")},
        "attempts": {name: attempt(action) for name, action in ATTEMPTS.items()},
        "tmp_filled": fill(),
    }


def main(names: list[str]) -> None:
    """Make the deadly attempts that are named, or report all others."""
    for name in names:
        attempt(DEADLY[name])
    if not names:
        told = json.dumps(facts()).encode() + b"\n"
        while told:
            told = told[os.write(1, told) :]
        while os.read(0, 4096):
            pass


if __name__ == "__main__":
    main(sys.argv[1:])
