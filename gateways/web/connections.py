"""Where people sign in at servers, and end what they have let backstay do there; each sees their own only.

No address here leads a browser elsewhere by itself: a person is shown the host at which they would sign in, and follows
a link or not. The person who comes back must be the one who left, in a session of this page; then the requests that
wait for the sign-in are answered in their name.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.proof import ShownRequest
from backstay.errors import BackstayError, SignInRefused
from backstay.tools.connection import SignIns, client_document
from gateways.web.deciding import decided
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.sent import Submission
from people.decide.looking import KnownRequest, look
from store.notices.requests import RequestRow

PLACE = "/connections"
_MOST_WAITING = 200
_MOST_SAID = 4000
_PATIENCE_S, _AGAIN_S = 20.0, 0.5


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of connections; none where people sign in nowhere, and have no servers of their own."""
    signs_in = page.sign_ins is not None and bool(page.sign_ins.providers)
    if not signs_in and page.own_servers is None:
        return []

    async def show(request: Request, visitor: Visitor) -> Response:
        """Show where the visitor is signed in, where they could be, and the servers of their own."""
        servers = await _signed_in(page.sign_ins, visitor)
        own = None if page.own_servers is None else await page.own_servers.of_user(visitor.by)
        if is_for_programs(request.scope):
            return page.json(visitor, {"connections": servers})
        return page.render(request, visitor, "connections.html", servers=servers, own=own)

    return [page.get(PLACE, show), *(_sign_ins(page, page.sign_ins) if page.sign_ins is not None and signs_in else ())]


async def _signed_in(sign_ins: SignIns | None, visitor: Visitor) -> list[dict[str, Any]]:
    if sign_ins is None:
        return []
    known = {each.provider: each.told() for each in await sign_ins.of_user(visitor.by)}
    return [{"provider": name, "state": "", **known.get(name, {})} for name in sign_ins.providers]


def _sign_ins(page: PageRoutes, sign_ins: SignIns) -> list[BaseRoute]:
    place = f"{PLACE}/{{provider:id}}"
    shown = _Connections(page, sign_ins)
    return [
        Route(f"{place}/client.json", shown.document, methods=["GET"]),
        page.post(f"{place}/sign-in", shown.leave),
        page.get(f"{place}/callback", shown.come_back),
        page.post(f"{place}/disconnect", shown.disconnect),
    ]


class _Connections:
    def __init__(self, page: PageRoutes, sign_ins: SignIns) -> None:
        self._page = page
        self._sign_ins = sign_ins

    async def leave(self, request: Request, visitor: Visitor, sent: Submission) -> Response:
        """Show the visitor where they would sign in."""
        provider = self._provider(request)
        found = await self._sign_ins.begin(visitor.by, provider, self._back(request, provider))
        if is_for_programs(request.scope):
            # It grants nothing to whoever has it: only this visitor can come back with what follows.
            return self._page.json(visitor, {"url": found.url, "host": found.host})
        return self._page.render(request, visitor, "leaving.html", provider=provider, url=found.url, host=found.host)

    async def come_back(self, request: Request, visitor: Visitor) -> Response:
        """Take what the visitor brings from where they signed in, and let go on what waits for that."""
        provider, given = self._provider(request), request.query_params
        said = {name: given[name] for name in ("state", "code", "iss", "error") if name in given}
        if any(len(given.getlist(name)) > 1 or len(said[name]) > _MOST_SAID for name in said):
            raise SignInRefused("the answer says something twice, or too much; begin again")
        await self._sign_ins.finish(visitor.by, provider, said)
        went_on, left = await self._answer_waiting(visitor, provider)
        told = [f"you are signed in at {provider}"]
        if went_on:
            told.append("the call that waited goes on" if went_on == 1 else f"{went_on} calls go on")
        told += [f"{left} still wait: open them in the inbox and answer yes"] if left else []
        return self._page.done(request, visitor, PLACE, "; ".join(told), {"went_on": went_on, "left": left})

    async def disconnect(self, request: Request, visitor: Visitor, sent: Submission) -> Response:
        """Forget what the visitor has let backstay do at a server."""
        provider = self._provider(request)
        revoked = await self._sign_ins.disconnect(visitor.by, provider)
        if revoked is None:
            raise HTTPException(404)
        where = "and revoked there" if revoked else "but not revoked there: end it at the server, too"
        return self._page.done(request, visitor, PLACE, f"{provider} is forgotten here, {where}", {"revoked": revoked})

    async def document(self, request: Request) -> Response:
        """Say to issuers who backstay is, and where people come back; it says nothing of any person.

        Each server has a document of its own: where one named the return addresses of others, too, the issuer of
        another server could lead people to this one's, and would be brought the code.
        """
        back = self._back(request, self._provider(request))
        return JSONResponse(client_document(f"{back.removesuffix('callback')}client.json", [back]))

    async def _answer_waiting(self, visitor: Visitor, provider: str) -> tuple[int, int]:
        """Answer in the visitor's name what asks whether they have signed in; return how many could be, and not."""
        page, went_on, left = self._page, 0, 0
        kind, seen_by = RequestKind.ELICITATION.value, page.seeing.only(visitor.by)
        mark = page.store.connections.mark(visitor.by, provider)
        for row in await page.store.requests.page(kind=kind, seen_by=seen_by, limit=_MOST_WAITING):
            if not _asks_for(row, provider, mark):
                continue
            known = await self._asked(row)
            live = known.live
            if live is None or not live.wants_sign_in(mark):
                left += known.may_wait
                continue
            try:
                said: Mapping[str, Any] = {"verdict": "answer", "answer": True}
                await decided(page, visitor, known, said, ShownRequest.of(live))
                went_on += 1
            except BackstayError:
                # Somebody else has to decide about the call, or has done so.
                left += 1
        return went_on, left

    async def _asked(self, row: RequestRow) -> KnownRequest:
        """Return a request as its run knows it; a run whose worker was lost answers when another one has it."""
        page, loop = self._page, asyncio.get_running_loop()
        ends = loop.time() + _PATIENCE_S
        while True:
            known = await look(page.backstay.run(row.workflow_id), page.store, row.request_id)
            if known.live is not None or not known.trouble or known.ended or loop.time() > ends:
                return known
            await asyncio.sleep(_AGAIN_S)

    def _provider(self, request: Request) -> str:
        provider = str(request.path_params["provider"])
        if provider not in self._sign_ins.providers:
            raise HTTPException(404)
        return provider

    def _back(self, request: Request, provider: str) -> str:
        return f"{self._base(request)}{PLACE}/{quote(provider, safe='')}/callback"

    def _base(self, request: Request) -> str:
        """Return the page's own address: as the operator says, else that of this machine by which it was asked."""
        url = self._page.settings.url
        return f"http://{request.headers['host']}" if url is None else url.rstrip("/")


def _asks_for(row: RequestRow, provider: str, mark: str) -> bool:
    with suppress(ValueError):
        request = ApprovalRequest.model_validate(row.request)
        return request.wants_sign_in(mark) and all(call.tool.partition(".")[0] == provider for call in request.calls)
    return False
