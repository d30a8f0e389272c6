"""Run commands as a person or a script does: as processes, with their two streams, or at a terminal."""

import asyncio
import os
import pty
import re
import signal
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

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


async def forked(
    nursery: Nursery, *arguments: str, environment: dict[str, str], folder: Path, seconds: float = 50
) -> Done:
    """Run one command to its end as a fork of what has imported it already; saves a second."""
    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "err")
        child = await nursery.raised(COMMAND, *arguments, environment=environment, folder=folder, out=out, log=log)
        return Done(await child.ended(seconds), child.answered(), child.said())


async def command(
    *arguments: str, environment: dict[str, str], folder: Path | None = None, seconds: float = 50
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
class Terminal:
    """A program at a terminal of its own; colours and movements of the cursor are left out of what it shows."""

    process: asyncio.subprocess.Process
    master: int
    screen: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def shows(self, text: str, seconds: float = 50) -> str:
        """Wait until the screen shows a text beyond what was waited for before; return what came up to it."""
        async with asyncio.timeout(seconds):
            while text not in self.screen:
                self.changed.clear()
                await self.changed.wait()
        before, _, self.screen = self.screen.partition(text)
        return before + text

    def type(self, line: str) -> None:
        os.write(self.master, f"{line}\n".encode())

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self.master, b"\x03")

    async def ended(self, seconds: float = 50) -> tuple[int, str]:
        """Wait for the end; return the exit code and what was printed on stdout, which is no terminal."""
        assert self.process.stdout is not None
        out = await asyncio.wait_for(self.process.stdout.read(), seconds)
        return await asyncio.wait_for(self.process.wait(), seconds), out.decode()


@asynccontextmanager
async def at_terminal(
    *arguments: str, environment: dict[str, str], folder: Path | None = None
) -> AsyncGenerator[Terminal]:
    """Start a program whose standard input and standard error are a terminal."""
    master, slave = pty.openpty()
    # The small program in front makes the terminal the controlling one, so that Ctrl-C reaches what runs at it, and
    # gives Ctrl-C its meaning back: tests that a script starts in the background are born with SIGINT ignored.
    front = (
        "import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        front,
        *arguments,
        stdin=slave,
        stdout=asyncio.subprocess.PIPE,
        stderr=slave,
        env={"TERM": "xterm", "COLUMNS": "160", "LINES": "50", **environment},
        cwd=folder,
        start_new_session=True,
    )
    os.close(slave)
    shown = Terminal(process, master)

    def read() -> None:
        try:
            typed = os.read(master, 65536).decode("utf-8", "replace").replace("\r\n", "\n")
            shown.screen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", typed)
        except OSError:
            asyncio.get_running_loop().remove_reader(master)
        shown.changed.set()

    asyncio.get_running_loop().add_reader(master, read)
    try:
        yield shown
    finally:
        asyncio.get_running_loop().remove_reader(master)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        os.close(master)
