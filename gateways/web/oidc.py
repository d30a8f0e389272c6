"""Find out who looks at the page by an ID token of OpenID Connect, which a proxy passes on."""

import time
from collections.abc import Callable
from typing import Any

import jwt
import structlog
from starlette.requests import Request

from gateways.links import Stranger, person
from gateways.published_keys import PublishedKeys
from gateways.web.identity import Visitor, bearer_of

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""No algorithm under which a key that everybody may read could sign."""
LEEWAY_S = 60
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
        self._keys = PublishedKeys(issuer, f"{issuer}/.well-known/openid-configuration", clock)

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
            published = await self._keys.key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token,
                published.key,
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
