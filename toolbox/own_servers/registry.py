"""Add, list and remove the servers of users: what may be in them, and where they may be."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import structlog

from backstay.authority import principal
from backstay.errors import ArgumentsInvalid
from backstay.shown import NOBODY, one_line
from backstay.tools.connection import SERVICE
from backstay.tools.own_server import OwnServer, OwnServerStore
from system.addresses import Internet, is_loopback
from system.dialing import AddressRefused, Dialer
from toolbox.configuration.users_servers import UsersServers

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?")
_HOST = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?|[0-9a-f:]*:[0-9a-f:.]*")
"""A name whose parts are written out, or an address: what else a host may be is read otherwise elsewhere."""
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_MOST_HEADERS = 16
_LONGEST_VALUE = 4096
_LONGEST_URL = 2000
_OURS = frozenset(
    {"accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect"}
    | {"host", "keep-alive", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Headers that say how a request is made, and not who makes it."""
_OURS_BEGIN = ("mcp-", "proxy-", "sec-")
_NO_ADDRESS = "must be an https:// address at a public host, and hold no name or password before the host"
_LOST = "the key is gone that its address and headers were encrypted with; remove it, and add it again"
_log = structlog.get_logger("toolbox")


class UserServerRegistry:
    """Keep the servers of users within what the operator allows."""

    def __init__(self, rules: UsersServers, store: OwnServerStore, internet: Internet | None = None) -> None:
        """`rules` are those of toolbox.json; `internet` looks up names."""
        self.rules = rules
        self._store = store
        self._internet = internet

    async def add(self, user_id: str, name: str, url: str, headers: Iterable[tuple[str, str]]) -> OwnServer:
        """Add a server; raises ArgumentsInvalid naming the field. Nothing is sent to it yet."""
        # White space around a value does not belong to it, and no request could be sent with it.
        given = [(header, value.strip(" \t")) for header, value in headers]
        if principal(user_id) in {NOBODY, SERVICE}:
            raise ArgumentsInvalid(f"user: {NOBODY} is nobody, and has no servers; name a person")
        if _NAME.fullmatch(name) is None:
            raise ArgumentsInvalid(
                f"name: {one_line(name, 60)!r} must be 1 to 32 of a-z, 0-9, - and _, with no - or _ at either end"
            )
        fault = self.fault_of(url) if url else _NO_ADDRESS
        if fault:
            raise ArgumentsInvalid(f"url: {fault}")
        if fault := _fault_in(given):
            raise ArgumentsInvalid(f"headers: {fault}")
        host = self.dialer(url).require(url)[1]
        added: OwnServer | None = await self._store.added(
            user_id, name, host=host, url=url, headers=dict(given), most=self.rules.most
        )
        if added is None:
            known = await self._store.listed(user_id)
            if any(each.name == name for each in known):
                raise ArgumentsInvalid(f"name: you have a server {name} already; remove it, or choose another name")
            raise ArgumentsInvalid(f"you have {len(known)} servers, as many as the operator allows; remove one first")
        _log.info("own_server.added", provider=added.provider)
        return added

    async def of_user(self, user_id: str) -> list[dict[str, Any]]:
        """Return what is told of a user's servers, each with why it is `refused` now, if it is."""
        return [{**each.told(), "refused": self.fault_of(each.url)} for each in await self._store.listed(user_id)]

    async def remove(self, user_id: str, name: str) -> str:
        """Forget a server, with all that was sealed of it; return its provider, or nothing without one."""
        provider = await self._store.removed(user_id, name)
        if provider:
            _log.info("own_server.removed", provider=provider)
        return provider

    async def servers(self, user_id: str) -> list[OwnServer]:
        """Return a user's servers, with what opens them."""
        return await self._store.listed(user_id)

    def fault_of(self, url: str) -> str:
        """Return why no server may be at an address; empty where it may. Names are not looked up."""
        if not url:
            return _LOST
        if len(url.encode("utf-8", "replace")) > _LONGEST_URL:
            return f"longer than {_LONGEST_URL} bytes; give a shorter one"
        try:
            _, host, port = self.dialer(url).require(url)
        except AddressRefused:
            host, port = "", 0
        if _HOST.fullmatch(host) is None:
            return _NO_ADDRESS
        if "#" in url:
            return "must not end in a fragment (#...); leave that out"
        if not self.rules.allows(host, port):
            return f"{host}:{port} is not among the hosts that the operator allows; ask them, or choose another"
        return ""

    def dialer(self, url: str) -> Dialer:
        """Return what reaches an address of a user: this machine only where the operator wrote that it may be."""
        try:
            _, host, port = Dialer([url]).require(url)
        except (AddressRefused, ValueError):
            # An address that cannot be read is not one of our own.
            near = False
        else:
            near = is_loopback(host) and self.rules.allows(host, port)
        return Dialer([url] if near else [], self._internet, tells=False)


def _fault_in(headers: Sequence[tuple[str, str]]) -> str:
    """Return why headers cannot be sent, without any of their values."""
    if len(headers) > _MOST_HEADERS:
        return f"{len(headers)} are too many; send {_MOST_HEADERS} at most"
    if len({name.lower() for name, _ in headers}) < len(headers):
        return "one of them is given twice; give each once"
    for name, value in headers:
        shown = one_line(name, 60)
        if _HEADER.fullmatch(name) is None:
            return f"{shown!r} is not the name of a header, such as Authorization, of 100 bytes at most"
        if name.lower() in _OURS or name.lower().startswith(_OURS_BEGIN):
            return f"{shown} is set by backstay itself; leave it out"
        if not value.strip() or len(value) > _LONGEST_VALUE or not (value.isascii() and value.isprintable()):
            return f"the value of {shown} must be one line of 1 to {_LONGEST_VALUE} printable ASCII characters"
    return ""
