"""The routes of runs: the list, one run, what happens in it, what it has stored, and what can be done to it."""

import secrets
import time

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from backstay.errors import ArgumentsInvalid, RunNotFound, Transient
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes, run_place
from gateways.web.runs import acting, listing, starting, stored, streaming
from gateways.web.runs.showing import is_held, view_of
from people.runs.finding import find
from people.runs.looking import look
from people.runs.wire import wire_of


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return all routes of runs."""

    async def show(request: Request, visitor: Visitor) -> Response:
        workflow_id = request.path_params["workflow_id"]
        try:
            found = await page.run(request, visitor)
        except (RunNotFound, Transient):
            # An undo after the end is a workflow of its own; it is on the page of the run that it undoes.
            worked_on = await page.store.runs.worked_on(workflow_id)
            if worked_on is None or worked_on.workflow_id == workflow_id:
                raise
            found = await find(page.sources, visitor.by, worked_on.workflow_id, worked_on.workflow_run_id)
            return RedirectResponse(run_place(found), 303)
        seen = await look(page.sources, found, visitor.by, before=_before(request))
        if is_for_programs(request.scope):
            return page.json(visitor, wire_of(seen))
        return page.render(
            request,
            visitor,
            "runs/run.html",
            found=found,
            seen=seen,
            held=is_held(seen),
            now=time.time(),
            newest=_before(request) is None,
            # A form that is sent twice, by a double click, is done once.
            once=secrets.token_hex(12),
            may_go_on=page.may_start(visitor) and found.user_id == visitor.by,
            **view_of(seen),
        )

    return [
        *listing.routes(page),
        *starting.routes(page),
        *streaming.routes(page),
        *acting.routes(page),
        *stored.routes(page),
        page.get("/runs/{workflow_id:id}", show),
    ]


def _before(request: Request) -> int | None:
    """Return the number of the event before which the timeline is to end; raises ArgumentsInvalid."""
    given = request.query_params.get("before", "")
    if given and not (given.isdecimal() and given.isascii() and len(given) <= 12):
        raise ArgumentsInvalid("before: the number of an event")
    return int(given) if given else None
