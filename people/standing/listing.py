"""List schedules and triggers: when they start runs, what those led to, and what is left of the day's budget."""

import asyncio
from collections.abc import Sequence
from typing import Any

from backstay.budgets.budget import MICRO
from backstay.client.schedules import Schedules, ScheduleTimes
from backstay.errors import Unreachable
from backstay.frozen import Frozen
from backstay.task.standing import Kind, StandingTask
from store.standing.starts import Start
from store.standing.tasks import KeptTask
from store.store import Store

LOST = "Temporal does not know this schedule any more; remove it, and add it again"


class ListedStart(Frozen):
    """Tell what came of one start."""

    at: float
    state: str
    """accepted | reserved | ended | refused."""
    told: str
    """How its run ended, or why none was started."""
    workflow_id: str
    """Of the run; empty where there is none."""
    cost_usd: float
    event: str = ""


class ListedTask(Frozen):
    """Tell of a schedule or a trigger."""

    kind: Kind
    name: str
    by: str
    line: str
    """What it starts."""
    when: str
    time_zone: str
    paused: str
    """Why nothing is started; empty where it is."""
    next: tuple[float, ...]
    missed: int
    skipped: int
    spent_usd: float
    """Spent or reserved on this day."""
    per_day_usd: float
    runs: int
    """Started on this day."""
    per_day_runs: int | None
    last: tuple[ListedStart, ...]
    fault: str = ""
    """Why the next times are not known."""


async def list_tasks(store: Store, schedules: Schedules, kind: Kind | None = None) -> list[ListedTask]:
    """Return the schedules and triggers of a store; a fact that Temporal cannot say is left out, with the reason."""
    kept = [found for found in await store.standing.every() if kind in {None, found.standing.kind}]
    return await asyncio.gather(*(_listed(store, schedules, found) for found in kept))


async def _listed(store: Store, schedules: Schedules, kept: KeptTask) -> ListedTask:
    standing, fault = kept.standing, ""
    times = ScheduleTimes()
    if standing.kind == "schedule":
        try:
            found = await schedules.times(standing.name)
            times, fault = (times, LOST) if found is None else (found, "")
        except Unreachable as error:
            fault = str(error)
    spent, runs = await store.starts.counted(standing)
    last = await store.starts.newest(standing.kind, standing.name)
    return ListedTask(
        kind=standing.kind,
        name=standing.name,
        by=standing.by,
        line=standing.line,
        when=when(standing),
        time_zone=standing.time_zone,
        paused=kept.paused or (times.note or "paused at Temporal" if times.paused else ""),
        next=times.next,
        missed=times.missed,
        skipped=times.skipped,
        spent_usd=spent / MICRO,
        per_day_usd=standing.per_day.max_llm_cost_usd,
        runs=runs,
        per_day_runs=standing.per_day.max_runs,
        last=_told(last),
        fault=fault,
    )


def when(standing: StandingTask) -> str:
    """Return in words when a run is started."""
    if standing.times is None:
        return "when it is sent something"
    if standing.times.cron is not None:
        return f"cron {standing.times.cron}"
    seconds: Any = standing.times.every or 0
    unit, size = next((pair for pair in (("d", 86_400), ("h", 3600), ("m", 60)) if seconds % pair[1] == 0), ("s", 1))
    return f"every {seconds / size:g}{unit}"


def _told(starts: Sequence[Start]) -> tuple[ListedStart, ...]:
    return tuple(
        ListedStart(
            at=start.at,
            state=start.state.value,
            told=start.told,
            workflow_id=start.run,
            cost_usd=start.micro / MICRO if start.state == "ended" else 0,
            event=start.event,
        )
        for start in starts
    )
