"""Find out who looks at the page: by a link from this machine, by a header of a proxy, or by its ID token."""

import hmac
import math
from collections.abc import Collection
from typing import Protocol

from starlette.requests import Request

from backstay.authority import principal
from backstay.frozen import Frozen
from gateways.links import Seals, Stranger, person
from gateways.served import link_command

COOKIE = "backstay"
PROXY_HEADER = "X-Backstay-Proxy"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class Visitor(Frozen):
    """Hold who looks at the page; nothing of it comes from what the person writes."""

    by: str
    """The name that decisions of this person are recorded under."""
    until: float = math.inf
    """The unix time at which we must ask again who it is."""
    bearer: str = ""
    """The token that named the person, when the request carried it for all to see that no foreign page sent it."""


class Identity(Protocol):
    """Say who looks at the page."""

    async def visitor(self, request: Request) -> Visitor:
        """Return who sent a request; raises Stranger."""
        ...


class ByLink:
    """Believe links that `backstay web link` has made; for pages that only this machine can reach."""

    def __init__(self, seals: Seals) -> None:
        """`seals` made the links."""
        self._seals = seals

    async def visitor(self, request: Request) -> Visitor:
        """Return whom the link is for, as a browser keeps it or as a program sends it."""
        bearer = bearer_of(request)
        visitor = self.opened(bearer) or self.opened(request.cookies.get(COOKIE, ""))
        if visitor is None:
            raise Stranger(f"open the link that `{link_command_of(request)}` prints; links are valid for 12 hours")
        return visitor

    def opened(self, token: str) -> Visitor | None:
        """Return whom a link is for; None when it does not hold."""
        said = self._seals.opened("link", token)
        return (
            None if said is None else Visitor(by=principal(str(said["by"])), until=float(said["until"]), bearer=token)
        )


class ByHeader:
    """Believe the header of a proxy that says a secret, too."""

    def __init__(self, header: str, secret: str) -> None:
        """`secret` is what only the proxy knows."""
        self._header = header
        self._secret = secret.encode()

    async def visitor(self, request: Request) -> Visitor:
        """Return whom the proxy names."""
        said = request.headers.getlist(PROXY_HEADER)
        if len(said) != 1 or not hmac.compare_digest(said[0].encode("latin-1", "replace"), self._secret):
            raise Stranger("come through the proxy that this page is behind")
        named = request.headers.getlist(self._header)
        if len(named) != 1:
            raise Stranger(f"the proxy must say who you are, once, in the header {self._header}")
        try:
            # Proxies write names in UTF-8, and servers read headers character by character.
            return Visitor(by=person(named[0].encode("latin-1").decode("utf-8")))
        except UnicodeError:
            raise Stranger(f"the header {self._header} holds no text") from None


def may_start(identity: Identity, starters: Collection[str], by: str) -> bool:
    """Return whether a person may start runs: whoever a link lets in, and elsewhere whom the operator names."""
    return isinstance(identity, ByLink) or "*" in starters or by in map(principal, starters)


def link_command_of(request: Request) -> str:
    """Return the command that lets somebody into the page that got a request."""
    return link_command("YOUR-NAME", (request.scope.get("server") or (None, None))[1])


def bearer_of(request: Request) -> str:
    """Return the token of the header Authorization; empty when there is none, or more than a single header."""
    said = request.headers.getlist("Authorization")
    kind, _, token = (said[0] if len(said) == 1 else "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""
