"""The list of runs, and what of it is asked for by its address."""

import secrets
import time
from functools import partial
from typing import Any, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.errors import ArgumentsInvalid
from backstay.shown import one_line
from gateways.links import Seals
from gateways.web.guard import API, is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from people.runs import listing
from people.runs.listing import ListedRun, Position, list_page
from people.runs.words import OUTCOMES, tone_of
from store.runs.runs import RunFilter, RunRow

_ROWS = 30
_STATES: tuple[RunFilter, ...] = get_args(RunFilter)
_POSITION = "position among runs"
_OURS = frozenset({"tone", "older"})
"""What programs are not told: how it looks."""


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the route of the list."""

    async def listed(request: Request, visitor: Visitor) -> Response:
        state, words = _asked(request)
        before = _before(page.seals, request.query_params.get("before", ""))
        seen = partial(page.seeing.run, visitor.by)
        found = await list_page(page.backstay, page.store, seen, state=state, words=words, before=before, limit=_ROWS)
        runs = [_worded(run) for run in found.runs]
        following = None if found.last is None else _address(page.seals, state, words, found.last)
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
            most=listing.MOST_LOOKED_AT,
            first=before is None,
            fault=found.fault,
            now=time.time(),
        )

    return [page.get("/runs", listed)]


def _asked(request: Request) -> tuple[RunFilter, str]:
    state = request.query_params.get("state", "") or "all"
    if state not in _STATES:
        raise ArgumentsInvalid(f"state: {one_line(state, 40)!r} is none of {', '.join(_STATES)}")
    return next(name for name in _STATES if name == state), request.query_params.get("words", "")[:300].strip()


def _before(seals: Seals, given: str) -> Position | None:
    """Return the run behind which a page begins; raises ArgumentsInvalid."""
    if not given:
        return None
    position = seals.hidden(_POSITION, given)
    if position is None:
        raise ArgumentsInvalid("before: take it from the link of the page before")
    opened_at, run = position
    return opened_at, run


def _address(seals: Seals, state: RunFilter, words: str, last: RunRow) -> str:
    # The last run that was looked at may be one of others, so nothing of it can be read in the address.
    asked = {"state": state, "words": words, "before": seals.hide(_POSITION, [last.opened_at, last.run])}
    return urlencode({name: value for name, value in asked.items() if value and value != "all"})


def _worded(run: ListedRun) -> ListedRun:
    """Return a run with its state in the words of the page, and the tone of it."""
    return run | {"state": OUTCOMES.get(run["state"], run["state"]), "tone": tone_of(run["state"])}


def _plain(run: ListedRun) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name not in _OURS}
