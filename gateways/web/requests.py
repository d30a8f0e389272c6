"""One request, whole: what is asked, what it would change, and the forms in which people decide."""

import secrets
from collections.abc import Sequence
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.proof import ShownRequest
from backstay.approvals.tables import groups_of
from backstay.approvals.titles import title_of
from backstay.approvals.view import RequestView
from backstay.approvals.whole import unseen, with_all
from backstay.errors import BackstayError, DecisionRefused
from backstay.shown import kept_texts, one_line
from gateways.web.deciding import decided, from_program, outcome_line
from gateways.web.failures import status_of
from gateways.web.forms import EditedField, edited_fields, edits_in, entered_in, field_name
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.inbox import wire
from gateways.web.page import PageRoutes, request_path
from gateways.web.sent import Submission
from gateways.web.showing import reminders
from people.decide.looking import (
    KnownRequest,
    Stale,
    asked_again,
    differences,
    hindrance,
    look,
    not_shown,
    require_same,
)
from people.requests.form import DecisionForm

MOST_EDITED = 50
"""How many calls can be changed in one form."""


def _kept(request: ApprovalRequest) -> list[tuple[str, int]]:
    """Return the texts that a request only refers to; while it waits, they are in it."""
    steps = () if request.proposal is None else request.proposal.steps
    return sorted({*kept_texts([each.arguments for each in (*request.shown, *steps)])})


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of a request."""
    place = "/requests/{workflow_id:id}/{request_id:id}"
    requests = RequestPages(page)
    return [page.get(place, requests.show), page.post(f"{place}/decide", requests.decide)]


class RequestPages:
    """Show single requests, and take decisions about them."""

    def __init__(self, page: PageRoutes) -> None:
        """Show on this page."""
        self._page = page

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Show a request as its run says that it is now; buttons only while it waits."""
        known = await self._known(request, visitor, request.query_params.get("f"))
        if is_for_programs(request.scope):
            live = None if known.live is None else known.live.plain()
            return self._page.json(visitor, self._wire(known) | {"live": live, "trouble": known.trouble})
        return await self._shown(request, visitor, known)

    async def decide(self, request: Request, visitor: Visitor, sent: Submission) -> Response:
        """Decide a request in the name of whoever sent the form."""
        known = await self._known(request, visitor, None)
        try:
            answer = await self._decided(known, sent, visitor)
        except BackstayError as error:
            if is_for_programs(request.scope):
                raise
            return await self._refused(request, visitor, known, sent, error)
        path = request_path(*_names(request))
        if answer.get("asked_again") and (again := await asked_again(self._page.backstay.run(known.workflow_id))):
            path = request_path(known.workflow_id, again)
        return self._page.done(request, visitor, path, outcome_line(answer, visitor), answer)

    async def _known(self, request: Request, visitor: Visitor, run_id: str | None) -> KnownRequest:
        """Return a request that the visitor may see; another's is as if there were none."""
        workflow_id, request_id = _names(request)
        known = await look(self._page.backstay.run(workflow_id), self._page.store, request_id, run_id or None)
        seen = known.row is not None and self._page.seeing.request(visitor.by, known.row)
        if known.row is None and known.live is not None:
            seen = self._page.seeing.asked(visitor.by, known.live)
        if not seen:
            raise HTTPException(404)
        return known

    async def _decided(self, known: KnownRequest, sent: Submission, visitor: Visitor) -> dict[str, Any]:
        """Have what was sent decided, for the request that whoever sent it was shown."""
        if sent.json is not None:
            said, was = from_program(visitor, sent.json)
            return await decided(self._page, visitor, known, said, was)
        request = known.request
        was = ShownRequest(run_id=sent.get("f"), digest=sent.get("d"), args_digest=sent.get("a"))
        if request is None:
            raise HTTPException(404)
        require_same(known, was)
        edits = ()
        if chosen := sent.all("edited"):
            edits = edits_in(sent, await self._wholes(known, _calls(request, chosen)))
        entered = entered_in(sent, DecisionForm.of(request), edits)
        hidden = not_shown(request, {sent.get("w")})
        return await decided(self._page, visitor, known, entered, was, nonce=sent.get("e")[:80], hidden=hidden)

    async def _wholes(self, known: KnownRequest, calls: Sequence[RequestedCall]) -> dict[int, dict[str, Any]]:
        """Return the arguments of calls, whole; they are changed as they are, not as they are shown."""
        request, run = known.request, self._page.backstay.run(known.workflow_id)
        if request is None or known.live is None:
            raise DecisionRefused(f"arguments: {known.trouble or 'the request does not wait any more'}")
        return {call.index: await run.arguments(request.id, call.index) for call in calls}

    async def _refused(
        self, request: Request, visitor: Visitor, known: KnownRequest, sent: Submission, error: BackstayError
    ) -> Response:
        """Show the request again, with why a decision was not taken, and what was typed."""
        changes: list[str] = []
        if isinstance(error, Stale) and known.request is not None:
            before = await self._page.store.requests.get(*_names(request), sent.get("f"))
            if before is not None and self._page.seeing.request(visitor.by, before):
                changes = differences(ApprovalRequest.model_validate(before.request), known.request)
        elif isinstance(error, DecisionRefused):
            known = await self._known(request, visitor, None)
        status, why = status_of(error)
        return await self._shown(request, visitor, known, sent, status=status, why=why, changes=changes)

    async def _shown(
        self,
        request: Request,
        visitor: Visitor,
        known: KnownRequest,
        sent: Submission | None = None,
        status: int = 200,
        **more: Any,
    ) -> Response:
        asked_for, page = known.request, self._page
        if asked_for is None:
            raise HTTPException(404)
        reader = await self._looks(known, asked_for, visitor)
        whole, missing = await self._all_of(known, asked_for)
        shown, opened = RequestView.of(whole, waits=known.may_wait), bool(request.query_params.get("all"))
        return page.render(
            request,
            visitor,
            "request.html",
            status,
            known=known,
            shown=shown,
            title=title_of(asked_for),
            groups=shown.calls if opened else groups_of(shown),
            missing=missing,
            opened=opened,
            asked=asked_for,
            hindrance=hindrance(asked_for, visitor.by, signs=page.key is not None, services=page.settings.may_act_for),
            reminded=reminders(known.row),
            others=await self._others(known, visitor),
            beside=await self._beside(known),
            form=DecisionForm.of(asked_for),
            field_name=field_name,
            kept=() if known.live is not None else _kept(asked_for),
            edited=await self._edited(request, known, asked_for, sent),
            nonce=secrets.token_hex(16),
            reader=reader,
            typed=sent or Submission({}),
            **({"why": "", "changes": []} | more),
        )

    async def _looks(self, known: KnownRequest, asked_for: ApprovalRequest, visitor: Visitor) -> str:
        """Let others know who looks at a request that waits; return the name of this look."""
        reader = secrets.token_hex(8)
        if known.live is not None:
            looks = self._page.store.looks
            await looks.look(known.workflow_id, asked_for.id, visitor.by, f"{visitor.by} {reader}")
        return reader

    async def _all_of(self, known: KnownRequest, asked_for: ApprovalRequest) -> tuple[ApprovalRequest, str]:
        """Return a request with nothing left out, and what is missing all the same; nobody approves it here then."""
        if known.live is None or not unseen(asked_for):
            return asked_for, ""
        try:
            found = await self._page.backstay.run(known.workflow_id).whole(asked_for)
        except BackstayError as error:
            return asked_for, f"{unseen(asked_for)} ({one_line(str(error), 300)})"
        whole = with_all(asked_for, found)
        return whole, unseen(whole, found)

    async def _edited(
        self, request: Request, known: KnownRequest, asked_for: ApprovalRequest, sent: Submission | None
    ) -> dict[int, list[EditedField]]:
        """Return the fields of each call that is being changed; nothing where none is or can be."""
        chosen = (() if sent is None else sent.all("edited")) or request.query_params.getlist("edit")
        if not chosen or known.live is None or "modify" not in asked_for.options:
            return {}
        wholes = await self._wholes(known, _calls(asked_for, chosen))
        return {call: edited_fields(call, arguments) for call, arguments in wholes.items()}

    async def _others(self, known: KnownRequest, visitor: Visitor) -> list[str]:
        """Return who else is looking at the request just now, in any process that serves pages."""
        if known.request is None:
            return []
        named = (known.workflow_id, known.request.id)
        found = await self._page.store.looks.people([named])
        return [person for person in found.get(named, []) if person != visitor.by]

    async def _beside(self, known: KnownRequest) -> list[ApprovalRequest]:
        """Return the requests of the plans that are proposed instead of this one."""
        proposal = None if known.live is None else known.live.proposal
        if proposal is None or not proposal.alternatives:
            return []
        pending = await self._page.backstay.run(known.workflow_id).pending()
        return [other for other in pending if other.proposal and other.proposal.plan_id in proposal.alternatives]

    def _wire(self, known: KnownRequest) -> dict[str, Any]:
        if known.row is not None:
            return wire(known.row)
        live = known.live
        plain = None if live is None else live.plain()
        run_id = "" if live is None else live.run_id
        return {
            "workflow_id": known.workflow_id,
            "run_id": run_id,
            "state": "open",
            "decision": None,
            "request": plain,
        }


def _names(request: Request) -> tuple[str, str]:
    return request.path_params["workflow_id"], request.path_params["request_id"]


def _calls(request: ApprovalRequest, chosen: Sequence[str]) -> list[RequestedCall]:
    """Return the calls that are to be changed; each change asks the run for one, so there is a bound."""
    found = [call for call in request.calls if str(call.index) in chosen]
    if len(found) != len(set(chosen)):
        raise DecisionInvalid("edited: no such call waits; open the request again")
    most = MOST_EDITED if request.proposal is None else 1
    if len(found) > most:
        raise DecisionInvalid(f"edited: change at most {most} at a time; the others are asked about again")
    return found
