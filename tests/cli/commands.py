"""Run commands as a person or a script does: as processes, with their two streams, or at a terminal."""

import asyncio
import codecs
import fcntl
import os
import pty
import re
import signal
import struct
import sys
import tempfile
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.client import Client
from temporalio.service import RPCError

from backstay.client.workers import pollers
from tests.engine import Engine
from tests.nursery.nursery import COMMAND, Nursery

HOUSE = Path(__file__).resolve().parents[2]
BACKSTAY = (sys.executable, "-m", "backstay")


@dataclass(frozen=True)
class Done:
    """What one command left."""

    code: int
    out: str
    err: str


def environment_of(opened: Engine, **more: str) -> dict[str, str]:
    """Return the environment that leads a command to this engine."""
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(HOUSE),
        "TEMPORAL_ADDRESS": opened.client.service_client.config.target_host,
        "BACKSTAY_TASK_QUEUE": opened.settings.task_queue,
        "BACKSTAY_HOME": str(opened.settings.home),
        "BACKSTAY_TOOLBOX": str(opened.settings.toolbox),
        "BACKSTAY_POLICY": str(opened.settings.policy),
        **more,
    }


def bare(**more: str) -> dict[str, str]:
    """Return an environment that leads nowhere by itself."""
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(HOUSE), **more}


async def until_polled(
    temporal: Client, queue: str, kind: "TaskQueueType.ValueType" = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
) -> None:
    """Wait until a worker has asked a task queue for work; Temporal may be too busy to answer at once."""
    async with asyncio.timeout(150):
        polled: list[str] = []
        while not polled:
            with suppress(RPCError):
                polled = await pollers(temporal, queue, kind)
            await asyncio.sleep(0.05)


async def forked(
    nursery: Nursery, *arguments: str, environment: dict[str, str], folder: Path, seconds: float = 150
) -> Done:
    """Run one command to its end as a fork of what has imported it already; saves a second."""
    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "err")
        child = await nursery.raised(COMMAND, *arguments, environment=environment, folder=folder, out=out, log=log)
        return Done(await child.ended(seconds), child.answered(), child.said())


async def command(
    *arguments: str, environment: dict[str, str], folder: Path | None = None, seconds: float = 150
) -> Done:
    """Run one command to its end."""
    process = await asyncio.create_subprocess_exec(
        *BACKSTAY,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
        cwd=folder,
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), seconds)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    return Done(process.returncode or 0, out.decode(), err.decode())


@dataclass
class Seat:
    """A program at a terminal of its own; `over` gives its exit code, and `out` holds what it prints elsewhere."""

    master: int
    pid: int
    over: asyncio.Future[int]
    out: Path

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    async def ended(self, seconds: float = 150) -> int:
        """Wait for the end; return the exit code."""
        return await asyncio.wait_for(asyncio.shield(self.over), seconds)


@asynccontextmanager
async def seated(
    *arguments: str,
    environment: dict[str, str],
    folder: Path | None,
    nursery: Nursery | None,
    columns: int,
    lines: int,
    echo: bool = True,
    apart: bool = False,
) -> AsyncGenerator[Seat]:
    """Start a program at a terminal, with its standard output apart if wanted; with a nursery, as a fork of that."""
    master, slave = pty.openpty()
    modes = termios.tcgetattr(slave)
    modes[3] = modes[3] | termios.ECHO if echo else modes[3] & ~termios.ECHO
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    with tempfile.TemporaryDirectory() as place:
        terminal = os.ttyname(slave)
        out = Path(place, "out") if apart else Path(terminal)
        if nursery is None:
            pid, over = await _started(arguments, environment, folder or HOUSE, slave, out)
        else:
            assert arguments[: len(BACKSTAY)] == BACKSTAY, f"only `backstay` is forked, and this is {arguments}"
            given = {"environment": environment, "folder": folder or HOUSE, "out": out, "log": Path(terminal)}
            child = await nursery.raised(COMMAND, *arguments[len(BACKSTAY) :], **given, terminal=terminal)
            pid, over = child.born.result(), child.died
        try:
            yield Seat(master, pid, over, out)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            await asyncio.wait_for(asyncio.shield(over), 150)
            os.close(slave)
            os.close(master)


async def _started(
    arguments: tuple[str, ...], environment: dict[str, str], folder: Path, slave: int, out: Path
) -> tuple[int, asyncio.Future[int]]:
    # The small program in front makes the terminal the controlling one, so that Ctrl-C reaches what runs at it, and
    # gives Ctrl-C its meaning back: tests that a script starts in the background are born with SIGINT ignored.
    front = (
        "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    with out.open("ab", buffering=0) as opened:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", front, *arguments),
            stdin=slave,
            stdout=opened,
            stderr=slave,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    return process.pid, asyncio.create_task(process.wait())


@dataclass
class Terminal:
    """What a terminal shows, without colours and movements of the cursor, and what is typed there."""

    seat: Seat
    screen: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace")
    )
    """What comes in one piece may end amid a sign."""

    async def shows(self, text: str, seconds: float = 150) -> str:
        """Wait until the screen shows a text beyond what was waited for before; return what came up to it."""
        try:
            async with asyncio.timeout(seconds):
                while text not in self.screen:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} is not shown:\n{self.screen[-3000:]}") from None
        before, _, self.screen = self.screen.partition(text)
        return before + text

    def type(self, line: str) -> None:
        self.seat.press(f"{line}\n")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.seat.press("\x03")

    async def ended(self, seconds: float = 150) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was printed on stdout, which is no terminal."""
        return await self.seat.ended(seconds), self.seat.out.read_text(encoding="utf-8")

    def read(self) -> None:
        typed = self._decoder.decode(os.read(self.seat.master, 65536)).replace("\r\n", "\n")
        self.screen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", typed)
        self.changed.set()


@asynccontextmanager
async def at_terminal(
    *arguments: str, environment: dict[str, str], folder: Path | None = None, nursery: Nursery | None = None
) -> AsyncGenerator[Terminal]:
    """Start a program whose standard input and standard error are a terminal.

    With a nursery it is a fork of what has imported `backstay` already; saves a second.
    """
    environment = {"TERM": "xterm", "COLUMNS": "160", "LINES": "50", **environment}
    size = {"columns": 160, "lines": 50}
    async with seated(*arguments, environment=environment, folder=folder, nursery=nursery, apart=True, **size) as seat:
        terminal, loop = Terminal(seat), asyncio.get_running_loop()
        loop.add_reader(seat.master, terminal.read)
        try:
            yield terminal
        finally:
            loop.remove_reader(seat.master)
