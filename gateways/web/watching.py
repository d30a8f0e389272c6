"""Wake all who watch for something, as soon as the store has changed; and write what they are sent."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any

import structlog
from starlette.responses import Response, StreamingResponse

from backstay.errors import BackstayError
from store.store import Store

POLL_S = 0.7
"""How often the store is looked at, once for all who watch."""
MOST_STREAMS = 20
"""How many connections of this kind one person may hold."""
EVENTS = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
"""Proxies that gather answers before they pass them on are told not to."""
log = structlog.get_logger("backstay.web")


class Watcher:
    """Look at the store while somebody watches, and wake all of them when something has changed."""

    def __init__(self, store: Store) -> None:
        """Watch this store."""
        self._store = store
        self._watching: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._last: set[asyncio.Task[None]] = set()

    def is_full(self, by: str) -> bool:
        """Return whether a person holds as many connections as they may."""
        return self._watching[by] >= MOST_STREAMS

    @contextmanager
    def watching(self, by: str) -> Generator[None]:
        """Count a person as watching until the block ends."""
        self._watching[by] += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            self._watching[by] -= 1

    def ticket(self) -> asyncio.Event:
        """Return what is set at the next change from now on."""
        return self._news

    def wake(self) -> None:
        """Wake all who wait."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    def afterwards(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what is left to do when a browser has gone, which ends whatever has served it."""
        task = asyncio.create_task(_quietly(work))
        self._last.add(task)
        task.add_done_callback(self._last.discard)

    async def _watch(self) -> None:
        seen: tuple[float, int] | None = None
        while self._watching.total():
            try:
                mark = await self._store.requests.mark()
            except BackstayError as error:
                log.warning("web.store_silent", error=type(error).__name__)
                mark = seen
            if mark != seen:
                seen = mark
                self.wake()
            await asyncio.sleep(POLL_S)


async def _quietly(work: Coroutine[Any, Any, None]) -> None:
    with suppress(BackstayError):
        await work


async def is_set_within(ticket: asyncio.Event, within_s: float) -> bool:
    """Wait for a change, at most so long; return whether there was one."""
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            await ticket.wait()
    return ticket.is_set()


def event(name: str, data: Any, number: int | None = None) -> str:
    """Return one server-sent event, which may have no name; JSON has no line breaks of its own."""
    head = "" if number is None else f"id: {number}\n"
    head += f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def stream(events: AsyncGenerator[str]) -> Response:
    """Return an answer that goes on until its events end, or the browser leaves."""
    return StreamingResponse(events, headers=EVENTS)
