"""What is seen of real jails, from inside and from outside: the evidence on which their properties are judged."""

import asyncio
import errno
import json
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.isolation.nsjail import confined_process

NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")
DEADLY = ("chroot", "pidfd_open")

_ANSWER_S = 30.0
_END_S = 10.0
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Outside:
    """Hold what the kernel reports about a jailed process while it runs."""

    status: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    namespaces: dict[str, str] = field(default_factory=dict[str, str])
    own_namespaces: dict[str, str] = field(default_factory=dict[str, str])
    interfaces: tuple[str, ...] = ()
    cgroups: str = ""


@dataclass(frozen=True)
class Sighting:
    """Hold the output of one jail and how it ended."""

    inside: dict[str, Any] | None
    outside: Outside
    code: int | None
    """The exit code; None when it did not end in time."""
    log: str
    gone: bool
    """Whether the jailed process was gone when nsjail had ended."""
    answered_s: float


@dataclass(frozen=True)
class JailEvidence:
    """Hold what four jails of one profile showed."""

    first: Sighting
    second: Sighting
    deadly: dict[str, int | None]
    """How the process ended that made each deadly attempt."""


async def gather_evidence(
    command: Sequence[str], arguments: Sequence[str], *, named: Sequence[str] = ()
) -> JailEvidence:
    """Start jails by the command line: two that tell what they see, and one for each deadly attempt.

    The arguments are those of the interpreter with the self-test, to which the name of an attempt is added; `named`
    are the same where a profile leaves open what is run.
    """
    telling = [*command, "--quiet", *(("--", *named) if named else ())]
    async with asyncio.TaskGroup() as group:
        first = group.create_task(_see(telling))
        second = group.create_task(_see(telling, end=signal.SIGTERM))
        deadly = {name: group.create_task(_see([*command, "--", *arguments, name])) for name in DEADLY}
    return JailEvidence(first.result(), second.result(), {name: task.result().code for name, task in deadly.items()})


async def _see(command: Sequence[str], *, end: signal.Signals | None = None) -> Sighting:
    """Look at one jail, then end it: by closing its input, or by a signal to nsjail."""
    begun = time.monotonic()
    pipe = asyncio.subprocess.PIPE
    try:
        started = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, limit=_LONGEST, env={}
        )
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "")
        return Sighting(None, Outside(), None, f"nsjail did not start: {name} {error.strerror}", True, 0.0)
    inside, child, outside = None, None, Outside()
    with suppress(TimeoutError, ValueError, asyncio.LimitOverrunError):
        assert started.stdout is not None  # noqa: S101 - made with a pipe
        async with asyncio.timeout(_ANSWER_S):
            line = await started.stdout.readline()
        child = confined_process(started.pid)
        outside = _look(child) if child else outside
        inside = json.loads(line) if line else None
    answered = time.monotonic()
    if end is not None:
        with suppress(ProcessLookupError):
            started.send_signal(end)
    code, log = await _ended(started)
    return Sighting(inside, outside, code, log, child is not None and not _alive(child), answered - begun)


async def _ended(process: asyncio.subprocess.Process) -> tuple[int | None, str]:
    """Close the input and wait, and kill it where it does not end. Return the exit code and the words on fd 2."""
    assert process.stdin is not None  # noqa: S101 - made with a pipe
    process.stdin.close()
    try:
        async with asyncio.timeout(_END_S):
            _, said = await process.communicate()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return None, ""
    return process.returncode, said.decode(errors="replace")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state != "X"


def _look(pid: int) -> Outside:
    place = Path(f"/proc/{pid}")
    own = Path("/proc/self")
    return Outside(
        status={name: text.split() for name, _, text in (line.partition(":") for line in _read(place / "status"))},
        namespaces=_namespaces(place),
        own_namespaces=_namespaces(own),
        interfaces=tuple(line.partition(":")[0].strip() for line in _read(place / "net/dev")[2:]),
        cgroups="\n".join(_read(place / "cgroup")),
    )


def _read(place: Path) -> list[str]:
    try:
        return place.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _namespaces(place: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in NAMESPACES:
        with suppress(OSError):
            found[name] = str((place / "ns" / name).readlink())
    return found
