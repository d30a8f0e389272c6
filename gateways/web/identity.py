"""Find out who looks at the page: by a link from this machine, by a header of a proxy, or by its ID token."""

import hmac
import ipaddress
import math
from typing import Protocol

from starlette.requests import Request

from backstay.authority import is_plain, principal
from backstay.errors import SettingsInvalid
from backstay.frozen import Frozen
from gateways.web.tokens import LINK_S, Seals

COOKIE = "backstay"
PROXY_HEADER = "X-Backstay-Proxy"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_NAME = 200


class Visitor(Frozen):
    """Hold who looks at the page; nothing of it comes from what the person writes."""

    by: str
    """The name that decisions of this person are recorded under."""
    until: float = math.inf
    """The unix time at which we must ask again who it is."""
    bearer: str = ""
    """The token that named the person, when the request carried it for all to see that no foreign page sent it."""


class Stranger(Exception):
    """Nobody whom we know looks at the page."""

    def __init__(self, why: str) -> None:
        """Say what is missing in one line, without anything that was sent."""
        super().__init__(why)


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
            raise Stranger("open the link that `backstay web link --by YOUR-NAME` prints; links hold for 12 hours")
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
            # Proxies write names in UTF-8, and servers read headers sign by sign.
            return Visitor(by=person(named[0].encode("latin-1").decode("utf-8")))
        except UnicodeError:
            raise Stranger(f"the header {self._header} holds no text") from None


def person(name: str) -> str:
    """Return the name of a person in its canonical form; raises Stranger for what could pass for another one."""
    known = principal(name)
    if not known or len(known) > _MOST_NAME or not is_plain(name) or "," in known:
        raise Stranger("your name cannot be used here: it is empty, too long, or holds signs that cannot be seen")
    return known


def bearer_of(request: Request) -> str:
    """Return the token of the header Authorization; empty when there is none, or more than a single header."""
    said = request.headers.getlist("Authorization")
    kind, _, token = (said[0] if len(said) == 1 else "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def link_for(seals: Seals, by: str) -> str:
    """Return the token of a link for one person; raises SettingsInvalid for a name that cannot be used."""
    try:
        return seals.seal("link", {"by": person(by)}, LINK_S)
    except Stranger as error:
        raise SettingsInvalid(f"--by: {error}") from None


def is_loopback(host: str) -> bool:
    """Return whether an address to listen on can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
