"""Run one command in one jail: write its input, read its output, watch its limits, and end all its processes."""

import asyncio
import os
import resource
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from sandbox.isolation.spawn import guarded
from system.children import end_group
from system.output import BoundedOutput

Watch = Callable[[int], str | None]
"""Takes the id of the nsjail process and returns why the command must end now, or None; called in a thread."""
WROTE = "it wrote more than"
Heard = Callable[[str, bytes], None]
"""Takes `stdout` or `stderr`, and what was written there."""

TIMED_OUT = 124
KILLED = 137
_CHUNK = 1 << 16
_OFTEN_S = 0.1
_TERM_S = 0.5
_DRAIN_S = 5.0
_LOG_BYTES = 1 << 16


@dataclass(frozen=True, kw_only=True)
class CommandBounds:
    """Limit one command from outside the jail."""

    seconds: float
    kept: int = 64 << 10
    """Bytes of each stream that are kept: two thirds from the beginning, one third from the end."""
    output: int = 16 << 20
    """Bytes of both streams after which the command is ended."""
    watch: Watch | None = None
    heard: Heard | None = None
    passed: tuple[int, ...] = ()
    """Open files that the process which starts the jail is given."""


@dataclass(kw_only=True)
class CommandOutcome:
    """Tell how a command ended, and what it used."""

    exit_code: int = KILLED
    stdout: BoundedOutput
    stderr: BoundedOutput
    log: bytearray = field(default_factory=bytearray)
    """What nsjail itself logs; empty unless the jail failed."""
    reason: str | None = None
    """Why it was ended, if it did not end by itself."""
    notes: list[str] = field(default_factory=list[str])
    """What whoever made the call should know of it, a line each."""
    duration_ms: int = 0
    cpu_s: float = 0.0
    """Processor time of all its processes."""

    @property
    def overfull(self) -> bool:
        """Whether it was ended because it wrote too much."""
        return self.reason is not None and self.reason.startswith(WROTE)


class _ChildTime:
    """Tell processor time of jails apart: the kernel adds up that of all children, each when it is reaped.

    Of two that are reaped at the same moment, one is told the time of both; the sum is always right.
    """

    running = 0
    seen_s = 0.0

    @classmethod
    def begin(cls) -> None:
        if not cls.running:
            # A process that was reaped before is nobody's here.
            cls._since()
        cls.running += 1

    @classmethod
    def end(cls) -> float:
        cls.running -= 1
        return cls._since()

    @classmethod
    def _since(cls) -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        before, cls.seen_s = cls.seen_s, used.ru_utime + used.ru_stime
        return round(max(0.0, cls.seen_s - before), 3)


async def run_jailed(
    nsjail: Sequence[str], arguments: Sequence[str], bounds: CommandBounds, *, fed: bytes = b""
) -> CommandOutcome:
    """Run a command in a jail, and return when none of its processes is left.

    Raises SandboxLost when no process can be started.
    """
    last = bounds.kept // 3
    stdout, stderr = BoundedOutput(bounds.kept - last, last), BoundedOutput(bounds.kept - last, last)
    ended = CommandOutcome(stdout=stdout, stderr=stderr)
    began = time.monotonic()
    _ChildTime.begin()
    try:
        await _until_reaped(nsjail, arguments, bounds, ended, fed)
    finally:
        ended.cpu_s = _ChildTime.end()
    ended.duration_ms = round((time.monotonic() - began) * 1000)
    return ended


async def _until_reaped(
    nsjail: Sequence[str], arguments: Sequence[str], bounds: CommandBounds, ended: CommandOutcome, fed: bytes
) -> None:
    async with _started(nsjail, arguments, fed=bool(fed), passed=bounds.passed) as (process, log):
        assert process.stdout is not None  # noqa: S101 - made with pipes
        assert process.stderr is not None  # noqa: S101 - the same
        tasks = [
            asyncio.create_task(_read("stdout", process.stdout, ended, bounds)),
            asyncio.create_task(_read("stderr", process.stderr, ended, bounds)),
            asyncio.create_task(_feed(process, fed)),
        ]
        try:
            ended.reason = await _until_it_must_end(process, ended, bounds)
        finally:
            # Send SIGTERM first: only then does nsjail end the processes in its jail.
            await end_group(process, ask_s=_TERM_S, readers=tasks, drain_s=_DRAIN_S)
        with suppress(BlockingIOError):
            ended.log += os.read(log, _LOG_BYTES)
    ended.exit_code = _exit_code(process.returncode, ended.reason)


@asynccontextmanager
async def _started(
    nsjail: Sequence[str], arguments: Sequence[str], *, fed: bool, passed: Sequence[int]
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, int]]:
    """Start nsjail so that it ends with this process; yield it with a file descriptor of its log."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    try:
        process = await asyncio.create_subprocess_exec(
            *guarded([*nsjail, "--log_fd", str(writing), "--", *arguments]),
            stdin=pipe if fed else nothing,
            stdout=pipe,
            stderr=pipe,
            env={},
            pass_fds=(writing, *passed),
            start_new_session=True,
        )
    except BaseException:
        os.close(reading)
        raise
    finally:
        os.close(writing)
    try:
        yield process, reading
    finally:
        os.close(reading)


async def _until_it_must_end(
    process: asyncio.subprocess.Process, ended: CommandOutcome, bounds: CommandBounds
) -> str | None:
    """Wait until a process ends, or until there is a reason to end it."""
    ends = time.monotonic() + bounds.seconds
    waiting = asyncio.create_task(process.wait())
    try:
        while not (await asyncio.wait({waiting}, timeout=_OFTEN_S))[0]:
            if ended.stdout.total + ended.stderr.total > bounds.output:
                return f"it said more than {bounds.output} bytes"
            if time.monotonic() >= ends:
                return f"it took longer than {bounds.seconds:g} s"
            if bounds.watch is not None and (reason := await asyncio.to_thread(bounds.watch, process.pid)):
                return reason
    finally:
        waiting.cancel()
    return None


async def _read(name: str, stream: asyncio.StreamReader, ended: CommandOutcome, bounds: CommandBounds) -> None:
    kept: BoundedOutput = getattr(ended, name)
    while data := await stream.read(_CHUNK):
        kept.add(data)
        if bounds.heard is not None:
            bounds.heard(name, data)
        if ended.stdout.total + ended.stderr.total > bounds.output:
            # Unread output stays in the pipe and blocks the writer until it is ended.
            return


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


def _exit_code(code: int | None, reason: str | None) -> int:
    if reason is not None:
        return TIMED_OUT if "took longer" in reason else KILLED
    if code is None or code < 0:
        return KILLED
    return code
