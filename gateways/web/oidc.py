"""Find out who looks at the page by an ID token of OpenID Connect, which a proxy passes on."""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
import structlog
from starlette.requests import Request

from gateways.links import Stranger, person
from gateways.web.identity import LOOPBACK_NAMES, Visitor, bearer_of

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""No algorithm under which a key that everybody may read could sign."""
LEEWAY_S = 60
_KEYS_S = 3600.0
"""How long the keys of the issuer are used before they are asked for again."""
_AGAIN_S = 30.0
"""How soon an unknown key has us ask again."""
_WITHIN_S = 5.0
_MOST_BYTES = 512 * 1024
_MOST_TOKEN = 16 * 1024
_SIGN_IN = "sign in again; your sign-in has ended, or is not for this page"
log = structlog.get_logger("backstay.web")


class ByIdToken:
    """Believe ID tokens that one issuer has made out for one audience."""

    def __init__(
        self, issuer: str, audience: str, claim: str = "email", clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`claim` names the person; an `email` counts only where the issuer has verified it."""
        self._issuer = issuer
        self._audience = audience
        self._claim = claim
        self._clock = clock
        self._keys: dict[str, jwt.PyJWK] = {}
        self._asked_at: float | None = None
        self._asking = asyncio.Lock()

    async def visitor(self, request: Request) -> Visitor:
        """Return whom the token names, until it expires."""
        token = bearer_of(request)
        if not token or len(token) > _MOST_TOKEN:
            raise Stranger("sign in through the proxy that this page is behind")
        claims = await self._claims(token)
        name = claims.get(self._claim)
        if not isinstance(name, str):
            raise Stranger(f"your sign-in does not say who you are: it lacks the claim {self._claim}")
        if self._claim == "email" and claims.get("email_verified") is not True:
            raise Stranger("your address is not verified; verify it where you sign in")
        return Visitor(by=person(name), until=float(claims["exp"]) + LEEWAY_S, bearer=token)

    async def _claims(self, token: str) -> dict[str, Any]:
        try:
            key = await self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            log.info("web.token_refused", why=type(error).__name__)
            raise Stranger(_SIGN_IN) from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        # Some issuers write a slash at the end of their name, and some do not.
        if str(claims["iss"]).rstrip("/") != self._issuer or (several and claims.get("azp") != self._audience):
            raise Stranger(_SIGN_IN)
        return claims

    async def _key(self, kid: str) -> jwt.PyJWK:
        async with self._asking:
            age = None if self._asked_at is None else self._clock() - self._asked_at
            if age is None or age > _KEYS_S or (kid not in self._keys and age > _AGAIN_S):
                self._asked_at = self._clock()
                self._keys = await self._fetched() or self._keys
        if kid not in self._keys:
            raise jwt.InvalidTokenError("unknown key")
        return self._keys[kid]

    async def _fetched(self) -> dict[str, jwt.PyJWK]:
        """Return the keys that the issuer publishes; nothing while it does not answer."""
        try:
            async with httpx2.AsyncClient(timeout=_WITHIN_S, follow_redirects=False) as client:
                described = await _json(client, f"{_safe(self._issuer)}/.well-known/openid-configuration")
                published = await _json(client, self._place_of_keys(described))
            keys = jwt.PyJWKSet.from_dict(published).keys
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, jwt.PyJWTError) as error:
            log.warning("web.issuer_silent", issuer=self._issuer, error=type(error).__name__)
            return {}
        return {str(key.key_id or ""): key for key in keys if key.key_type in {"RSA", "EC", "OKP"}}

    def _place_of_keys(self, described: dict[str, Any]) -> str:
        if str(described.get("issuer", "")).rstrip("/") != self._issuer:
            raise ValueError("it describes another issuer")
        return _safe(str(described.get("jwks_uri", "")))


async def _json(client: httpx2.AsyncClient, address: str) -> dict[str, Any]:
    answer = await client.get(address, headers={"accept": "application/json"})
    data = answer.json() if answer.is_success and len(answer.content) <= _MOST_BYTES else None
    if not isinstance(data, dict):
        raise httpx2.DecodingError("no usable answer")
    return data


def _safe(address: str) -> str:
    """Return an address whose answer nobody on the way can change; raises ValueError for others."""
    parts = urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_NAMES:
        raise ValueError("its keys are not behind https")
    return address
