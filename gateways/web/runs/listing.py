"""List runs: what is open at Temporal, and every run that the store knows, found by state and words."""

import secrets
import time
from typing import Any, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.client.executions import Execution
from backstay.errors import ArgumentsInvalid, BackstayError
from backstay.shown import one_line
from gateways.web.guard import API, is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import Page
from people.runs.words import OUTCOMES, tone_of
from store.runs.runs import RunFilter, RunRow

_ROWS = 30
_MOST_OPEN = 200
_MOST_LOOKED_AT = 600
"""How many runs are looked at for one page, for people who see only some of them."""
_STATES: tuple[RunFilter, ...] = get_args(RunFilter)


Listed = dict[str, Any]
"""One run in a list; `state` is in the words of the page."""
_OURS = frozenset({"tone", "older"})
"""What programs are not told: how it looks."""


def routes(page: Page) -> list[BaseRoute]:
    """Return the route of the list."""

    async def listed(request: Request, visitor: Visitor) -> Response:
        state, words = _asked(request)
        before = _before(request.query_params.get("before", ""))
        open_now, fault = await _open_now(page)
        rows, last = await _seen_rows(page, visitor, state, words, before)
        known = {(run.workflow_id, run.first_run_id): run for run in open_now}
        runs = [_of_row(row, known, fault=bool(fault), older=await _is_older(page, row)) for row in rows]
        if before is None and state in ("all", "open") and not words:
            runs = await _not_begun(page, visitor, open_now, {run["workflow_id"] for run in runs}) + runs
        following = None if last is None else _address(state, words, last)
        if is_for_programs(request.scope):
            link = None if following is None else f"{API}/runs?{following}"
            return page.json(visitor, {"runs": list(map(_plain, runs)), "next": link})
        return page.render(
            request,
            visitor,
            "runs/list.html",
            runs=runs,
            state=state,
            words=words,
            states=[(name, OUTCOMES.get(name, name)) for name in _STATES],
            next=None if following is None else f"/runs?{following}",
            may_start=page.may_start(visitor),
            once=secrets.token_hex(12),
            most=_MOST_LOOKED_AT,
            first=before is None,
            fault=fault,
            now=time.time(),
        )

    return [page.get("/runs", listed)]


def _asked(request: Request) -> tuple[RunFilter, str]:
    state = request.query_params.get("state", "") or "all"
    if state not in _STATES:
        raise ArgumentsInvalid(f"state: {one_line(state, 40)!r} is none of {', '.join(_STATES)}")
    return next(name for name in _STATES if name == state), request.query_params.get("words", "")[:300].strip()


def _before(given: str) -> tuple[float, str] | None:
    """Return the run behind which a page begins; raises ArgumentsInvalid."""
    if not given:
        return None
    at, _, run = given.partition(" ")
    try:
        return float(at), run
    except ValueError:
        raise ArgumentsInvalid("before: take it from the link of the page before") from None


def _address(state: RunFilter, words: str, last: RunRow) -> str:
    asked = {"state": state, "words": words, "before": f"{last.opened_at!r} {last.run}"}
    return urlencode({name: value for name, value in asked.items() if value and value != "all"})


async def _seen_rows(
    page: Page, visitor: Visitor, state: RunFilter, words: str, before: tuple[float, str] | None
) -> tuple[list[RunRow], RunRow | None]:
    """Return the runs of a page that the visitor may see, and the one behind which the next page begins."""
    found: list[RunRow] = []
    looked_at = 0
    while True:
        rows = await page.store.runs.page(state=state, words=words, before=before, limit=_ROWS + 1)
        found += [row for row in rows if await page.seeing.run(visitor.by, row.run, row.user_id)]
        looked_at += len(rows)
        if len(found) > _ROWS:
            return found[:_ROWS], found[_ROWS - 1]
        if len(rows) <= _ROWS:
            return found, None
        if looked_at >= _MOST_LOOKED_AT:
            return found, rows[-1]
        before = (rows[-1].opened_at, rows[-1].run)


async def _open_now(page: Page) -> tuple[list[Execution], str]:
    """Return what is open at Temporal, and why that is not known, if it is not."""
    try:
        return await page.backstay.open_runs(_MOST_OPEN), ""
    except BackstayError as error:
        return [], str(error)


async def _not_begun(page: Page, visitor: Visitor, open_now: list[Execution], known: set[str]) -> list[Listed]:
    """Return open runs that the store does not know: no worker has begun them yet."""
    found: list[Listed] = []
    for run in open_now:
        if run.kind != "RunTask" or run.workflow_id in known or await page.store.runs.get(run.workflow_id) is not None:
            continue
        if await page.seeing.run(visitor.by, f"{run.workflow_id}/{run.first_run_id}", run.user_id):
            user, at = run.user_id, run.started_at
            found.append(_run(run.workflow_id, run.first_run_id, user_id=user, started_at=at, state="not begun"))
    return found


def _plain(run: Listed) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in _OURS}


async def _is_older(page: Page, row: RunRow) -> bool:
    newest = await page.store.runs.get(row.workflow_id)
    return newest is not None and newest.run != row.run


def _of_row(row: RunRow, known: dict[tuple[str, str], Execution], *, fault: bool, older: bool) -> Listed:
    now = known.get((row.workflow_id, row.workflow_run_id))
    state, waiting = row.state, 0
    if row.pruned_at is not None:
        state = "pruned"
    elif row.result is not None:
        state = str(row.result.get("outcome", "ended"))
    elif now is not None:
        # Without search attributes Temporal only says that it is open.
        state, waiting = now.state or "open", now.waiting
    elif row.state == "open" and not fault and len(known) < _MOST_OPEN:
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
    )


def _run(workflow_id: str, run_id: str, *, user_id: str, started_at: float, state: str, **more: Any) -> Listed:
    unknown = {"text": "", "session_id": None, "waiting": 0, "ended_at": None, "cost_usd": None, "older": False}
    shown = {"state": OUTCOMES.get(state, state), "tone": tone_of(state)}
    named = {"workflow_id": workflow_id, "run_id": run_id, "user_id": user_id, "started_at": started_at}
    return unknown | named | shown | more
