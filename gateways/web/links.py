"""Let people in by a link, and out again.

The link is kept as the only cookie of the page.
"""

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from gateways.web.identity import COOKIE, ByLink, Stranger, Visitor
from gateways.web.page import Page
from gateways.web.sent import Sent
from gateways.web.tokens import LINK_S


def routes(page: Page) -> list[BaseRoute]:
    """Return the routes of links; where a proxy says who people are, there are none."""
    identity = page.identity
    if not isinstance(identity, ByLink):
        return []

    async def come_in(request: Request) -> Response:
        token = request.path_params["token"]
        if identity.opened(token) is None:
            raise Stranger(
                "this link has expired, or is none of ours; make a new one: backstay web link --by YOUR-NAME"
            )
        answer = RedirectResponse("/", 303)
        # Links from mail and chats must find the person known, so not `strict`; forms have a proof of their own. This
        # mode is served on loopback only, where there is no TLS, so not `secure`.
        answer.set_cookie(COOKIE, token, max_age=int(LINK_S), httponly=True, samesite="lax", path="/")
        return answer

    async def leave(request: Request, visitor: Visitor, sent: Sent) -> Response:
        if sent.json is not None:
            raise HTTPException(415)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
        return answer

    return [Route("/link/{token}", come_in, methods=["GET"]), page.post("/leave", leave)]
