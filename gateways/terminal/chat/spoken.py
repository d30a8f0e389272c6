"""What a model is saying: read from the store while it says it, and laid out in lines."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from rich.cells import cell_len

from backstay.approvals.layout import BAR
from backstay.client import Backstay
from backstay.errors import BackstayError
from backstay.shown import one_line

if TYPE_CHECKING:
    from store.deltas import Delta
    from store.store import Store

_PAUSE_S, _SLOWEST_S = 0.5, 5.0


class LiveText:
    """Read what the model of one run says, for as long as the store can be read."""

    def __init__(self, backstay: Backstay, store: "Store | None", workflow_id: str) -> None:
        """Without a store nothing is read."""
        self._backstay = backstay
        self._store = store
        self._workflow_id = workflow_id
        self._run = ""
        """Its name in the store."""
        self._position = 0
        self.pieces: asyncio.Queue[Delta] = asyncio.Queue()
        self.trouble = ""
        """Why nothing can be read just now, for people."""

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        """Read within the block, in the background."""
        reading = asyncio.create_task(self._read())
        try:
            yield
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def finish(self) -> None:
        """Take the words that came since the last look, where the store can be read."""
        if self._store is not None and self._run:
            with contextlib.suppress(BackstayError):
                for piece in await self._store.deltas.of_run(self._run, self._position):
                    self._take(piece)

    def _take(self, piece: "Delta") -> None:
        if piece.position > self._position:
            self._position = piece.position
            self.pieces.put_nowait(piece)

    async def _read(self) -> None:
        if self._store is None:
            return
        pause = _PAUSE_S
        while True:
            try:
                first = (await self._backstay.execution(self._workflow_id)).first_run_id
                self._run = f"{self._workflow_id}/{first}"
                async for piece in self._store.deltas.after(self._run, self._position):
                    self.trouble, pause = "", _PAUSE_S
                    self._take(piece)
            except BackstayError as error:
                self.trouble = str(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _SLOWEST_S)


class Layout:
    """Lay out words in lines that fit the terminal, each behind a bar, so that none passes for one of the engine."""

    def __init__(self, width: int) -> None:
        """Make lines of the given number of columns."""
        self._width = max(width - cell_len(BAR) - 2, 10)
        self._begun = ""

    @property
    def is_begun(self) -> bool:
        """Return whether there is a line that is not full yet."""
        return bool(self._begun)

    @property
    def last(self) -> str:
        """Return the line that is not full yet."""
        return f"{BAR} {one_line(self._begun, 4 * self._width)}"

    def add(self, text: str) -> list[str]:
        """Take more words; return the lines that are full now."""
        *whole, self._begun = (self._begun + text).split("\n")
        lines = [part for line in whole for part in self._cut(line)]
        *full, self._begun = self._cut(self._begun)
        return [f"{BAR} {one_line(line, 4 * self._width)}" for line in (*lines, *full)]

    def end(self) -> list[str]:
        """Return the last line, if there is one."""
        last, self._begun = self._begun, ""
        return [f"{BAR} {one_line(last, 4 * self._width)}"] if last else []

    def _cut(self, line: str) -> list[str]:
        """Cut a line where a word ends, or where it must be."""
        parts: list[str] = []
        while True:
            fits = _fitting(line, self._width)
            if fits == len(line):
                return [*parts, line]
            space = line.rfind(" ", 1, fits + 1)
            at = space + 1 if space > 0 else max(fits, 1)
            parts.append(line[:at].rstrip(" "))
            line = line[at:]


def behind_bar(text: str, width: int) -> list[str]:
    """Return words that are all there as lines that fit the terminal, each behind a bar."""
    layout = Layout(width)
    return [*layout.add(text), *layout.end()]


def _fitting(line: str, width: int) -> int:
    """Return how many characters of a line fit, as they are shown."""
    low, high = 0, min(len(line), width)
    while low < high:
        middle = (low + high + 1) // 2
        if cell_len(one_line(line[:middle], 20 * width)) <= width:
            low = middle
        else:
            high = middle - 1
    return low
