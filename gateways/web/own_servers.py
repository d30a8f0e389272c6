"""Where people add MCP servers of their own, and remove them; a program does it for itself, or for whom it serves.

Neither an address nor a header is shown again, also where what was sent is refused.
"""

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from backstay.authority import principal
from backstay.errors import ArgumentsInvalid
from backstay.shown import one_line
from backstay.tools.own_server import OwnServerRegistry
from gateways.web.connections import PLACE
from gateways.web.guard import is_for_programs
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.sent import Submission, text_in

_FIELDS = frozenset({"name", "url", "headers", "user"})
_MOST_LINES = 100


def routes(page: PageRoutes) -> list[BaseRoute]:
    """Return the routes of users' own servers, at which there is nothing where the operator allows none."""
    shown = _OwnServers(page)
    return [
        page.get("/servers", shown.show),
        page.post("/servers", shown.add),
        page.post("/servers/{name:id}/remove", shown.remove),
    ]


class _OwnServers:
    def __init__(self, page: PageRoutes) -> None:
        self._page = page

    @property
    def _registry(self) -> OwnServerRegistry:
        if self._page.own_servers is None:
            raise HTTPException(404)
        return self._page.own_servers

    async def show(self, request: Request, visitor: Visitor) -> Response:
        """Tell a program which servers there are; people see them beside their connections."""
        if not is_for_programs(request.scope):
            return RedirectResponse(PLACE, 303)
        user = self._user(visitor, request.query_params.get("user", ""))
        return self._page.json(visitor, {"servers": await self._registry.of_user(user)})

    async def add(self, request: Request, visitor: Visitor, sent: Submission) -> Response:
        """Keep a server; what is sent to it waits for a run."""
        if sent.json is None:
            name, url, headers = sent.get("name").strip(), sent.get("url").strip(), _lines(sent.get("headers"))
            user = visitor.by
        else:
            said = _known(sent.json, _FIELDS)
            name, url, headers = text_in(said, "name"), text_in(said, "url"), _headers(said.get("headers"))
            user = self._user(visitor, text_in(said, "user"))
        added = await self._registry.add(user, name, url, headers)
        told = f"{added.name} is added; runs find its tools as {added.provider}"
        return self._page.done(request, visitor, PLACE, told, added.told())

    async def remove(self, request: Request, visitor: Visitor, sent: Submission) -> Response:
        """Forget a server."""
        said = {} if sent.json is None else _known(sent.json, frozenset({"user"}))
        name = str(request.path_params["name"])
        provider = await self._registry.remove(self._user(visitor, text_in(said, "user")), name)
        if not provider:
            raise HTTPException(404)
        told = f"{name} is removed; no run reaches it any more"
        return self._page.done(request, visitor, PLACE, told, {"removed": provider})

    def _user(self, visitor: Visitor, named: str) -> str:
        """Return for whom a visitor asks; raises HTTPException where they may not."""
        user = principal(named) if named else visitor.by
        # A person who may act for a user has the user's connections anyway.
        if user != visitor.by and visitor.by not in self._page.settings.may_act_for:
            raise HTTPException(403, "user: only a service in BACKSTAY_MAY_ACT_FOR asks for others; leave it out")
        return user


def _known(said: Mapping[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    if unknown := sorted(said.keys() - fields):
        raise ArgumentsInvalid(f"{one_line(unknown[0], 80)}: unknown field; known are {', '.join(sorted(fields))}")
    return dict(said)


def _headers(said: Any) -> list[tuple[str, str]]:
    """Return headers as a program gives them."""
    if said is None:
        return []
    if not isinstance(said, dict) or not all(isinstance(value, str) for value in said.values()):
        raise ArgumentsInvalid('headers: must be an object of strings, such as {"Authorization": "Bearer ..."}')
    return list(said.items())


def _lines(text: str) -> list[tuple[str, str]]:
    """Return headers as a person writes them, each on a line of its own."""
    lines = [line for line in text.split("\n")[:_MOST_LINES] if line.strip()]
    if not all(":" in line for line in lines):
        raise ArgumentsInvalid("headers: write one on each line, as `Name: value`")
    return [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
