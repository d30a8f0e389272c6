"""The command `list`: what runs there are."""

import asyncio
import contextlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

from temporalio.client import Client
from temporalio.service import RPCError

from backstay.client.executions import CLOSED, OPEN, RUNS, Execution, listed
from backstay.errors import SettingsInvalid, StoreUnavailable, StoreUnusable, Unreachable
from backstay.settings import Settings
from backstay.shown import one_line
from gateways.terminal.flags import Limit, Output
from gateways.terminal.session import looking, open_store, require_store, session
from gateways.terminal.terminal import Terminal

_UUID_TAIL = re.compile(r"(?<=[0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
_DEEPEST = 3
"""How deep a tree of runs may be."""
_LOOKED_AT = 100
"""How many open and how many closed runs are looked at, so that the newest are found."""


async def list_runs(*, state: str = "", words: str = "", limit: Limit = 20, output: Output = "text") -> None:
    """List the newest runs, from Temporal or, when it cannot be reached, from the store.

    Parameters
    ----------
    state
        Only runs in that state or with that outcome, such as waiting or failed.
    words
        Only runs with these words in their text, id, user or session.
    limit
        The most runs to list.
    """
    settings, terminal = Settings.load(), Terminal()
    wanted = _wanted(state)
    chosen = bool(state or words)
    # Commands find a run by the beginning of its id where Temporal knows it; the store lists older ones as well.
    known = not chosen
    try:
        rows = await (_chosen(settings, wanted, words, limit) if chosen else _newest(settings, limit))
    except Unreachable as error:
        if not settings.has_store:
            raise
        terminal.say(f"{error}; shown from the store", "yellow")
        known = False
        async with open_store(settings) as store:
            rows = [_stored(row) for row in await store.runs.page(state=wanted, words=words, limit=limit)]
    # A run that a schedule or a plugin has started is part of no other run.
    listed = {row["id"] for row in rows}
    rows = list(_as_tree([row | {"part_of": row["part_of"] if row["part_of"] in listed else None} for row in rows]))
    ids: list[str] = [row["id"] for row in rows]
    names = _short_ids(ids) if known else {each: each for each in ids}
    terminal.results(output, rows, [_line(row, names[row["id"]]) for row in rows])
    if not rows and output == "text":
        terminal.say("no run fits" if chosen else "no runs yet; start one with: backstay run TEXT")


def _wanted(state: str) -> Any:
    """Return the state by which the store finds runs; raises SettingsInvalid for one that there is not."""
    if state in ("", "all"):
        return "all"
    from store.runs.runs import RunFilter

    known = get_args(RunFilter)
    if state not in known:
        raise SettingsInvalid(f"--state: {one_line(state, 40)!r} is none of {', '.join(known)}")
    return state


async def _newest(settings: Settings, limit: int) -> list[dict[str, Any]]:
    async with looking(settings) as client:
        rows = await _visible(client, limit)
    await _mark_pruned(settings, rows)
    return rows


async def _chosen(settings: Settings, state: Any, words: str, limit: int) -> list[dict[str, Any]]:
    """Return the runs that fit, as the store finds them, with what Temporal says of those that are open."""
    from people.runs.listing import list_page

    async def sees_all(_run: str, _user: str) -> bool:
        return True

    require_store(settings)
    async with session(settings) as backstay, open_store(settings) as store:
        found = await list_page(backstay, store, sees_all, state=state, words=words, limit=limit)
    if found.fault:
        raise Unreachable(found.fault)
    return [
        {
            "id": run["workflow_id"],
            "run_id": run["run_id"],
            "state": run["state"],
            "pending": run["waiting"],
            "started": minute(run["started_at"]),
            "text": run["text"],
            "part_of": run["part_of"],
        }
        for run in found.runs[:limit]
    ]


async def _visible(client: Client, limit: int) -> list[dict[str, Any]]:
    # Temporal lists all open runs before the closed ones, which it sorts by their end.
    found = [
        execution
        for which in (OPEN, CLOSED)
        async for execution in listed(client, f"({RUNS}) AND {which}", max(limit, _LOOKED_AT))
    ]
    found = sorted(found, key=lambda execution: execution.started_at, reverse=True)[:limit]
    return list(await asyncio.gather(*(_row(client, execution) for execution in found)))


async def _row(client: Client, execution: Execution) -> dict[str, Any]:
    text: str | None = execution.task
    if not text:
        handle = client.get_workflow_handle(execution.workflow_id, run_id=execution.first_run_id)
        with contextlib.suppress(RPCError, ValueError):  # the list is useful without the text
            text = await (await handle.describe()).static_summary()
    return {
        "id": execution.workflow_id,
        "run_id": execution.first_run_id,
        "state": await _state(client, execution),
        "pending": execution.waiting if execution.is_open else 0,
        "started": minute(execution.started_at),
        "text": text or "",
        "part_of": execution.parent_id,
    }


async def _state(client: Client, execution: Execution) -> str:
    """Return where a run stands; to Temporal every run that ended by itself is completed, whatever its outcome."""
    status = execution.status
    if execution.is_open:
        return execution.state or status
    if status != "completed":
        return status
    handle = client.get_workflow_handle(execution.workflow_id, run_id=execution.first_run_id)
    with contextlib.suppress(Exception):  # a result that cannot be read takes nothing from the list
        result: Any = await handle.result(follow_runs=False)
        return str(result.get("outcome") or status) if isinstance(result, dict) else status
    return status


def _stored(row: Any) -> dict[str, Any]:
    return {
        "id": row.workflow_id,
        "run_id": row.workflow_run_id,
        "state": _stored_state(row),
        "pending": 0,
        "started": minute(row.opened_at),
        "text": row.text,
        "part_of": row.part_of,
    }


def _stored_state(row: Any) -> str:
    if row.pruned_at:
        return "pruned"
    return row.result["outcome"] if row.result else row.state


async def _mark_pruned(settings: Settings, rows: list[dict[str, Any]]) -> None:
    """Add what only the store knows; a store that does not answer takes nothing from what Temporal says."""
    from store.glance import pruned_among

    if not rows or not settings.has_store:
        return
    if settings.database_url is None:
        runs = {f"{row['id']}/{row['run_id']}": row for row in rows}
        pruned = await asyncio.to_thread(pruned_among, settings.home / "backstay.db", runs)
        for run in pruned or ():
            runs[run]["state"] = "pruned"
        if pruned is not None:
            return
    with contextlib.suppress(StoreUnavailable, StoreUnusable):
        async with open_store(settings) as store:
            recorded = [await store.runs.get(row["id"], row["run_id"]) for row in rows]
        for row, known in zip(rows, recorded, strict=True):
            if known is not None and known.pruned_at is not None:
                row["state"] = "pruned"


def minute(at: float) -> str:
    """Return a time as it is in lists."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _as_tree(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield runs, given the newest first, each sub-run once and below the run that delegated it, if that is there."""
    places, below = defaultdict[str, list[int]](list), defaultdict[int | None, list[int]](list)
    for place, row in enumerate(rows):
        places[row["id"]].append(place)
    for place, row in enumerate(rows):
        below[_parent_of(place, places[row["part_of"]] if row["part_of"] else ())].append(place)

    def branch(parent: int | None, depth: int) -> Iterator[dict[str, Any]]:
        for place in below[parent] if depth <= _DEEPEST else ():
            yield rows[place] | {"depth": depth}
            yield from branch(place, depth + 1)

    yield from branch(None, 0)


def _parent_of(place: int, named: Sequence[int]) -> int | None:
    """Return which of the runs with the workflow ID of the parent it is: the newest that began before the sub-run.

    A parent that was continued is listed as of its last part, which may have begun later.
    """
    before = [other for other in named if other > place]
    later = [other for other in reversed(named) if other < place]
    return next(iter(before + later), None)


def _line(row: dict[str, Any], name: str) -> str:
    waits = f"{row['pending']} waiting" if row["pending"] else ""
    branch = f"{'   ' * (row['depth'] - 1)}└─ " if row["depth"] else ""
    return f"{row['started']}  {row['state']:<10} {waits:<10} {branch}{name}  {row['text']}"


def _short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Return each id without the tail of its UUID, which every command finds by; whole where two begin alike."""
    cut = {each: _UUID_TAIL.sub("", each) for each in ids}
    alike = Counter(cut.values())
    return {each: short if alike[short] == 1 else each for each, short in cut.items()}
