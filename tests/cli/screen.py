"""A chat at a terminal of its own: what stands there, and what is typed."""

import asyncio
import os
import re
import signal
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pexpect
import pyte

from tests.cli.commands import BACKSTAY

ESC = "\x1b"
_MOVES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])|\r")
COLUMNS, LINES = 120, 50


class Screen:
    """Hold a program at a terminal, and what its screen shows."""

    def __init__(self, child: pexpect.spawn, columns: int, lines: int) -> None:
        self.child = child
        self.said = ""
        """Everything that was shown beyond what was waited for."""
        self.all = ""
        self.drawn = pyte.HistoryScreen(columns, lines, history=5000)
        self._stream = pyte.ByteStream(self.drawn)
        self._changed = asyncio.Event()

    def read(self) -> None:
        try:
            data = os.read(self.child.child_fd, 65536)
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.child.child_fd)
        self._stream.feed(data)
        text = _MOVES.sub("", data.decode("utf-8", "replace"))
        self.said += text
        self.all += text
        self._changed.set()

    async def shows(self, text: str, seconds: float = 60) -> str:
        """Wait until a text is shown beyond what was waited for before; return what came up to it."""
        try:
            async with asyncio.timeout(seconds):
                while text not in self.said:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"{text!r} is not shown:\n{self.picture()}\n---\n{self.said[-3000:]}") from None
        before, _, self.said = self.said.partition(text)
        return before + text

    async def waits_for(self, mark: str, seconds: float = 60) -> None:
        """Wait until the last line of the screen is a mark behind which something can be typed."""
        try:
            async with asyncio.timeout(seconds):
                while self.picture().rpartition("\n")[2].strip() != mark:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"nothing can be typed behind {mark}:\n{self.picture()}") from None
        self.said = ""

    def press(self, keys: str) -> None:
        os.write(self.child.child_fd, keys.encode())

    def enter(self, line: str) -> None:
        self.press(f"{line}\r")

    async def paste(self, text: str) -> None:
        """Paste a text as terminals do that say where it begins and ends."""
        data, loop = f"{ESC}[200~{text}{ESC}[201~".encode(), asyncio.get_running_loop()
        while data:
            done = loop.create_future()
            loop.add_writer(self.child.child_fd, lambda done=done: done.done() or done.set_result(None))
            await asyncio.wait_for(done, 30)
            loop.remove_writer(self.child.child_fd)
            data = data[os.write(self.child.child_fd, data[:4096]) :]

    def picture(self) -> str:
        """Return what stands on the screen now."""
        return "\n".join(line.rstrip() for line in self.drawn.display).rstrip()

    async def ended(self, seconds: float = 30) -> int:
        """Wait for the end; return the exit code."""
        until = time.monotonic() + seconds
        while self.child.isalive():
            assert time.monotonic() < until, self.picture()
            await asyncio.sleep(0.05)
        return self.child.exitstatus if self.child.exitstatus is not None else -(self.child.signalstatus or 0)


@asynccontextmanager
async def chatting(
    *arguments: str,
    environment: dict[str, str],
    folder: Path | None = None,
    columns: int = COLUMNS,
    lines: int = LINES,
) -> AsyncGenerator[Screen]:
    """Start `backstay chat` at a terminal."""
    program, *words = (*BACKSTAY, "chat", *arguments)
    child = pexpect.spawn(
        program,
        words,
        # A program asks the terminal for its size, unless it is told the size of that of pytest.
        env={name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}
        | {"TERM": "xterm-256color"},
        cwd=folder,
        dimensions=(lines, columns),
        echo=False,
        timeout=None,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    os.set_blocking(child.child_fd, False)
    screen = Screen(child, columns, lines)
    loop = asyncio.get_running_loop()
    loop.add_reader(child.child_fd, screen.read)
    try:
        yield screen
    finally:
        loop.remove_reader(child.child_fd)
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        await asyncio.to_thread(child.close, force=True)


async def read_along(home: Path, start: str, seconds: float = 60) -> None:
    """Wait until somebody reads what the model of a run says, whose workflow id begins so."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(_is_watched, home / "backstay.db", start):
            await asyncio.sleep(0.05)


def _is_watched(database: Path, start: str) -> bool:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        found = connection.execute("SELECT 1 FROM watches WHERE substr(run, 1, ?) = ?", (len(start), start))
        return found.fetchone() is not None
