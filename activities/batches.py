"""Make several calls in one activity, and record what became of each as soon as it is known."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import structlog
from temporalio import activity

from activities.interruptions import Interruption, at_once
from activities.resources import Activities, Resources
from activities.retrying import implements, is_retry
from activities.telemetry.calls import call_span
from activities.tools.tools import Tools
from backstay import calls
from backstay.errors import StoreUnavailable
from backstay.requests import CallTool
from backstay.task.event import Event, as_drafts
from backstay.tools.tool import ToolResult

SOON_S = 0.05
"""Within this time outcomes are recorded; those of quick calls that end at about the same time share a transaction."""

_log = structlog.get_logger("backstay.activities")

Found = dict[int, ToolResult]
"""What calls led to, by their places; a call that was not made has no entry."""


class Batches(Activities):
    """Implement `call_together`, and make the calls of other activities that make several."""

    def __init__(self, resources: Resources, tools: Tools) -> None:
        """Use the body of `call_tool`."""
        super().__init__(resources)
        self.tools = tools

    @implements(calls.call_together)
    async def call_together(self, ask: calls.CallTogether) -> calls.CallOutcomes:
        """Make reads at the same time; calls that cannot be made now are left to the workflow.

        A later attempt, such as after a worker was lost, makes only the reads of which no outcome is recorded.
        """
        await self.begin(ask)
        ask = ask.model_copy(update={"events": (), "numbered": (), "decisions": ()})
        # Looked at once for all of them.
        await self.records.secrets.of(ask.run)
        found = await self._recorded(ask) if is_retry() else {}
        interruption = Interruption(at_once)
        async with self._recording(ask, found) as ended:
            making = self.each_made(calls_of(ask), found, interruption, lets_go=True, ended=ended)
            await interruption.wait_for(asyncio.ensure_future(making))
        return calls.CallOutcomes(results=tuple(found.get(place) for place in range(len(ask.calls))))

    async def each_made(
        self,
        inner: Sequence[CallTool],
        found: Found,
        interruption: Interruption,
        *,
        lets_go: bool,
        ordered: Collection[int] = (),
        ended: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Make calls at the same time, but for those that are ordered; each of them is waited for.

        A call that fails leaves no outcome where the activity `lets_go` of it; otherwise its fault is raised. `ended`
        hears of each outcome.
        """
        left = [place for place in range(len(inner)) if place not in found]
        tasks = [
            asyncio.ensure_future(
                self._made_in_turn(
                    {place: inner[place] for place in places}, found, interruption, ended, lets_go=lets_go
                )
            )
            for places in _chains(inner, left, ordered)
        ]
        while not all(task.done() for task in tasks):
            try:
                await asyncio.wait(tasks)
            except asyncio.CancelledError:
                for task in tasks:
                    task.cancel()
        for task in tasks:
            if not task.cancelled():
                task.result()

    async def _made_in_turn(
        self,
        some: Mapping[int, CallTool],
        found: Found,
        interruption: Interruption,
        ended: Callable[[int], None],
        *,
        lets_go: bool,
    ) -> None:
        """Make calls one after the other; those that wait for one without an end are not made."""
        for place, call in some.items():
            if await interruption.lets_go():
                return
            try:
                with call_span(call) as note:
                    found[place] = await self.tools.performed(call)
                    note(found[place])
            except Exception as error:
                if not lets_go:
                    raise
                # The call is made again by itself, and there waits, or is told, as every call.
                _log.warning("call.put_off", tool=call.tool, kind=type(error).__name__)
                return
            ended(place)
            if _goes_on(found[place]):
                # A call that waits for it is made by itself, after it.
                return

    async def _recorded(self, ask: calls.CallTogether) -> Found:
        """Return the outcomes that an earlier attempt of this activity has recorded."""
        kept = await self.store.events.outcomes(ask.run, [call.draft for call in ask.calls])
        here = _this_activity()
        results = [kept.get(call.draft, {}) for call in ask.calls]
        return {
            place: ToolResult.model_validate(result["result"])
            for place, result in enumerate(results)
            # After a reset, the numbers of drafts come again.
            if result.get("activity") == here
        }

    @asynccontextmanager
    async def _recording(self, ask: calls.CallTogether, found: Found) -> AsyncGenerator[Callable[[int], None]]:
        """Record the outcomes of calls, with their events, while the block runs and at its end."""
        left: list[int] = []
        something, over = asyncio.Event(), asyncio.Event()

        def ended(place: int) -> None:
            left.append(place)
            something.set()

        async def record() -> None:
            while left:
                some = left.copy()
                await self._record(ask, {place: found[place] for place in some})
                del left[: len(some)]

        async def go_on() -> None:
            while await something.wait() and not over.is_set():
                something.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), SOON_S)
                # A store that cannot be written to now may be there at the end.
                with suppress(StoreUnavailable):
                    await record()

        recording = asyncio.ensure_future(go_on())
        try:
            yield ended
        finally:
            over.set()
            something.set()
            await asyncio.wait([recording])
        recording.result()
        await record()

    async def _record(self, ask: calls.CallTogether, found: Found) -> None:
        """Write the events of calls, and what became of the calls for the next attempt."""
        told: dict[int, list[Event]] = {place: drafts_of(ask.calls[place], result) for place, result in found.items()}
        outcomes = {
            ask.calls[place].draft: {
                "activity": _this_activity(),
                "result": found[place].model_dump(mode="json", exclude_unset=True),
            }
            for place, drafts in told.items()
            if drafts
        }
        await self.tell(ask, [draft for drafts in told.values() for draft in drafts], outcomes)


def calls_of(ask: calls.CallTogether) -> list[CallTool]:
    """Return the calls of an activity as if each were made by itself, with the decisions that permit them."""
    return [ask.shared_with(call).model_copy(update={"decisions": ask.decisions}) for call in ask.calls]


def drafts_of(call: CallTool, result: ToolResult | None) -> list[Event]:
    """Return the events of a call that is over, as the activity leaves them in the store."""
    if result is None or result.question is not None or result.task is not None or result.untold:
        return []
    return as_drafts(call.happened(result), call.draft)


def _this_activity() -> str:
    """Return what names this activity, whatever the attempt."""
    info = activity.info()
    return f"{info.workflow_run_id}/{info.activity_id}"


def _goes_on(result: ToolResult) -> bool:
    """Return whether people are asked before the call is made, or its server works on it, so that it is not over."""
    return result.question is not None or result.task is not None or result.error_type == "ToolChanged"


def _chains(inner: Sequence[CallTool], places: Iterable[int], ordered: Collection[int]) -> list[list[int]]:
    """Return the places of calls that are made one after the other, in their order."""
    chains: dict[Any, list[int]] = {}
    for place in places:
        chains.setdefault(inner[place].tool.partition(".")[0] if place in ordered else place, []).append(place)
    return list(chains.values())
