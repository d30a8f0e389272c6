"""List runs: what is open at Temporal, and every run that the store knows, found by state and words."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from backstay.client import Backstay
from backstay.client.executions import Execution
from backstay.errors import BackstayError, RunNotFound
from store.runs.runs import RunFilter, RunRow
from store.store import Store

MOST_LOOKED_AT = 600
"""How many runs are looked at for one page, for people who see only some of them."""
_MOST_OPEN = 200
_MOST_MISSING = 30
"""How many runs that are missing among the open ones Temporal is asked about by name, for one page."""
ListedRun = dict[str, Any]
"""One run in a list; `older` says whether a newer run has its workflow ID."""
Position = tuple[float, str]
"""When a run was opened, and its name."""
MaySee = Callable[[str, str], Awaitable[bool]]
"""Tells whether a person may see the run of that name, of that user."""


class RunPage(NamedTuple):
    """Hold one page of a list."""

    runs: list[ListedRun]
    last: RunRow | None
    """The run behind which the next page begins; None at the end."""
    fault: str
    """Why Temporal did not answer, if it did not."""


async def list_page(
    backstay: Backstay,
    store: Store,
    may_see: MaySee,
    *,
    state: RunFilter = "all",
    words: str = "",
    user_id: str | None = None,
    named: str = "",
    before: Position | None = None,
    limit: int,
) -> RunPage:
    """Return the runs of a page, the newest first; raises StoreUnavailable.

    `user_id`, `named`: only the runs of that user, and those whose workflow ID begins so, wherever they stand among
    others; whose a run is that no worker has begun, only `may_see` tells. Of these, the newest open runs are looked at.
    """
    open_now, fault = await _open_now(backstay, named)
    rows_before = partial(store.runs.page, state=state, words=words, user_id=user_id, named=named)
    rows, last = await _seen_rows(rows_before, may_see, before, limit=limit)
    known = {run.workflow_id: run for run in open_now}
    is_complete = not fault and len(known) < _MOST_OPEN
    ends = _Ends(backstay, store, _MOST_MISSING if is_complete else 0)
    runs = [await _listed(store, row, known.get(row.workflow_id), ends) for row in rows]
    if before is None and state in ("all", "open") and not words:
        runs = await _not_begun(store, may_see, open_now, {run["workflow_id"] for run in runs}) + runs
    return RunPage(runs, last, fault)


class _Ends:
    """Know which runs have ended that are open in the store and missing among Temporal's: its list comes late."""

    def __init__(self, backstay: Backstay, store: Store, most: int) -> None:
        """Ask Temporal about `most` runs at most, and about none once it does not answer."""
        self._backstay = backstay
        self._store = store
        self._left = most

    async def has_ended(self, row: RunRow) -> bool:
        """Return whether a run is known to have ended without its saying so."""
        if row.lost_at is not None:
            return True
        if not self._left:
            return False
        self._left -= 1
        try:
            newest = await self._backstay.execution(row.workflow_id)
        except RunNotFound:
            return True
        except BackstayError:
            self._left = 0
            return False
        # Where Temporal does not tell which execution was the first one, the store does.
        known = await self._store.runs.get(row.workflow_id, newest.first_run_id)
        is_same = row.run in {f"{row.workflow_id}/{newest.first_run_id}", known and known.run}
        return not (newest.is_open and is_same)


async def _seen_rows(
    rows_before: Callable[..., Awaitable[list[RunRow]]], may_see: MaySee, before: Position | None, *, limit: int
) -> tuple[list[RunRow], RunRow | None]:
    """Return the runs of a page that a person may see, and the one behind which the next page begins."""
    found: list[RunRow] = []
    looked_at = 0
    while True:
        rows = await rows_before(before=before, limit=limit + 1)
        found += [row for row in rows if await may_see(row.run, row.user_id)]
        looked_at += len(rows)
        if len(found) > limit:
            return found[:limit], found[limit - 1]
        if len(rows) <= limit:
            return found, None
        if looked_at >= MOST_LOOKED_AT:
            return found, rows[-1]
        before = (rows[-1].opened_at, rows[-1].run)


async def _open_now(backstay: Backstay, named: str) -> tuple[list[Execution], str]:
    """Return what is open at Temporal, and why that is not known, if it is not."""
    try:
        return await backstay.open_runs(_MOST_OPEN, named), ""
    except BackstayError as error:
        return [], str(error)


async def _not_begun(store: Store, may_see: MaySee, open_now: list[Execution], known: set[str]) -> list[ListedRun]:
    """Return open runs that the store does not know: no worker has begun them yet."""
    found: list[ListedRun] = []
    for run in open_now:
        if run.kind != "RunTask" or run.workflow_id in known:
            continue
        # Whether a person may see it comes first: the store is asked about none of those who must not.
        name = f"{run.workflow_id}/{run.first_run_id}"
        if await may_see(name, run.user_id) and await store.runs.get(run.workflow_id) is None:
            user, at = run.user_id, run.started_at
            found.append(_run(run.workflow_id, run.first_run_id, user_id=user, started_at=at, state="not begun"))
    return found


async def _is_older(store: Store, row: RunRow) -> bool:
    newest = await store.runs.get(row.workflow_id)
    return newest is not None and newest.run != row.run


async def _listed(store: Store, row: RunRow, now: Execution | None, ends: _Ends) -> ListedRun:
    """Return a run as it is listed; `now`: what is open at Temporal under its name."""
    older = await _is_older(store, row)
    if now is not None and now.first_run_id != row.workflow_run_id:
        # The store knows each execution of a run that has continued as new, but for the newest at its very beginning.
        begun = await store.runs.get(row.workflow_id, now.first_run_id)
        is_same = not older if begun is None else begun.run == row.run
        now = now if is_same else None
    is_silent = now is None and row.state == "open" and row.result is None and row.pruned_at is None
    return _of_row(row, now, has_stopped=is_silent and await ends.has_ended(row), older=older)


def _of_row(row: RunRow, now: Execution | None, *, has_stopped: bool, older: bool) -> ListedRun:
    state, waiting = row.state, 0
    if row.pruned_at is not None:
        state = "pruned"
    elif row.result is not None:
        state = str(row.result.get("outcome", "ended"))
    elif now is not None:
        # Without search attributes Temporal only says that it is open.
        state, waiting = now.state or "open", now.waiting
    elif has_stopped:
        state = "stopped"
    usage = (row.result or {}).get("usage", {})
    cost = usage.get("llm_cost_usd")
    return _run(
        row.workflow_id,
        row.workflow_run_id,
        user_id=row.user_id,
        started_at=row.opened_at,
        state=state,
        text=row.text,
        session_id=row.session_id,
        waiting=waiting,
        ended_at=row.closed_at,
        cost_usd=None if cost is None else float(cost),
        older=older,
        part_of=row.part_of,
    )


def _run(workflow_id: str, run_id: str, *, user_id: str, started_at: float, state: str, **more: Any) -> ListedRun:
    unknown = {"text": "", "session_id": None, "waiting": 0, "ended_at": None, "cost_usd": None, "older": False}
    unknown["part_of"] = None
    named = {"workflow_id": workflow_id, "run_id": run_id, "user_id": user_id, "started_at": started_at}
    return unknown | named | {"state": state} | more
