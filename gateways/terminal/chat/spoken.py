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
from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.shown import one_line

DELTA, _OVER = "model.delta", "end"
_MOST_BYTES = 1 << 20
_SLOWEST_S = 5.0
_ENDING_S = 3.0
"""So long after the end of a run the page may take to pass on the last words."""
_OK, _STRANGER, _NOT_FOUND = 200, 401, 404
_UNSEEN = 3
"""So often a run is looked for in vain before a line says so; one that has only just begun is not known everywhere."""
_BROWSER = "read along in a browser"
_GOES_ON = "the run goes on, and its answer is shown when it ends"


class Entrance(NamedTuple):
    """Hold how a chat lets itself into the page, and what to say where that does not do."""

    by: str
    headers: Mapping[str, str]
    refused: str
    """Why the page may not know the person."""


def let_in(settings: Settings, page: str | None, by: str) -> Entrance:
    """Return how a person is let in where the page believes links, and that is on this machine only."""
    from gateways.links import link_for, open_seals
    from system.addresses import is_loopback

    if settings.web_identity != "link":
        why = f"it knows people by a proxy (BACKSTAY_WEB_IDENTITY={settings.web_identity}), and a chat comes by a link"
        return Entrance(by, {}, f"{why}; {_BROWSER}")
    host = urlsplit(page or "").hostname
    if host is None or not is_loopback(host):
        why = "a chat comes by a link, which lets in on this machine only, and the address is none of this machine"
        return Entrance(by, {}, f"{why}; {_BROWSER}")
    try:
        link = link_for(open_seals(settings), by)
    except SettingsInvalid as error:
        return Entrance(by, {}, str(error))
    why = "it does not take the link of this chat; give both one BACKSTAY_HOME or BACKSTAY_WEB_SECRET, and one identity"
    return Entrance(by, {"authorization": f"Bearer {link}"}, why)


class Piece(NamedTuple):
    """Hold what a model said next."""

    position: int
    stream: int
    """Another number is another answer."""
    step: int
    text: str


class LiveText:
    """Read what the model of one run says, for as long as the page can be reached."""

    def __init__(self, page: str | None, workflow_id: str, entrance: Entrance) -> None:
        """Without a page nothing is read."""
        self._page = page
        self._address = None if page is None else f"{page.rstrip('/')}/runs/{quote(workflow_id, safe='')}/events"
        self._entrance = entrance
        self._position = self._unseen = 0
        self._reading: asyncio.Task[None] | None = None
        self._connected = False
        self.pieces: asyncio.Queue[Piece] = asyncio.Queue()
        self.trouble = ""
        """Why nothing can be read, for people."""

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncGenerator[None]:
        """Read within the block, in the background."""
        self._reading = asyncio.create_task(self._read())
        try:
            yield
        finally:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def finish(self) -> None:
        """Wait until all words were read, where the page answers; raises nothing."""
        if self._reading is not None and self._connected:
            await asyncio.wait([self._reading], timeout=_ENDING_S)

    async def _read(self) -> None:
        if self._address is None:
            return
        pause = 0.5
        timeout = httpx2.Timeout(10, read=60)
        headers = {"accept": "text/event-stream", **self._entrance.headers}
        async with httpx2.AsyncClient(timeout=timeout, headers=headers, trust_env=False) as client:
            while True:
                try:
                    async with client.stream("GET", self._address) as response:
                        self.trouble = self._trouble(response.status_code)
                        self._connected = response.status_code == _OK
                        if self._connected:
                            pause = 0.5
                            if await self._take(response.aiter_bytes()):
                                return
                        elif response.status_code != _NOT_FOUND:
                            return
                except httpx2.HTTPError as error:
                    self._connected = False
                    self.trouble = f"the page at {self._page} does not answer: {type(error).__name__}"
                await asyncio.sleep(pause)
                pause = min(2 * pause, _SLOWEST_S)

    def _trouble(self, status: int) -> str:
        """Return what an answer means for people; nothing where words are read, or may be read soon."""
        self._unseen = self._unseen + 1 if status == _NOT_FOUND else 0
        if status == _OK or 0 < self._unseen < _UNSEEN:
            return ""
        if status == _NOT_FOUND:
            whom = "where the policy names people, it shows a run to its user (--user) and to those whom the run asks"
            return f"the page at {self._page} shows {self._entrance.by} no such run; {whom}; {_GOES_ON}"
        if status == _STRANGER:
            return f"the page at {self._page} does not let this chat in: {self._entrance.refused}; {_GOES_ON}"
        return f"the page at {self._page} answers HTTP {status}"

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
