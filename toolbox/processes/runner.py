"""Run one command to its end: bounded in time, memory and output, and nothing of it outlives the call."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from backstay.errors import ToolUnavailable
from backstay.policies.glob import matches
from backstay.tools.execution import ExecutionResult
from system.children import end_group, exit_of, launched
from system.output import BoundedOutput

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")


def clean_environment(environment: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """Return the harmless part of an environment, and over it what the operator gives this process."""
    return {name: environment[name] for name in _INHERITED if name in environment} | dict(own)


def find_command(command: str, *, folder: Path, environment: Mapping[str, str]) -> str:
    """Return the whole path of an executable; `python` is the interpreter that runs this.

    Raises ToolUnavailable naming what is missing.
    """
    if command == "python":
        return sys.executable
    named = str(folder / command) if os.sep in command else command
    found = shutil.which(named, path=environment.get("PATH", os.defpath))
    if found is not None:
        return found
    if os.sep in command and Path(named).is_file():
        raise ToolUnavailable(f"the command {command!r} may not be executed; allow it with chmod +x")
    raise ToolUnavailable(f"the command {command!r} was not found; install it or correct `command`")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    """Bound a process and each one it starts; its time has an end of its own, the deadline of the call.

    The number of processes is not among them: the kernel counts all that one user has, the worker's own included.
    """

    cpu_s: int = 300
    memory_mb: int = 4096
    """Memory that it can write and shares with no other process."""
    address_mb: int = 65_536
    """Address space, which also counts what it only reserves, only reads or shares."""
    file_mb: int = 1024
    """The largest file that may be written."""
    files: int = 1024
    """Open files."""

    def spelled(self) -> tuple[str, ...]:
        """Return the limits as the launcher reads them; no memory is ever dumped."""
        return (
            f"CPU={self.cpu_s}",
            f"AS={self.address_mb << 20}",
            f"DATA={self.memory_mb << 20}",
            f"FSIZE={self.file_mb << 20}",
            f"NOFILE={self.files}",
            "CORE=0",
        )


class NotEnded(TimeoutError):
    """Not all processes of a command could be killed at its deadline."""


Printed = Callable[[Literal["stdout", "stderr"], bytes], None]
"""Called with whatever a command prints, as it comes."""

_NOT_ALLOWED = 126
_STDOUT_KEPT = 64 * 1024 * 1024
_STDERR_KEPT = 64 * 1024
_CHUNK = 256 * 1024
_ASK_S = 0.5


class Runner:
    """Start commands that are given as lists, without a shell and with nothing of the worker's environment in them."""

    def __init__(
        self,
        *,
        environment: Mapping[str, str],
        limits: ProcessLimits | None = None,
        allow: Sequence[str] = ("*",),
        deny: Sequence[str] = (),
        stdout_kept: int = _STDOUT_KEPT,
    ) -> None:
        """Take the harmless variables from this environment; `allow` and `deny` are globs over names and paths."""
        self._environment = environment
        self._limits = ProcessLimits() if limits is None else limits
        self._allow = allow
        self._deny = deny
        self._stdout_kept = stdout_kept

    def check(self, argv: Sequence[str], *, folder: Path, environment: Mapping[str, str] | None = None) -> str:
        """Return the whole path of the command. Raises ToolUnavailable when it cannot be started."""
        if not folder.is_dir():
            raise ToolUnavailable(f"the directory {folder.name!r} does not exist; create it or correct its name")
        return find_command(argv[0], folder=folder, environment=clean_environment(self._environment, environment or {}))

    async def run(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        timeout_s: float,
        environment: Mapping[str, str] | None = None,
        printed: Printed | None = None,
        limited: bool = True,
        inherited: Sequence[int] = (),
    ) -> ExecutionResult:
        """Run a command in a folder and return how it ended; a signal's number is a negative exit code.

        All that it started ends with it. `inherited` are open files that it keeps. Raises ToolUnavailable when it never
        ran, TimeoutError when killed, and NotEnded when that took no effect.
        """
        command = self.check(argv, folder=folder, environment=environment)
        if refusal := self._refusal(argv[0], command):
            return ExecutionResult(exit_code=_NOT_ALLOWED, stderr=refusal, allowed=False)
        began = time.monotonic()
        process, report = await self._start(
            (command, *argv[1:]), folder, environment or {}, limited=limited, inherited=inherited
        )
        stdout, stderr = BoundedOutput(self._stdout_kept), BoundedOutput(0, _STDERR_KEPT)
        readers = [
            asyncio.create_task(_read(process.stdout, "stdout", stdout, printed)),
            asyncio.create_task(_read(process.stderr, "stderr", stderr, printed)),
        ]
        code = await _code_of(process, report, readers, name=argv[0], timeout_s=timeout_s)
        return ExecutionResult(
            exit_code=code,
            stdout=stdout.text,
            stderr=stderr.text,
            duration_ms=round(1000 * (time.monotonic() - began)),
        )

    def _refusal(self, named: str, command: str) -> str:
        names = {named, command, Path(command).name}
        denied = next((glob for glob in self._deny if any(matches(glob, name) for name in names)), None)
        if denied is not None:
            return f"{named}: the operator's list denies it ({denied})"
        if not any(matches(glob, name) for glob in self._allow for name in names):
            return f"{named}: the operator's list does not allow it"
        return ""

    async def _start(
        self,
        command: Sequence[str],
        folder: Path,
        own: Mapping[str, str],
        *,
        limited: bool,
        inherited: Sequence[int],
    ) -> tuple[asyncio.subprocess.Process, int]:
        """Start the launcher, which becomes the command; return it with the file that says why it could not."""
        reading, writing = os.pipe()
        limits = self._limits.spelled() if limited else ()
        try:
            process = await asyncio.create_subprocess_exec(
                *launched(command, limits=limits, report=writing, kept=True),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=folder,
                env=clean_environment(self._environment, own),
                start_new_session=True,
                pass_fds=(writing, *inherited),
                limit=_CHUNK,
            )
        except BaseException as error:
            os.close(reading)
            if not isinstance(error, OSError | ValueError):
                raise
            raise ToolUnavailable(f"the command {command[0]!r} cannot be started: {type(error).__name__}") from None
        finally:
            os.close(writing)
        return process, reading


async def _code_of(
    process: asyncio.subprocess.Process,
    report: int,
    readers: Collection[asyncio.Task[None]],
    *,
    name: str,
    timeout_s: float,
) -> int:
    """Wait for the end of a command, and end what is left of it. Raises as `Runner.run` does."""
    ended = False
    try:
        try:
            async with asyncio.timeout(timeout_s):
                if fault := await _reported(report):
                    raise ToolUnavailable(f"the command {name!r} cannot be started: {fault}")
                return await exit_of(process)
        finally:
            ended = await end_group(process, ask_s=_ASK_S, readers=readers, kept=True)
    except TimeoutError:
        if not ended:
            raise NotEnded from None
        raise


async def _reported(report: int) -> str:
    """Return why the command could not be started; nothing once it runs."""
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(report, "rb", buffering=0)
    )
    try:
        return (await reader.read(1000)).decode("utf-8", "replace")
    finally:
        transport.close()


async def _read(
    stream: asyncio.StreamReader | None, name: Literal["stdout", "stderr"], kept: BoundedOutput, printed: Printed | None
) -> None:
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        kept.add(chunk)
        if printed is not None:
            printed(name, chunk)
