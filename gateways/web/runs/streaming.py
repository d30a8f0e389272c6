"""Stream what happens in a run: what the store has of it, then what comes, and what the model is just saying.

The events of the timeline have their number as the `id` of the stream, so that a browser that comes back goes on where
it was. What a model is saying has the name `model.delta` and no id: it is not part of the timeline.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute

from backstay.approvals.approval import ApprovalRequest
from backstay.errors import ArgumentsInvalid, BackstayError, RunNotFound
from backstay.task.event import Event
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.watching import EVENTS, event
from people.runs.finding import KnownRun, find
from people.runs.looking import FIRST_LATE, MOST_EVENTS, with_newest
from store.deltas import DELTA, Delta

STREAMS_EACH = 12
"""How many streams one person may have open at once."""
LONGEST_S = 3600.0
"""Then a browser comes back by itself, and is asked again who it is."""
HEARTBEAT_S = 15.0
_RETRY_MS = 2000
_LIVELY_S, _LIVELY_POLL_S, _POLL_S = 5.0, 0.2, 1.0
"""A stream looks often for some seconds after something has happened, else less often."""
_LOOK_S, _LIVELY_LOOK_S = 3.0, 0.7
"""How old an answer of the run itself may be."""
_AT_ONCE = 500
_MOST_UNSENT = 1000


@dataclass
class RunSnapshot:
    """Hold what the run itself has said last."""

    at: float = -1e9
    is_open: bool = True
    state: str = ""
    pending: tuple[ApprovalRequest, ...] = ()
    events: tuple[Event, ...] = ()
    asking: asyncio.Task[None] | None = None
    streams: int = 0


@dataclass
class Streams:
    """Count streams, and ask each run once for all who watch it."""

    page: PageRoutes
    of_person: Counter[str] = field(default_factory=Counter[str])
    looks: dict[str, RunSnapshot] = field(default_factory=dict[str, RunSnapshot])

    @contextmanager
    def one_more(self, found: KnownRun) -> Generator[RunSnapshot]:
        """Count a stream while it lasts."""
        look = self.looks.setdefault(found.run, RunSnapshot())
        look.streams += 1
        try:
            yield look
        finally:
            look.streams -= 1
            if not look.streams:
                del self.looks[found.run]
                if look.asking is not None:
                    look.asking.cancel()

    def told(self, found: KnownRun, look: RunSnapshot, by: str) -> str:
        """Return what the run does, as a part of the stream of a person, who sees some of its requests."""
        seen = [asked.id for asked in look.pending if self.page.seeing.asked(by, asked, found.user_id)]
        return event("state", {"state": look.state, "pending": seen})

    def refresh(self, found: KnownRun, look: RunSnapshot, *, within_s: float) -> None:
        """Have the run asked, unless it was lately, or is being asked."""
        if look.asking is not None and not look.asking.done():
            return
        if time.monotonic() - look.at >= within_s:
            look.asking = asyncio.create_task(self._ask(found, look))

    async def _ask(self, found: KnownRun, look: RunSnapshot) -> None:
        backstay = self.page.backstay
        try:
            execution = await backstay.execution(found.workflow_id)
            if not execution.is_open or execution.first_run_id != found.first_run_id:
                look.is_open, look.pending, look.state = await self._is_being_undone(found), (), ""
                return
            status = await backstay.run(found.workflow_id).status()
            look.state, look.pending, look.events = status.state.value, status.pending, status.last_events
        except RunNotFound:
            look.is_open = False
        except BackstayError:
            pass  # a worker or Temporal itself may be back at the next look
        finally:
            look.at = time.monotonic()

    async def _is_being_undone(self, found: KnownRun) -> bool:
        try:
            return not found.is_older and (await self.page.backstay.execution(found.undo_id)).is_open
        except BackstayError:
            return False


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the route of the stream."""
    streams = Streams(page)

    async def events(request: Request, visitor: Visitor) -> Response:
        found = await find(
            page.sources, visitor.by, request.path_params["workflow_id"], request.query_params.get("run")
        )
        after = _last_seen(request)
        if streams.of_person[visitor.by] >= STREAMS_EACH:
            raise HTTPException(429, f"{STREAMS_EACH} streams are open already; close some of your tabs")
        streams.of_person[visitor.by] += 1
        return _Stream(streams, visitor, found, after)

    return [page.get("/runs/{workflow_id:id}/events", events)]


class _Stream(StreamingResponse):
    """Send a stream, and count it off however it ends."""

    def __init__(self, streams: Streams, visitor: Visitor, found: KnownRun, after: int) -> None:
        super().__init__(_stream(streams, visitor, found, after), headers=EVENTS)
        self._streams, self._by = streams, visitor.by

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send it until one of both sides has enough."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.of_person[self._by] -= 1


def _last_seen(request: Request) -> int:
    """Return the number of the last event that a browser has had, by its header or by the address."""
    said = request.headers.get("last-event-id") or request.query_params.get("after", "") or "0"
    if not (said.isdecimal() and said.isascii() and len(said) <= 12):
        raise ArgumentsInvalid("Last-Event-ID: the number of an event, as the stream has sent it")
    return int(said)


@dataclass
class Saying:
    """Hold what a model says until it is sent."""

    position: int = 0
    """Of the last piece that was taken."""
    parts: list[str] = field(default_factory=list[str])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    room: asyncio.Event = field(default_factory=asyncio.Event)
    """Not set while a slow reader has had too little of it."""
    whole: set[int] | None = None
    """The answers that the reader has had as a whole; None until that is known."""

    def take(self) -> list[str]:
        """Return what is new, once."""
        self.news.clear()
        self.room.set()
        taken, self.parts = self.parts, []
        return taken

    async def wait(self, seconds: float) -> None:
        """Wait until words come, or for so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.news.wait()

    async def listen(self, page: PageRoutes, run: str, seen: int) -> None:
        """Take what the model of a run says; while this lasts, the run counts as watched.

        `seen` is the number of the last event that the reader has had: answers that were whole by then are left out.
        """
        while True:
            try:
                self.whole = await _whole(page, run, seen) if self.whole is None else self.whole
                async for delta in page.store.deltas.after(run, self.position):
                    self._add(run, delta)
                    if len(self.parts) > _MOST_UNSENT:
                        self.room.clear()
                        await self.room.wait()
            except BackstayError:
                await asyncio.sleep(_POLL_S)

    async def catch_up(self, page: PageRoutes, run: str) -> None:
        """Take the words that came since the last look of who listens."""
        if self.whole is not None:
            for delta in await page.store.deltas.of_run(run, self.position):
                self._add(run, delta)

    def _add(self, run: str, delta: Delta) -> None:
        if delta.position <= self.position:
            return
        self.position = delta.position
        if delta.stream not in (self.whole or ()):
            self.parts.append(event(DELTA, delta.event(run)))
            self.news.set()


async def _stream(streams: Streams, visitor: Visitor, found: KnownRun, after: int) -> AsyncGenerator[str]:
    until = min(time.time() + LONGEST_S, visitor.until)
    saying = Saying()
    with streams.one_more(found) as look:
        listening = asyncio.create_task(saying.listen(streams.page, found.run, after))
        try:
            yield f"retry: {_RETRY_MS}\n\n"
            async with aclosing(_happening(streams, found, look, after, saying, by=visitor.by)) as parts:
                async for part in parts:
                    if time.time() > until:
                        return
                    yield part
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _whole(page: PageRoutes, run: str, seen: int) -> set[int]:
    """Return the streams of answers that were whole at the event with that number."""
    said = await page.store.deltas.of_run(run)
    events = await page.store.events.of_run(run, after=max(0, seen - MOST_EVENTS), limit=MOST_EVENTS) if said else []
    steps = {event.step_index for event in events if event.name == "model.asked" and event.n <= seen}
    return {delta.stream for delta in said if delta.step in steps}


async def _happening(
    streams: Streams, found: KnownRun, look: RunSnapshot, after: int, saying: Saying, *, by: str
) -> AsyncGenerator[str]:
    """Yield the parts of a stream, each at once when there is something to say."""
    late: set[int] = set()
    lively = spoke = time.monotonic()
    state = ""
    while True:
        now = time.monotonic()
        is_lively = now - lively < _LIVELY_S
        streams.refresh(found, look, within_s=_LIVELY_LOOK_S if is_lively else _LOOK_S)
        ended = not look.is_open
        fresh = [each for each in await _new(streams.page, found.run, look, after) if each.n not in late]
        late |= {each.n for each in fresh if each.n >= FIRST_LATE}
        after = max((each.n for each in fresh if each.n < FIRST_LATE), default=after)
        # The words of a model come before the event that it has said them, and all of them before the end.
        if ended:
            await saying.catch_up(streams.page, found.run)
        parts = saying.take()
        parts += [event("", each.plain(), each.n if each.n < FIRST_LATE else None) for each in fresh]
        if look.state and (told := streams.told(found, look, by)) != state:
            state = told
            parts.append(state)
        if parts:
            lively = spoke = now
            yield "".join(parts)
        elif ended:
            yield event("end", {})
            return
        elif now - spoke > HEARTBEAT_S:
            spoke = now
            yield ": still here\n\n"
        await saying.wait(_LIVELY_POLL_S if is_lively else _POLL_S)


async def _new(page: PageRoutes, run: str, look: RunSnapshot, after: int) -> list[Event]:
    """Return new events in order: those of the store, and behind them what the run has not handed to it yet."""
    try:
        kept = await page.store.events.of_run(run, after=after, limit=_AT_ONCE)
    except BackstayError:
        return []
    return kept if len(kept) == _AT_ONCE else with_newest(kept, look.events, after)
