"""Reach the addresses that servers name, and no others: one way for all of them.

A server says where it describes itself, who gives tokens, where they are renewed and where clients are registered. Each
of these could be an address inside our own network, which takes a request from this machine for one of a friend.
"""

import asyncio
import ipaddress
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2

from system.addresses import Address, Internet, is_loopback, is_never_reached
from system.encodings import compressions_of

MOST_BYTES = 512 * 1024
"""How much of an answer is read."""
WITHIN_S = 10.0
_LONGEST = 2000
_TRIAL_S = 2.0
_KEPT_S = 60.0
_STRANGE = frozenset(' \\"<>')
_PORTS = {"https": 443, "http": 80}


class AddressRefused(Exception):
    """Nothing is sent to an address that a server names."""


class Dialer:
    """Send requests to addresses that a server names."""

    def __init__(self, own: Iterable[str], internet: Internet | None = None, *, tells: bool = True) -> None:
        """`own` are the addresses that the operator wrote: these may be near, and on loopback so may what they name.

        `tells`: whether refusals say what a name stands for, which people learn nowhere else.
        """
        self._tells = tells
        self._own = {origin_of(address) for address in own}
        self._is_local = any(is_loopback(host) for _, host, _ in self._own)
        self._internet = internet or Internet()
        self._tls: ssl.SSLContext | None = None
        self._answered: dict[tuple[str, int], tuple[Address, float]] = {}

    def require(self, address: str) -> tuple[str, str, int]:
        """Return scheme, host and port of an address that may be used; raises AddressRefused for others."""
        plain = address.isascii() and address.isprintable() and not set(address) & _STRANGE
        if not plain or len(address) > _LONGEST:
            raise AddressRefused(f"{address[:100]!a} is not an address")
        try:
            parts = urlsplit(address)
            scheme, host, _ = origin = origin_of(address)
        except ValueError:
            raise AddressRefused(f"{address[:100]!a} is not an address") from None
        if scheme not in _PORTS or not host or parts.username is not None or parts.password is not None:
            raise AddressRefused(f"{address[:100]!a} is not a plain https:// address")
        if scheme != "https" and not (self._is_local and is_loopback(host)):
            raise AddressRefused(f"{address[:100]!a} is not https")
        with suppress(ValueError):
            self._require_far(origin, host, [ipaddress.ip_address(host)])
        return origin

    async def request(self, method: str, address: str, **content: Any) -> httpx2.Response:
        """Send a request; a redirect is not followed, and of a long answer nothing is taken.

        Raises AddressRefused and httpx2.HTTPError.
        """
        host = self.require(address)[1]
        request = httpx2.Request(method, address, **content)
        request.headers["accept-encoding"] = "identity"
        return await self._sent(await self.pinned(request), host)

    async def pinned(self, request: httpx2.Request) -> httpx2.Request:
        """Return a request that goes to the address that was looked at; raises AddressRefused and httpx2.HTTPError.

        The meaning of the name a moment later has no say.
        """
        address = str(request.url)
        _, host, _ = self.require(address)
        found = await self.look_up(address)
        extensions = dict(request.extensions)
        try:
            ipaddress.ip_address(host)
        except ValueError:
            extensions["sni_hostname"] = host
        url = request.url.copy_with(host=str(found))
        return httpx2.Request(
            request.method, url, headers=request.headers, stream=request.stream, extensions=extensions
        )

    async def _sent(self, request: httpx2.Request, host: str) -> httpx2.Response:
        self._tls = self._tls or httpx2.create_ssl_context()
        request.extensions = {**request.extensions, "timeout": httpx2.Timeout(WITHIN_S).as_dict()}
        # One connection for each request: one that was opened for another name would not be checked again.
        async with httpx2.AsyncHTTPTransport(verify=self._tls, limits=httpx2.Limits(max_connections=1)) as transport:
            try:
                async with asyncio.timeout(2 * WITHIN_S):
                    answer = await transport.handle_async_request(request)
                    body = await _bounded(answer)
            except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
                raise httpx2.ConnectError(f"{host} cannot be reached: {type(error).__name__}") from None
        return httpx2.Response(answer.status_code, headers=_kept(answer.headers), content=body, request=request)

    async def look_up(self, address: str) -> Address:
        """Return what to connect to; raises AddressRefused when one address of the name is never reached."""
        scheme, host, port = self.require(address)
        try:
            found = [ipaddress.ip_address(host)]
        except ValueError:
            try:
                found = list(await self._internet.addresses(host, port))
            except (OSError, UnicodeError):
                raise httpx2.ConnectError(f"{host} has no address") from None
        if not found:
            raise httpx2.ConnectError(f"{host} has no address")
        self._require_far((scheme, host, port), host, found)
        return found[0] if len(found) == 1 else await self._answering(host, port, found)

    async def _answering(self, host: str, port: int, found: Sequence[Address]) -> Address:
        """Return the first of several addresses that takes a connection, and keep to it for a while.

        A name may stand for addresses of both kinds where the server listens at one, or this machine reaches one.
        """
        known, until = self._answered.get((host, port), (None, 0.0))
        if known is not None and known in found and time.monotonic() < until:
            return known
        for each in found:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_TRIAL_S):
                    _, writer = await self._internet.connect(each, port)
                writer.close()
                self._answered[host, port] = each, time.monotonic() + _KEPT_S
                return each
        return found[0]

    def _require_far(self, origin: tuple[str, str, int], host: str, found: Iterable[Address]) -> None:
        if origin in self._own:
            return
        for each in found:
            if self._is_local and is_loopback(host) and each.is_loopback:
                continue
            if is_never_reached(each) or self._internet.is_own(each):
                found_at = f"{each}, an address" if self._tells else "an address"
                raise AddressRefused(f"{host} stands for {found_at} that is private or reserved")

    def close(self) -> None:
        """Look up nothing any more."""
        self._internet.close()


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Send the requests of a client to one origin, by connections to addresses that were looked at."""

    def __init__(self, dialer: Dialer, address: str) -> None:
        """`address` is of the only origin that is reached."""
        self._dialer = dialer
        self._origin = dialer.require(address)
        self._inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_connections=100, keepalive_expiry=30))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; raises httpx2.ConnectError for an address that is refused."""
        try:
            if self._dialer.require(str(request.url)) != self._origin:
                raise httpx2.ConnectError("the server names another one, which is not reached")
            pinned = await self._dialer.pinned(request)
        except AddressRefused as error:
            raise httpx2.ConnectError(str(error)) from None
        return await self._inner.handle_async_request(pinned)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def origin_of(address: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address; raises ValueError for a port that is none."""
    parts = urlsplit(address)
    port = _PORTS.get(parts.scheme, 0) if parts.port is None else parts.port
    return parts.scheme, (parts.hostname or "").lower(), port


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in {"content-length", "set-cookie"}}


async def _bounded(answer: httpx2.Response) -> bytes:
    if compressions_of(answer.headers.get("content-encoding", "")):
        raise httpx2.DecodingError("compressed")
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > MOST_BYTES:
            raise httpx2.DecodingError("too long")
    return bytes(body)
