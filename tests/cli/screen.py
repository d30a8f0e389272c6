"""A chat at a terminal of its own: what stands there, and what is typed."""

import asyncio
import os
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pyte

from tests.cli.commands import BACKSTAY, Seat, seated
from tests.nursery.nursery import Nursery

ESC = "\x1b"
_MOVES = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[()][A-Z0-9]|[=>])|\r")
COLUMNS, LINES = 120, 50


class Screen:
    """Hold a program at a terminal, and what its screen shows."""

    def __init__(self, seat: Seat, columns: int, lines: int) -> None:
        self.seat = seat
        self.said = ""
        """Everything that was shown beyond what was waited for."""
        self.all = ""
        self.drawn = pyte.HistoryScreen(columns, lines, history=5000)
        self._stream = pyte.ByteStream(self.drawn)
        self._changed = asyncio.Event()

    def read(self) -> None:
        data = os.read(self.seat.master, 65536)
        self._stream.feed(data)
        text = _MOVES.sub("", data.decode("utf-8", "replace"))
        self.said += text
        self.all += text
        self._changed.set()

    async def shows(self, text: str, seconds: float = 150) -> str:
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

    async def waits_for(self, mark: str, seconds: float = 150) -> None:
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
        self.seat.press(keys)

    def enter(self, line: str) -> None:
        self.press(f"{line}\r")

    async def paste(self, text: str) -> None:
        """Paste a text as terminals do that say where it begins and ends."""
        data, loop = f"{ESC}[200~{text}{ESC}[201~".encode(), asyncio.get_running_loop()
        while data:
            done = loop.create_future()
            loop.add_writer(self.seat.master, lambda done=done: done.done() or done.set_result(None))
            await asyncio.wait_for(done, 150)
            loop.remove_writer(self.seat.master)
            data = data[os.write(self.seat.master, data[:4096]) :]

    def picture(self) -> str:
        """Return what stands on the screen now."""
        return "\n".join(line.rstrip() for line in self.drawn.display).rstrip()

    async def ended(self, seconds: float = 150) -> int:
        """Wait for the end; return the exit code."""
        try:
            return await self.seat.ended(seconds)
        except TimeoutError:
            raise AssertionError(f"it does not end:\n{self.picture()}") from None


@asynccontextmanager
async def chatting(
    *arguments: str,
    environment: dict[str, str],
    folder: Path | None = None,
    columns: int = COLUMNS,
    lines: int = LINES,
    nursery: Nursery | None = None,
) -> AsyncGenerator[Screen]:
    """Start `backstay chat` at a terminal; with a nursery, as a fork of what has imported it already."""
    # A program asks the terminal for its size, unless it is told the size of that of pytest.
    told = {name: value for name, value in environment.items() if name not in {"COLUMNS", "LINES"}}
    size = {"columns": columns, "lines": lines}
    async with seated(
        *(*BACKSTAY, "chat", *arguments),
        environment=told | {"TERM": "xterm-256color"},
        folder=folder,
        nursery=nursery,
        echo=False,
        **size,
    ) as seat:
        os.set_blocking(seat.master, False)
        screen, loop = Screen(seat, columns, lines), asyncio.get_running_loop()
        loop.add_reader(seat.master, screen.read)
        try:
            yield screen
        finally:
            loop.remove_reader(seat.master)


async def read_along(home: Path, start: str, seconds: float = 150) -> None:
    """Wait until somebody reads what the model of a run says, whose workflow id begins so."""
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(_is_watched, home / "backstay.db", start):
            await asyncio.sleep(0.05)


def _is_watched(database: Path, start: str) -> bool:
    with closing(sqlite3.connect(database, timeout=150)) as connection:
        found = connection.execute("SELECT 1 FROM watches WHERE substr(run, 1, ?) = ?", (len(start), start))
        return found.fetchone() is not None
