"""Look at one run: what the store has of it and, while it is open, what the run itself says."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RecordedDecision
from backstay.client import Run
from backstay.errors import ArgumentsInvalid, BackstayError, RunNotFound, Transient
from backstay.responses import RunAbove
from backstay.task.event import Event
from backstay.task.status import Status
from people.runs.finding import KnownRun, RunSources
from people.runs.undoing import undo_of
from store.effects.types import EffectRow
from store.notices.requests import RequestRow
from store.runs.plans import KeptPlan
from store.runs.runs import RunRow
from store.store import Store

PLAN_CHANGED = "plan.changed"
FIRST_LATE = 1_000_000_000
"""Events with such numbers came after the outcome of their call was settled; they stand outside the count."""
MOST_EVENTS = 300
MOST_EFFECTS = 100
_LOOK_S = 8.0
"""How long the answers of an open run may take; then it is shown as the store knows it."""


@dataclass
class RunView:
    """Hold what is known of a run at one moment."""

    found: KnownRun
    events: list[Event] = field(default_factory=list[Event])
    earlier_events: bool = False
    """Whether there are events before those."""
    effects: list[EffectRow] = field(default_factory=list[EffectRow])
    arguments: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    """What the newest effects were called with, in short, by their numbers."""
    parked: set[int] = field(default_factory=set[int])
    """The effects whose undo failed, as far as the store knows."""
    requests: list[RequestRow] = field(default_factory=list[RequestRow])
    decisions: Sequence[RecordedDecision] = ()
    kept_plans: Sequence[KeptPlan] = ()
    before: Sequence[RunRow] = ()
    after: Sequence[RunRow] = ()
    above: Sequence[RunAbove] = ()
    """The runs that have delegated to this one, the first of them first."""
    subruns: Sequence[RunRow] = ()
    """The sub-runs that this one has delegated to, as far as they have begun."""
    status: Status | None = None
    """None for a run that did not answer, and for one that has ended and was not asked."""
    budget: dict[str, Any] = field(default_factory=dict[str, Any])
    plans: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """By id, as the run itself tells how far they are."""
    undo: dict[str, Any] = field(default_factory=dict[str, Any])
    result: dict[str, Any] | None = None
    failure: BackstayError | None = None
    """Why a run ended without a Result."""
    undoing: bool = False
    """Whether an undo after the end is under way."""
    fault: str = ""
    """Why an open run is shown as the store knows it."""

    @property
    def pending(self) -> Sequence[ApprovalRequest]:
        """Return what waits for people, as the run says or, where it does not answer, as the store has it."""
        if self.status is not None:
            return self.status.pending
        return [ApprovalRequest.model_validate(row.request) for row in self.requests if row.state == "open"]


async def look(
    sources: RunSources,
    found: KnownRun,
    by: str,
    *,
    before: int | None = None,
    most_events: int = MOST_EVENTS,
    whole: bool = False,
) -> RunView:
    """Return what is known of a run, with those of its requests that a person may see.

    `before`: only events with lower numbers. `whole`: a run that has ended is asked, too, and what the store at hand
    does not have is read through the run.
    """
    seen = RunView(found, fault=found.fault)
    if sources.store is not None and found.row is not None:
        await _from_store(sources.store, seen, found.row, before, most_events)
    if (found.is_open or (whole and found.execution is not None)) and not found.fault:
        run = sources.asked().run(found.workflow_id)
        try:
            async with asyncio.timeout(None if whole else _LOOK_S):
                if whole and found.row is None:
                    seen.events = await _read_through(run)
                await _from_run(run, seen, newest=before is None)
        except TimeoutError:
            seen.fault = "the run does not answer at the moment"
        except BackstayError as error:
            seen.fault = str(error)
    await _show_only_to(sources, seen, by)
    if not seen.undo or (found.row is not None and not found.is_open):
        # Only the store knows what was undone after the end of a run.
        seen.undo = await undo_of(sources, found)
    await _ended(sources, seen)
    return seen


def with_newest(kept: Sequence[Event], newest: Sequence[Event], after: int) -> list[Event]:
    """Return the events of the store behind a number in order, and behind them what the run has not handed to it yet.

    `newest`: the last events of the run, as it tells them itself.
    """
    last = max((event.n for event in kept if event.n < FIRST_LATE), default=after)
    fresh = [event for event in newest if event.n > last]
    # Without a gap only: the events between are on their way to the store.
    fresh = fresh if fresh and fresh[0].n == last + 1 else []
    return sorted([*kept, *fresh], key=lambda event: event.n)


async def _show_only_to(sources: RunSources, seen: RunView, by: str) -> None:
    """Leave out the requests, and the runs around this one, that a person may not see."""
    seeing = sources.seeing
    if seeing is None:
        return
    around = (seen.before, seen.after, seen.subruns)
    seen.before, seen.after, seen.subruns = [
        [row for row in rows if await seeing.run(by, row.run, row.user_id)] for rows in around
    ]
    seen.requests = [request for request in seen.requests if seeing.request(by, request)]
    if seen.status is not None:
        pending = tuple(asked for asked in seen.status.pending if seeing.asked(by, asked, seen.found.user_id))
        seen.status = seen.status.model_copy(update={"pending": pending})


async def _from_store(store: Store, seen: RunView, row: RunRow, before: int | None, most_events: int) -> None:
    last = await store.events.last(row.run, below=min(before or FIRST_LATE, FIRST_LATE))
    first = max(0, last - most_events)
    events = await store.events.of_run(row.run, after=first)
    seen.events = [event for event in events if event.n <= last or (before is None and event.n >= FIRST_LATE)]
    seen.earlier_events = first > 0
    seen.effects = await store.effects.of_run(row.run)
    seen.effects += await store.effects.taken_over(row.run)
    newest = [effect for effect in seen.effects if not effect.undo][-MOST_EFFECTS:]
    seen.arguments = await store.subruns.arguments_of(newest)
    seen.parked = await store.parked.of_run(row.run)
    for asking in (row.workflow_id, seen.found.undo_id):
        seen.requests += await store.requests.of_workflow(asking, run=row.run)
    seen.decisions = await store.decisions.of_run(row.run)
    seen.kept_plans = await store.plans.of_run(row.run)
    seen.before = (await store.runs.earlier(row))[:-1]
    seen.after = await store.runs.later(row.run)
    seen.result = row.result
    seen.above = tuple(RunAbove.model_validate(above) for above in row.opened.get("above", ()))
    begun = [child.run.rpartition("/") for child in await store.subruns.children(row.run) if child.run is not None]
    rows = [await store.runs.get(workflow_id, run_id) for workflow_id, _, run_id in begun]
    seen.subruns = [child for child in rows if child is not None]


async def _read_through(run: Run) -> list[Event]:
    with contextlib.suppress(ArgumentsInvalid, RunNotFound):
        return [event async for event in run.stored_events()]
    return []


async def _from_run(run: Run, seen: RunView, *, newest: bool) -> None:
    seen.status = await run.status()
    seen.budget = await run.budget()
    seen.undo = await run.preview()
    if newest:
        known = max((event.n for event in seen.events if event.n < FIRST_LATE), default=0)
        # The records that the run has not handed to the store yet.
        seen.events += [event for event in (await run.timeline(known)).events if event.n > known]
    last = await run.plan()
    changed = [str(event.data["plan"]) for event in seen.events if event.name == PLAN_CHANGED]
    names = [kept.plan.id for kept in seen.kept_plans] + changed
    names += [] if last is None else [str(last["plan"]["id"])]
    for name in dict.fromkeys(names):
        shown = last if last is not None and last["plan"]["id"] == name else await run.plan(name)
        if shown is not None:
            seen.plans[name] = shown


async def _ended(sources: RunSources, seen: RunView) -> None:
    """Add how a run ended that left no Result in the store, and whether somebody undoes it now."""
    found = seen.found
    if found.is_open or found.fault or found.is_older:
        return
    backstay = sources.asked()
    try:
        seen.undoing = (await backstay.execution(found.undo_id)).is_open
    except BackstayError:
        seen.undoing = False
    if seen.result is not None or found.execution is None:
        return
    try:
        async with asyncio.timeout(_LOOK_S):
            seen.result = (await backstay.run(found.workflow_id).result()).plain()
    except TimeoutError:
        seen.fault = "the run does not answer at the moment"
    except Transient as error:
        seen.fault = str(error)
    except BackstayError as error:
        seen.failure = error
