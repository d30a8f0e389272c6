"""Keep the keys that an issuer of OpenID Connect publishes, and ask for them again when one is used that is unknown."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
import jwt
import structlog

from system.dialing import AddressRefused, Dialer

_KEYS_S = 3600.0
"""How long the keys of the issuer are used before they are asked for again."""
_AGAIN_S = 30.0
"""How soon an unknown key has us ask again."""
log = structlog.get_logger("backstay.keys")


class PublishedKey(NamedTuple):
    """Hold a key with which an issuer signs."""

    key: jwt.PyJWK
    endorsements: frozenset[str]
    """The channels that Bot Framework signs for with it; other issuers name none."""


class PublishedKeys:
    """Know the keys of one issuer by their ids."""

    def __init__(self, issuer: str, described_at: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`described_at` is the address of the issuer's OpenID configuration."""
        self._issuer = issuer
        self._described_at = described_at
        self._clock = clock
        self._keys: dict[str, PublishedKey] = {}
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()
        self._dialer = Dialer([described_at])

    async def key(self, kid: str) -> PublishedKey:
        """Return a key; raises jwt.InvalidTokenError for one that the issuer does not publish."""
        async with self._asking:
            age = None if self._asked_at is None else self._clock() - self._asked_at
            if age is None or age > _KEYS_S or (kid not in self._keys and age > _AGAIN_S):
                self._asked_at = self._clock()
                self._keys = await self._fetched() or self._keys
        if kid not in self._keys:
            raise jwt.InvalidTokenError("unknown key")
        return self._keys[kid]

    async def _fetched(self) -> dict[str, PublishedKey]:
        """Return the keys that the issuer publishes; nothing while it does not answer."""
        try:
            described = await self._json(self._described_at)
            published = await self._json(self._place_of_keys(described))
            keys = jwt.PyJWKSet.from_dict(published).keys
        except (httpx2.HTTPError, httpx2.InvalidURL, AddressRefused, ValueError, jwt.PyJWTError) as error:
            log.warning("keys.issuer_silent", issuer=self._issuer, error=type(error).__name__)
            return {}
        endorsed = {str(each.get("kid", "")): each.get("endorsements") for each in published["keys"]}
        named = {str(key.key_id or ""): key for key in keys if key.key_type in {"RSA", "EC", "OKP"}}
        return {kid: PublishedKey(key, frozenset(map(str, endorsed.get(kid) or ()))) for kid, key in named.items()}

    def _place_of_keys(self, described: dict[str, Any]) -> str:
        # Some issuers write a slash at the end of their name, and some do not.
        if str(described.get("issuer", "")).rstrip("/") != self._issuer:
            raise ValueError("it describes another issuer")
        return str(described.get("jwks_uri", ""))

    async def _json(self, address: str) -> dict[str, Any]:
        answer = await self._dialer.request("GET", address, headers={"accept": "application/json"})
        data = answer.json() if answer.is_success else None
        if not isinstance(data, dict):
            raise httpx2.DecodingError("no usable answer")
        return data
