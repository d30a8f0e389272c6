"""Tell browsers that something has changed, as it happens: server-sent events, and who is looking at what."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from backstay.errors import BackstayError
from gateways.web.identity import Visitor
from gateways.web.page import Page

POLL_S = 0.7
"""How often the store is looked at, once for all who watch."""
BEAT_S = 5.0
"""How often a connection says that it lives, and who else looks is looked at."""
LOOKED_S = 15.0
"""How often somebody who goes on looking says so."""
MOST_STREAMS = 20
"""How many connections of this kind one person may hold."""
EVENTS = {"content-type": "text/event-stream", "x-accel-buffering": "no"}
log = structlog.get_logger("backstay.web")


class Watcher:
    """Look at the store while somebody watches, and wake all of them when something has changed."""

    def __init__(self, page: Page) -> None:
        """Watch the store of this page."""
        self._store = page.store
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
    """Return one server-sent event."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n"


def stream(events: AsyncGenerator[str]) -> Response:
    """Return an answer that goes on until its events end, or the browser leaves."""
    return StreamingResponse(events, headers=EVENTS)


class Look(NamedTuple):
    """Hold who looks at which request, in which tab."""

    workflow_id: str
    request_id: str
    person: str
    reader: str


def routes(page: Page) -> list[BaseRoute]:
    """Return the route of live news."""
    watcher = Watcher(page)

    async def news(request: Request, visitor: Visitor) -> Response:
        if watcher.is_full(visitor.by):
            raise HTTPException(429)
        workflow_id, request_id = (request.query_params.get(name, "") for name in ("w", "r"))
        if not request_id:
            return stream(_news(page, watcher, visitor, None))
        row = await page.store.requests.get(workflow_id, request_id)
        if row is None or not page.seeing.request(visitor.by, row):
            raise HTTPException(404)
        reader = f"{visitor.by} {request.query_params.get('reader', '')[:40]}"
        return stream(_news(page, watcher, visitor, Look(workflow_id, request_id, visitor.by, reader)))

    return [page.get("/events", news)]


async def _news(page: Page, watcher: Watcher, visitor: Visitor, look: Look | None) -> AsyncGenerator[str]:
    """Yield how many requests wait for a visitor, and what became of the one that they look at."""
    said, looked_at = "", -LOOKED_S
    try:
        with watcher.watching(visitor.by):
            woken = False
            while time.time() < visitor.until:
                ticket = watcher.ticket()
                if look is not None and time.monotonic() - looked_at > LOOKED_S:
                    await page.store.looks.look(*look)
                    looked_at = time.monotonic()
                found = await _found(page, visitor, look)
                text = event("news", found)
                # Also what changes no number may change a row that is shown.
                yield text if text != said else event("changed", found) if woken else ": still here\n\n"
                said, woken = text, await is_set_within(ticket, BEAT_S)
    except BackstayError as error:
        log.warning("web.stream_ended", error=type(error).__name__)
    finally:
        if look is not None:
            watcher.afterwards(page.store.looks.leave(look.reader))


async def _found(page: Page, visitor: Visitor, look: Look | None) -> dict[str, Any]:
    found: dict[str, Any] = {"open": await page.store.requests.count_open(page.seeing.only(visitor.by))}
    if look is None:
        return found
    row = await page.store.requests.get(look.workflow_id, look.request_id)
    looking = await page.store.looks.people([(look.workflow_id, look.request_id)])
    people = [person for names in looking.values() for person in names if person != visitor.by]
    votes = 0 if row is None else len(row.request.get("decided", ()))
    return found | {"state": "" if row is None else row.state, "votes": votes, "people": people}
