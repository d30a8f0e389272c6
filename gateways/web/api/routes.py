"""The result of a run, and the description of the API."""

import asyncio
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from backstay.approvals.approval import Approval, ApprovalRequest
from backstay.budgets.budget import TopUp
from backstay.errors import ArgumentsInvalid, BackstayError, SettingsInvalid, Transient
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.result import Result
from backstay.task.status import Status
from backstay.task.task import Task
from backstay.version import version
from backstay.yaml_text import read_yaml
from gateways.web.failures import kind_of, status_of
from gateways.web.guard import error_body
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from people.runs.finding import KnownRun

LONGEST_WAIT_S = 60
"""How long one request may wait for the end of a run."""
_PATHS = Path(__file__).parent / "openapi.yaml"
_TYPES: tuple[tuple[type[Frozen], JsonSchemaMode], ...] = (
    (Task, "validation"),
    (Approval, "validation"),
    (TopUp, "validation"),
    (ApprovalRequest, "serialization"),
    (Event, "serialization"),
    (Result, "serialization"),
    (Status, "serialization"),
)


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes that only programs have."""

    async def result(request: Request, visitor: Visitor) -> Response:
        found, seconds = await page.run(request, visitor), _wait(request)
        stored = None if found.row is None else found.row.result
        if stored is not None:
            return page.json(visitor, stored)
        try:
            said = await _ended(page, found, seconds)
        except (Transient, SettingsInvalid):
            raise
        except BackstayError as error:
            # The run has ended with this error, which says nothing of the request: it was a right one.
            return page.json(visitor, error_body(kind_of(error, 410), status_of(error)[1]), 410)
        return page.json(visitor, said or {"open": True}, 202 if said is None else 200)

    async def described(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(description))

    return [page.get("/runs/{workflow_id:id}/result", result), Route("/openapi.json", described, methods=["GET"])]


async def _ended(page: PageRoutes, found: KnownRun, seconds: int) -> dict[str, Any] | None:
    """Return the Result of a run, for which an open one is waited so long; None while it is open."""
    if not seconds and found.is_open:
        return None
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds if found.is_open else LONGEST_WAIT_S):
            return (await page.backstay.run(found.workflow_id, found.run_id).result()).plain()
    return None


def _wait(request: Request) -> int:
    """Return how many seconds a program waits for the end of the run; raises ArgumentsInvalid."""
    given = request.query_params.get("wait", "") or "0"
    if not (given.isdecimal() and given.isascii() and len(given) <= 2 and int(given) <= LONGEST_WAIT_S):
        raise ArgumentsInvalid(f"wait: {one_line(given, 40)!r} is not a number of seconds from 0 to {LONGEST_WAIT_S}")
    return int(given)


@cache
def description() -> dict[str, Any]:
    """Return the description of the API as OpenAPI 3.1: `openapi.yaml`, and the types of the engine that it names."""
    written: dict[str, Any] = read_yaml(_PATHS.read_text(encoding="utf-8"))
    _, types = models_json_schema(_TYPES, ref_template="#/components/schemas/{model}")
    components = {**written["components"], "schemas": {**types["$defs"], **written["components"]["schemas"]}}
    return {**written, "info": {**written["info"], "version": version()}, "components": components}
