"""The page of schedules and triggers: when they start runs, and what the last ones led to."""

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.client.schedules import Schedules
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from people.runs.words import OUTCOMES, tone_of
from people.standing.listing import ListedStart, list_tasks

_WORDS = {
    "accepted": "accepted, not begun",
    "reserved": "under way",
    "refused": "not started",
    "ended": "ended",
    "TaskInvalid": "failed",
    "cancelled": "cancelled",
}


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the route of the list."""
    schedules = Schedules(page.backstay.client, page.backstay.task_queue)

    async def listed(request: Request, visitor: Visitor) -> Response:
        found = await list_tasks(page.store, schedules)
        seen = [row for row in found if page.seeing.standing(visitor.by, row.by)]
        if is_for_programs(request.scope):
            return page.json(visitor, {"schedules": [row.plain() for row in seen]})
        return page.render(
            request,
            visitor,
            "standing.html",
            kinds=[(kind, [row for row in seen if row.kind == kind]) for kind in ("schedule", "trigger")],
            state_of=state_of,
            tone_of_start=tone_of_start,
            now=time.time(),
        )

    return [page.get("/schedules", listed)]


def state_of(start: ListedStart) -> str:
    """Return in words what became of a start."""
    said = start.told if start.state == "ended" else start.state
    return OUTCOMES.get(said) or _WORDS.get(said, said)


def tone_of_start(start: ListedStart) -> str:
    """Return how that looks."""
    if start.state == "ended":
        return tone_of(start.told)
    return "bad" if start.state == "refused" else ""
