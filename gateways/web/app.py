"""Put the page together: its parts, its static files, its health, and the guard before all of it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from backstay.errors import BackstayError, RunNotFound
from gateways.links import LINK_S, Stranger
from gateways.web import alike, connections, inbox, live, own_servers, requests, standing, triggers
from gateways.web.api import routes as api
from gateways.web.guard import API, Guard
from gateways.web.identity import COOKIE, ByLink, Visitor, link_command_of
from gateways.web.page import PageRoutes
from gateways.web.runs import routes as runs
from gateways.web.sent import Submission

PARTS: tuple[Callable[[PageRoutes], list[BaseRoute]], ...] = (
    inbox.routes,
    alike.routes,
    requests.routes,
    live.routes,
    runs.routes,
    standing.routes,
    triggers.routes,
    connections.routes,
    own_servers.routes,
)
"""The parts of the page; each returns its routes. Parts are asked in this order."""
FOR_PROGRAMS: tuple[Callable[[PageRoutes], list[BaseRoute]], ...] = (
    *(api.routes, inbox.routes, requests.routes, runs.routes, standing.routes, own_servers.routes),
)
"""The parts that programs find below /api: the same endpoints, which give them JSON."""
SIGNED: frozenset[str] = frozenset({"/slack/events", live.HOOK, triggers.BELOW})
"""Paths that programs POST to, which no person is behind: their parts check a signature instead.

One that ends with a slash stands for all below it.
"""
_NO_RUN = "backstay-readiness"
"""Temporal is asked for a run of this name, which does not exist: to be told so is to be answered."""
_STATIC = Path(__file__).parent / "static"


class IdConvertor(Convertor[str]):
    """Read an id in a path, which may hold any character, a slash included."""

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        """Return the id."""
        return unquote(value)

    def to_string(self, value: str) -> str:
        """Return how a path holds the id."""
        return quote(value, safe="")


register_url_convertor("id", IdConvertor())


def build_app(page: PageRoutes, more: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application that serves the page, and beside it what other gateways serve."""
    # A part counts what it lets in, such as streams, so both addresses lead to the same one.
    made = {part: part(page) for part in {*PARTS, *FOR_PROGRAMS}}
    routes: list[BaseRoute] = [route for part in PARTS for route in made[part]]
    elsewhere = not isinstance(page.identity, ByLink)
    return Starlette(
        routes=[
            *routes,
            *_links(page),
            *more,
            *_health(page),
            Mount(API, routes=[route for part in FOR_PROGRAMS for route in made[part]]),
            Mount("/static", StaticFiles(directory=_STATIC), name="static"),
        ],
        middleware=[Middleware(Guard, url=page.settings.url, signed=SIGNED, signs_in_elsewhere=elsewhere)],
        exception_handlers=page.faults,
    )


def _links(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes by which a link lets people in, and out again; where a proxy says who they are, none.

    The link is kept as the only cookie of the page. One for somebody else asks before it takes the place of another.
    """
    identity = page.identity
    if not isinstance(identity, ByLink):
        return []

    async def come_in(request: Request) -> Response:
        token, visitor = _named(identity, request)
        here = identity.opened(request.cookies.get(COOKIE, ""))
        if here is None or here.by == visitor.by:
            return _let_in(token)
        # Any page can lead a browser here. A visitor who is somebody already would decide as another without knowing
        # it.
        path = f"/link/{quote(token, safe='')}"
        return page.render(request, here, "entering.html", 409, other=visitor.by, path=path)

    async def change(request: Request, visitor: Visitor, sent: Submission) -> Response:
        if sent.json is not None:
            raise HTTPException(415)
        return _let_in(_named(identity, request)[0])

    async def leave(request: Request, visitor: Visitor, sent: Submission) -> Response:
        if sent.json is not None:
            raise HTTPException(415)
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="lax")
        return answer

    path = "/link/{token}"
    return [Route(path, come_in, methods=["GET"]), page.post(path, change), page.post("/leave", leave)]


def _named(identity: ByLink, request: Request) -> tuple[str, Visitor]:
    """Return the token of a link and whom it is for; raises Stranger for one that does not hold."""
    token = request.path_params["token"]
    if (visitor := identity.opened(token)) is None:
        raise Stranger(f"this link has expired, or is none of ours; make a new one: {link_command_of(request)}")
    return token, visitor


def _let_in(token: str) -> Response:
    answer = RedirectResponse("/", 303)
    # Links from mail and chats must find the person known, so not `strict`; forms have a proof of their own. This
    # mode is served on loopback only, where there is no TLS, so not `secure`.
    answer.set_cookie(COOKIE, token, max_age=int(LINK_S), httponly=True, samesite="lax", path="/")
    return answer


def _health(page: PageRoutes) -> list[BaseRoute]:
    """Return whether the process lives, and whether it reaches what it needs; neither says anything of a run."""

    async def lives(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(request: Request) -> Response:
        try:
            await page.store.requests.count_open()
            with suppress(RunNotFound):
                await page.backstay.run(_NO_RUN).is_open()
        except BackstayError as error:
            return JSONResponse({"status": "unavailable", "error": type(error).__name__}, 503)
        return JSONResponse({"status": "ok"})

    return [Route("/healthz", lives, methods=["GET"]), Route("/readyz", ready, methods=["GET"])]
