"""Tell browsers what has changed, as it happens, and who else looks at what they look at."""

import time
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from backstay.approvals.approval import escalation
from backstay.errors import BackstayError
from gateways.signatures import is_signed
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.showing import reminders
from gateways.web.watching import event, is_set_within, stream

BEAT_S = 5.0
"""How often a connection says that it lives, and who else looks is looked at."""
LOOKED_S = 15.0
"""How often somebody who goes on looking says so."""
HOOK = "/hooks/backstay"
log = structlog.get_logger("backstay.web")


class RequestViewer(NamedTuple):
    """Hold who looks at which request, in which tab."""

    workflow_id: str
    request_id: str
    person: str
    reader: str


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of live news, and of those who bring them sooner than they would be found."""

    async def news(request: Request, visitor: Visitor) -> Response:
        if page.watcher.is_full(visitor.by):
            raise HTTPException(429)
        workflow_id, request_id = (request.query_params.get(name, "") for name in ("w", "r"))
        if not request_id:
            return stream(_news(page, visitor, None))
        row = await page.store.requests.get(workflow_id, request_id)
        if row is None or not page.seeing.request(visitor.by, row):
            raise HTTPException(404)
        reader = f"{visitor.by} {request.query_params.get('reader', '')[:40]}"
        return stream(_news(page, visitor, RequestViewer(workflow_id, request_id, visitor.by, reader)))

    async def told(request: Request) -> Response:
        key = page.settings.webhook_key
        if key is None or not is_signed(key.get_secret_value().encode(), request.headers, await request.body()):
            raise HTTPException(404 if key is None else 403)
        # The news itself is in the store; a notice only says that it is time to look.
        page.watcher.wake()
        return Response(status_code=204)

    return [page.get("/events", news), Route(HOOK, told, methods=["POST"])]


async def _news(page: PageRoutes, visitor: Visitor, look: RequestViewer | None) -> AsyncGenerator[str]:
    """Yield how many requests wait for a visitor, and what became of the one that they look at."""
    said, looked_at = "", -LOOKED_S
    try:
        with page.watcher.watching(visitor.by):
            woken = False
            while time.time() < visitor.until:
                ticket = page.watcher.ticket()
                if look is not None and time.monotonic() - looked_at > LOOKED_S:
                    await page.store.looks.look(*look)
                    looked_at = time.monotonic()
                found = await _found(page, visitor, look)
                text = event("news", found)
                # Also what changes no number may change a row that is shown.
                if text != said:
                    yield text
                else:
                    yield event("changed", found) if woken else ": still here\n\n"
                said, woken = text, await is_set_within(ticket, BEAT_S)
    except BackstayError as error:
        log.warning("web.stream_ended", error=type(error).__name__)
    finally:
        if look is not None:
            page.watcher.afterwards(page.store.looks.leave(look.reader))


async def _found(page: PageRoutes, visitor: Visitor, look: RequestViewer | None) -> dict[str, Any]:
    found: dict[str, Any] = {"open": await page.store.requests.count_open(page.seeing.only(visitor.by))}
    if look is None:
        return found
    row = await page.store.requests.get(look.workflow_id, look.request_id)
    looking = await page.store.looks.people([(look.workflow_id, look.request_id)])
    people = [person for names in looking.values() for person in names if person != visitor.by]
    state = "" if row is None else row.state
    asked = {} if row is None else row.request
    escalated = escalation(asked.get("escalated_to", ()), escalated=asked.get("escalated", False))
    votes = len(asked.get("decided", ()))
    said = {"state": state, "votes": votes, "people": people, "reminded": reminders(row), "escalated": escalated}
    return found | said
