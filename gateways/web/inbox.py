"""The inbox: what waits for people over all runs, and what became of what waited before."""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.titles import title_of
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.words import line
from store.notices.requests import RequestRow

MOST_WORDS = 200
"""How many characters of a search are looked at."""
PAGE_ROWS = 50
KINDS = tuple(kind.value for kind in RequestKind)


class Filter(NamedTuple):
    """Hold which requests somebody wants to see."""

    words: str = ""
    kind: str = ""
    before: int | None = None

    @property
    def chosen(self) -> bool:
        """Return whether some are left out."""
        return bool(self.words or self.kind)

    def link(self, before: int) -> str:
        """Return what names the rows behind a position, in an address."""
        given = {"q": self.words, "kind": self.kind, "before": str(before)}
        return urlencode({name: value for name, value in given.items() if value})


class InboxRow(NamedTuple):
    """Hold what the inbox shows of a request."""

    row: RequestRow
    title: str
    tools: str
    arguments: str
    """The arguments of its first call, so that people can tell requests apart."""
    alike: int
    """How many requests are open about the very same calls, with this one; 0 where they cannot be decided at once."""
    people: list[str]
    """Who else is looking at it."""
    irrevocable: str
    """How much of it cannot be undone, in words; empty where all can."""


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of the inbox.

    A program gets the requests as they are on the wire, with where they belong and what became of them.
    """

    async def inbox(request: Request, visitor: Visitor) -> Response:
        rows, about = await _page_of(page, request, visitor)
        count = await page.store.requests.count_open(page.seeing.only(visitor.by))
        if is_for_programs(request.scope):
            return page.json(visitor, {"open": count, **_wired(rows)})
        shown = await inbox_rows(page, visitor, rows[:PAGE_ROWS])
        return page.render(request, visitor, "inbox.html", rows=shown, count=count, **about)

    async def decided(request: Request, visitor: Visitor) -> Response:
        rows, about = await _page_of(page, request, visitor, closed=True)
        if is_for_programs(request.scope):
            return page.json(visitor, _wired(rows))
        titles = [title_of(ApprovalRequest.model_validate(row.request)) for row in rows[:PAGE_ROWS]]
        return page.render(request, visitor, "decided.html", rows=rows[:PAGE_ROWS], titles=titles, **about)

    return [page.get("/", inbox), page.get("/requests", inbox), page.get("/decided", decided)]


async def _page_of(
    page: PageRoutes, request: Request, visitor: Visitor, *, closed: bool = False
) -> tuple[list[RequestRow], dict[str, Any]]:
    """Return the requests that an address asks for, with one more if there are more, and the words about them."""
    wanted = filter_of(request)
    seen_by = page.seeing.only(visitor.by)
    rows = await page.store.requests.page(closed=closed, **wanted._asdict(), seen_by=seen_by, limit=PAGE_ROWS + 1)
    more = wanted.link(rows[PAGE_ROWS - 1].position) if len(rows) > PAGE_ROWS else ""
    return rows, {"wanted": wanted, "more": more, "kinds": KINDS, "now": time.time()}


def filter_of(request: Request) -> Filter:
    """Return which requests an address asks for; anything that is not a filter is left out."""
    given = request.query_params
    kind, before = given.get("kind", ""), given.get("before", "")
    return Filter(
        words=given.get("q", "")[:MOST_WORDS],
        kind=kind if kind in KINDS else "",
        before=int(before) if before.isascii() and before.isdecimal() and len(before) < 18 else None,
    )


async def inbox_rows(page: PageRoutes, visitor: Visitor, rows: Sequence[RequestRow]) -> list[InboxRow]:
    """Return open requests as the inbox shows them; it asks the store, and no run."""
    alike = await page.store.requests.count_alike([row.alike for row in rows], page.seeing.only(visitor.by))
    looking = await page.store.looks.people([(row.workflow_id, row.request_id) for row in rows])
    return [
        InboxRow(
            row=row,
            title=title_of(ApprovalRequest.model_validate(row.request)),
            tools=", ".join(dict.fromkeys(str(call.get("tool", "")) for call in row.request.get("calls", ()))),
            arguments=_arguments(row.request.get("calls", ())),
            alike=alike.get(row.alike, 0),
            people=[who for who in looking.get((row.workflow_id, row.request_id), []) if who != visitor.by],
            irrevocable=_irrevocable(row.request.get("calls", ())),
        )
        for row in rows
    ]


def _arguments(calls: Sequence[dict[str, Any]]) -> str:
    first = calls[0].get("arguments", {}) if calls else {}
    return ", ".join(f"{name}: {line(value, 80)}" for name, value in list(first.items())[:4])


def _irrevocable(calls: Sequence[dict[str, Any]]) -> str:
    """Say how many of the calls that change something cannot be undone."""
    writes = [call for call in calls if call.get("safety") != "read_only"]
    stay = sum(not call.get("undoable") for call in writes)
    partly = f"{stay} of {len(writes)} calls cannot be undone" if stay else ""
    return "cannot be undone" if stay and stay == len(writes) else partly


def _wired(rows: Sequence[RequestRow]) -> dict[str, Any]:
    """Return requests for a program, and the position behind which the next ones begin; null at the end."""
    following = rows[PAGE_ROWS - 1].position if len(rows) > PAGE_ROWS else None
    return {"requests": [wire(row) for row in rows[:PAGE_ROWS]], "before": following}


def wire(row: RequestRow) -> dict[str, Any]:
    """Return a request as programs read it: what was asked, in which run, and what became of it."""
    return {
        "workflow_id": row.workflow_id,
        "run_id": row.run_id,
        "state": row.state,
        "decision": None if row.decision is None else row.decision.plain(),
        "request": row.request,
    }
