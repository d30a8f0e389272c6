"""What a model is saying: read from the page while it says it, and laid out in lines."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import httpx2
from rich.cells import cell_len

from backstay.approvals.layout import BAR
from backstay.rooms import room
from backstay.settings import Settings
from backstay.shown import one_line

DELTA, _OVER = "model.delta", "end"
_MOST_BYTES = 1 << 20
_SLOWEST_S = 5.0
_OK, _NOT_FOUND = 200, 404


def let_in(settings: Settings, by: str) -> dict[str, str]:
    """Return the headers by which the page lets a person in, where it believes links: on this machine."""
    if settings.url is None or settings.web_identity != "link":
        return {}
    identity = room("gateways.web.identity")
    if not identity.is_loopback(urlsplit(settings.url).hostname or ""):
        return {}
    return {"authorization": f"Bearer {identity.link_for(room('gateways.web.tokens').open_seals(settings), by)}"}


class Piece(NamedTuple):
    """Hold what a model said next."""

    position: int
    stream: int
    """Another number is another answer."""
    step: int
    text: str


class Spoken:
    """Read what the model of one run says, for as long as the page can be reached."""

    def __init__(self, page: str | None, workflow_id: str, headers: Mapping[str, str]) -> None:
        """Without a page nothing is read."""
        self._address = None if page is None else f"{page.rstrip('/')}/runs/{quote(workflow_id, safe='')}/events"
        self._headers = {"accept": "text/event-stream", **headers}
        self._position = 0
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self.trouble = ""
        """Why nothing can be read, for people."""

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        """Read within the block, in the background."""
        task = asyncio.create_task(self._read())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read(self) -> None:
        if self._address is None:
            return
        pause = 0.5
        timeout = httpx2.Timeout(10, read=60)
        async with httpx2.AsyncClient(timeout=timeout, headers=self._headers, trust_env=False) as client:
            while True:
                try:
                    async with client.stream("GET", self._address) as response:
                        if response.status_code == _OK:
                            pause, self.trouble = 0.5, ""
                            if await self._take(response.aiter_bytes()):
                                return
                        elif response.status_code != _NOT_FOUND:
                            # A run that has only just begun is not known everywhere.
                            self.trouble = f"the page at BACKSTAY_URL answers HTTP {response.status_code}"
                            return
                except httpx2.HTTPError as error:
                    self.trouble = f"the page at BACKSTAY_URL does not answer: {type(error).__name__}"
                await asyncio.sleep(pause)
                pause = min(2 * pause, _SLOWEST_S)

    async def _take(self, parts: AsyncIterator[bytes]) -> bool:
        """Read to the end of the connection; return whether the run has ended."""
        name = ""
        async for line in _lines(parts):
            field, _, value = line.partition(":")
            if field == "event":
                name = value.strip()
            elif field == "data" and name == DELTA and (piece := _piece(value)) is not None:
                # After a reconnection some come again.
                if piece.position > self._position:
                    self._position = piece.position
                    self.pieces.put_nowait(piece)
            elif not line:
                name = ""
            if name == _OVER:
                return True
        return False


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[str]:
    waiting = b""
    async for part in parts:
        *lines, waiting = (waiting + part).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r").decode("utf-8", "replace")
        if len(waiting) > _MOST_BYTES:
            return


def _piece(value: str) -> Piece | None:
    """Return what an event holds; None for one that cannot be read."""
    try:
        told: dict[str, Any] = json.loads(value)
        data = told["data"]
        return Piece(int(data["position"]), int(data["stream"]), int(told["step_index"]), str(told["text"]))
    except (ValueError, KeyError, TypeError):
        return None


class Layout:
    """Lay out words in lines that fit the terminal, each behind a bar, so that none passes for one of the engine."""

    def __init__(self, width: int) -> None:
        """Make lines of so many columns."""
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
