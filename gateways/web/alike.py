"""Decide at once several requests that are about the very same calls, each with a proof of its own."""

import asyncio
import json
import secrets
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proof import ShownRequest
from backstay.approvals.view import RequestView
from backstay.approvals.whole import unseen
from backstay.errors import BackstayError
from backstay.shown import one_line
from gateways.web.deciding import decided
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.sent import Submission
from people.decide.deciding import state_words
from people.decide.looking import Stale, hindrance, look
from people.requests.entered import FormEntry
from store.notices.requests import RequestRow

MOST = 200
"""How many requests can be decided at once."""
_AT_ONCE = 8
_CHOICES = frozenset({"approve", "reject"})


class Pick(NamedTuple):
    """Name one request that somebody has ticked, as it was shown."""

    workflow_id: str
    request_id: str
    shown: ShownRequest
    nonce: str


class AlikeOutcome(NamedTuple):
    """Say what became of one of several decisions."""

    workflow_id: str
    request_id: str
    state: str
    """`decided`, `recorded` while others must agree, or `refused`."""
    said: str


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of equal requests."""

    async def show(request: Request, visitor: Visitor) -> Response:
        rows = await page.store.requests.of_alike(
            request.path_params["alike"], page.seeing.only(visitor.by), limit=MOST
        )
        if not rows:
            raise HTTPException(404)
        first = ApprovalRequest.model_validate(rows[0].request)
        return page.render(
            request,
            visitor,
            "alike.html",
            rows=rows,
            shown=RequestView.of(first),
            missing=unseen(first),
            hindrance=hindrance(first, visitor.by, signs=page.key is not None, services=page.settings.may_act_for),
            picks=[_ticked(row) for row in rows],
            nonce=secrets.token_hex(16),
            now=time.time(),
        )

    async def act(request: Request, visitor: Visitor, sent: Submission) -> Response:
        if sent.json is not None:
            raise HTTPException(415)
        picks = [_pick(text, sent.get("e")[:80]) for text in dict.fromkeys(sent.all("pick"))]
        choice = sent.get("verdict")
        if not picks or len(picks) > MOST or choice not in _CHOICES:
            raise DecisionInvalid(f"pick: tick 1 to {MOST} requests, and approve or reject them")
        if choice == "approve" and any(unseen(first) for first in await _requests(page, picks)):
            raise DecisionInvalid("pick: not all of these requests is shown here; open each of them to approve it")
        outcomes = await _all_decided(page, visitor, picks, FormEntry(choice, sent.get("comment")))
        status = 200 if all(outcome.state != "refused" for outcome in outcomes) else 409
        return page.render(request, visitor, "outcomes.html", status, outcomes=outcomes, verdict=choice)

    return [page.get("/alike/{alike}", show), page.post("/alike", act)]


def _ticked(row: RequestRow) -> str:
    """Return what the box of a request says when it is ticked."""
    request = row.request
    named = [row.workflow_id, row.request_id, row.run_id, request.get("digest", ""), request.get("args_digest", "")]
    return json.dumps(named)


def _pick(text: str, nonce: str) -> Pick:
    try:
        named: Any = json.loads(text)
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, list) or len(named) != 5 or not all(isinstance(part, str) for part in named):
        raise DecisionInvalid("pick: no request of this page; open it again")
    workflow_id, request_id, run_id, digest, args_digest = named
    return Pick(workflow_id, request_id, ShownRequest(run_id=run_id, digest=digest, args_digest=args_digest), nonce)


async def _requests(page: PageRoutes, picks: Sequence[Pick]) -> list[ApprovalRequest]:
    rows = [await page.store.requests.get(pick.workflow_id, pick.request_id, pick.shown.run_id) for pick in picks]
    return [ApprovalRequest.model_validate(row.request) for row in rows if row is not None]


async def _equal(page: PageRoutes, visitor: Visitor, picks: Sequence[Pick]) -> list[RequestRow]:
    """Return the requests that were ticked; raises Stale unless they are all about the very same calls."""
    rows: list[RequestRow] = []
    for pick in picks:
        row = await page.store.requests.get(pick.workflow_id, pick.request_id, pick.shown.run_id)
        if row is None or not page.seeing.request(visitor.by, row):
            raise HTTPException(404)
        rows.append(row)
    if len({row.alike for row in rows}) != 1 or not rows[0].alike:
        raise Stale("pick: these requests are not about the same calls; decide them apart")
    return rows


async def _all_decided(
    page: PageRoutes, visitor: Visitor, picks: Sequence[Pick], entered: FormEntry
) -> list[AlikeOutcome]:
    """Decide some requests, a few of them at the same time."""
    rows, bounded = await _equal(page, visitor, picks), asyncio.Semaphore(_AT_ONCE)

    async def in_turn(pick: Pick, row: RequestRow) -> AlikeOutcome:
        async with bounded:
            return await _decided(page, visitor, pick, row, entered)

    return await asyncio.gather(*(in_turn(pick, row) for pick, row in zip(picks, rows, strict=True)))


async def _decided(page: PageRoutes, visitor: Visitor, pick: Pick, row: RequestRow, entered: FormEntry) -> AlikeOutcome:
    named = (row.workflow_id, row.request_id)
    try:
        known = await look(page.backstay.run(row.workflow_id), page.store, row.request_id)
        answer = await decided(page, visitor, known, entered, pick.shown, nonce=pick.nonce)
    except BackstayError as error:
        return AlikeOutcome(*named, "refused", one_line(str(error), 300))
    return AlikeOutcome(*named, str(answer.get("state", "decided")), state_words(answer))
