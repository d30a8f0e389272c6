"""Start a run for a visitor, who is its user and who is told to have started it."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.approvals.admission import DecisionInvalid
from backstay.canonical import digest_of
from backstay.errors import TaskInvalid
from backstay.shown import one_line
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes, run_path
from gateways.web.sent import Submission, text_in
from people.runs.starting import in_own_name, start_once

_LONGEST_ONCE = 200
_FIELDS = frozenset({"task", "once"})


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the route that starts runs."""

    async def start(request: Request, visitor: Visitor, sent: Submission) -> Response:
        if not page.may_start(visitor):
            raise HTTPException(403, "you may not start runs here; the operator names who may in BACKSTAY_WEB_STARTERS")
        task, once = _asked(sent, visitor)
        workflow_id = _id_of(visitor, once)
        if workflow_id is None:
            workflow_id = (await page.backstay.start(task)).id
        else:
            await start_once(page.backstay, page.store, task, workflow_id)
        return page.done(request, visitor, run_path(workflow_id), "The run is started.", {"workflow_id": workflow_id})

    return [page.post("/runs", start)]


def _id_of(visitor: Visitor, once: str) -> str | None:
    """Return the workflow ID for what a visitor starts once; nobody chooses one that another run has or will have."""
    return f"task-{digest_of([visitor.by, once])[:32]}" if once else None


def _asked(sent: Submission, visitor: Visitor) -> tuple[dict[str, Any], str]:
    """Return the task that was sent, in the name of the visitor, and the name under which it is started once."""
    if sent.json is None:
        return in_own_name(_entered(sent), visitor.by), sent.get("once")[:_LONGEST_ONCE]
    if unknown := sorted(sent.json.keys() - _FIELDS):
        raise DecisionInvalid(f"{one_line(unknown[0], 80)}: unknown field; send `task`, and `once` if you like")
    task, once = sent.json.get("task"), text_in(sent.json, "once")
    if not isinstance(task, dict):
        raise TaskInvalid('task: must be an object, such as {"text": "..."}')
    if len(once) > _LONGEST_ONCE:
        raise DecisionInvalid(f"once: longer than {_LONGEST_ONCE} characters; use a shorter one")
    return in_own_name(task, visitor.by), once


def _entered(sent: Submission) -> dict[str, Any]:
    """Return the task that a form holds, which may go on from a run that has ended."""
    task: dict[str, Any] = {"text": sent.get("text").strip()}
    if not (followed := sent.get("follows")):
        return task
    session = {"session_id": sent.get("session_id")} if sent.get("session_id") else {}
    return {**task, **session, "follows": {"workflow_id": followed, "run_id": sent.get("follows_run")}}
