"""The inbox: what waits for people, over all runs."""

import time
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from gateways.web.identity import Visitor
from gateways.web.page import Page, wants_json
from store.notices.requests import RequestRow

MOST_WORDS = 200
"""How many characters of a search are looked at."""


def routes(page: Page) -> list[BaseRoute]:
    """Return the routes of the inbox.

    A program gets the requests as they stand on the wire, with where they belong and what became of them.
    """

    async def inbox(request: Request, visitor: Visitor) -> Response:
        words = request.query_params.get("q", "")[:MOST_WORDS]
        rows = [row for row in await page.store.requests.page(words=words) if page.seeing.request(visitor.by, row)]
        if wants_json(request):
            return page.json(visitor, {"requests": [wire(row) for row in rows]})
        return page.render(request, visitor, "inbox.html", rows=rows, words=words, now=time.time())

    return [page.get("/", inbox)]


def wire(row: RequestRow) -> dict[str, Any]:
    """Return a request as programs read it: what was asked, in which run, and what became of it."""
    return {
        "workflow_id": row.workflow_id,
        "run_id": row.run_id,
        "state": row.state,
        "decision": None if row.decision is None else row.decision.plain(),
        "request": row.request,
    }
