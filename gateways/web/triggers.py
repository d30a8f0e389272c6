"""Take what other programs send to triggers: signed with the key of the trigger, once, and only so often."""

import secrets
from typing import Any

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from backstay.approvals.admission import DecisionInvalid
from backstay.bounds import DEEPEST
from backstay.canonical import deeper_than
from backstay.client.schedules import Schedules
from backstay.errors import BackstayError
from backstay.task.standing import TriggerLimits, run_id, start_id
from gateways.listening import BODY_S, TooLong, read_body
from gateways.signatures import ID, SIGNATURE, is_signed
from gateways.web.failures import kind_of, status_of
from gateways.web.guard import error_body
from gateways.web.page import PageRoutes
from gateways.web.sent import json_object
from store.standing.starts import StartReplayed, TooOften
from store.standing.tasks import KeptTask

BELOW = "/triggers/"
_MOST = TriggerLimits(max_bytes=262_144).max_bytes
_LONGEST_ID = 200
_AGAIN_S = 60
log = structlog.get_logger("backstay.triggers")


class TriggerRefused(Exception):
    """A request to a trigger is not granted."""

    def __init__(self, status: int, kind: str, why: str) -> None:
        """`why` is told to whoever sent it."""
        super().__init__(why)
        self.status, self.kind, self.why = status, kind, why


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the route of all triggers."""
    schedules = Schedules(page.backstay.client, page.backstay.task_queue)

    async def taken(request: Request) -> Response:
        try:
            kept, body = await _believed(page, request)
            return await _started(page, schedules, kept, request, body)
        except TriggerRefused as refused:
            more = {"Retry-After": str(_AGAIN_S)} if refused.status == 429 else None
            return JSONResponse(error_body(refused.kind, refused.why), refused.status, more)
        except BackstayError as error:
            status, why = status_of(error)
            log.warning("trigger.failed", status=status, error=type(error).__name__)
            return JSONResponse(error_body(kind_of(error, status), why), status)

    return [Route(f"{BELOW}{{name}}", taken, methods=["POST"])]


async def _believed(page: PageRoutes, request: Request) -> tuple[KeptTask, bytes]:
    """Return the trigger that a request was signed for, and its body; an unknown one looks like a wrong signature."""
    try:
        found = await page.store.standing.trigger(request.path_params["name"])
    except BackstayError as error:
        log.warning("trigger.failed", status=503, error=str(error))
        raise TriggerRefused(503, "StoreUnavailable", "triggers cannot be read now; send it again later") from None
    try:
        # The same for all names; only those who have its key are told what a trigger itself takes.
        body = await read_body(request, _MOST, BODY_S)
    except TooLong:
        raise _too_large(_MOST) from None
    except TimeoutError:
        raise TriggerRefused(408, "TooSlow", f"the body took longer than {BODY_S:g} s; send it again") from None
    signed = is_signed(secrets.token_bytes() if found is None else found[1], request.headers, body)
    if found is None or not signed:
        log.warning("trigger.unsigned", known=found is not None)
        raise TriggerRefused(
            403,
            "NotSigned",
            "not signed with the key of this trigger within the last 5 minutes; send backstay-timestamp, and in "
            "backstay-signature the hex HMAC-SHA256 of the timestamp, a dot and the body",
        )
    kept, _ = found
    door = kept.standing.door or TriggerLimits()
    if len(body) > door.max_bytes:
        raise _too_large(door.max_bytes)
    return kept, body


def _too_large(most: int) -> TriggerRefused:
    return TriggerRefused(413, "TooLarge", f"the body is longer than {most:,} bytes; send less")


async def _started(page: PageRoutes, schedules: Schedules, kept: KeptTask, request: Request, body: bytes) -> Response:
    """Start a run, once for each id; the same id is told of the same run."""
    standing, mac = kept.standing, request.headers[SIGNATURE]
    event = request.headers.get(ID, "") or mac
    if not event.isprintable():
        raise TriggerRefused(422, "BadRequest", f"{ID}: holds signs that cannot be shown; use letters and digits")
    if len(event) > _LONGEST_ID:
        raise TriggerRefused(422, "BadRequest", f"{ID}: longer than {_LONGEST_ID} characters; use a shorter one")
    if kept.paused:
        raise TriggerRefused(409, "Paused", "this trigger is paused; whoever operates it resumes it")
    start = start_id(page.backstay.task_queue, "trigger", standing.name, event)
    try:
        found, new = await page.store.starts.accept(start, standing, event=event, signature=mac, given=_object(body))
    except StartReplayed as error:
        raise TriggerRefused(409, "Replayed", str(error)) from None
    except TooOften as error:
        raise TriggerRefused(429, "TooOften", str(error)) from None
    if found.state == "accepted":
        # Also of one that was accepted before: the process that accepted it may have died before it was started.
        await schedules.start(start, standing)
    told = {"id": event, "workflow_id": run_id(start), "state": found.state.value, "told": found.told}
    return JSONResponse(told, 202 if new else 200)


def _object(body: bytes) -> dict[str, Any]:
    try:
        data = json_object(body)
    except (DecisionInvalid, HTTPException) as error:
        status, why = status_of(error)
        raise TriggerRefused(status, "BadRequest", why) from None
    if deeper_than(data, DEEPEST):
        raise TriggerRefused(422, "BadRequest", f"the body must be nested at most {DEEPEST} levels deep; flatten it")
    return data
