"""Speak with Bot Framework: believe what it signs for this bot, and write to one conversation of Teams."""

import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2
import jwt

from backstay.authority import principal
from backstay.errors import NotVerified, SettingsInvalid
from examples.teams_bot.activity import Activity
from gateways.links import Stranger
from gateways.published_keys import PublishedKeys
from people.notices.delivering import NotTaken
from system.addresses import is_loopback

ISSUER = "https://api.botframework.com"
SCOPE = f"{ISSUER}/.default"
CHANNEL, CARD = "msteams", "application/vnd.microsoft.card.adaptive"
SKEW_S = 300
_CLAIMS: Any = {"require": ["exp", "nbf", "iss", "aud"], "strict_aud": True}
_MOST_TOKEN = 16 * 1024
_NEVER_MIND = frozenset({403, 404})
"""Of a message that is to be changed: somebody has deleted it, which is no reason to say it again."""


@dataclass(frozen=True)
class BotSettings:
    """Hold what the bot is told; the names of its variables are those of the fields, with TEAMS_ before them."""

    app_id: str
    app_password: str = field(repr=False)
    tenant: str
    """The id of the tenant whose members decide."""
    service_url: str
    """Where the connector answers, such as https://smba.trafficmanager.net/emea/; the bot speaks to no other host."""
    conversation: str
    """The id of the conversation in which requests are posted."""
    openid: str = "https://login.botframework.com/v1/.well-known/openidconfiguration"
    login: str = "https://login.microsoftonline.com"

    def __post_init__(self) -> None:
        """Raise SettingsInvalid for an address over which anybody could listen."""
        for name in ("service_url", "openid", "login"):
            parts = urlsplit(getattr(self, name))
            if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
                raise SettingsInvalid(f"TEAMS_{name.upper()}: {parts.geturl()[:200]!r} is not https; write https://")


class Connector:
    """Write to a conversation, and say who its members are."""

    def __init__(self, settings: BotSettings, http: httpx2.AsyncClient) -> None:
        """`http` follows no redirect and has a timeout."""
        self.settings = settings
        self._http = http
        self._keys = PublishedKeys(ISSUER, settings.openid)
        self._token, self._until = "", 0.0

    async def vouched(self, authorization: str) -> str:
        """Return the service address that a signed request comes from; raises Stranger for any other request."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or len(token) > _MOST_TOKEN:
            raise Stranger("no token of Bot Framework")
        try:
            published = await self._keys.key(str(jwt.get_unverified_header(token).get("kid", "")))
            ours = {"audience": self.settings.app_id, "issuer": ISSUER, "leeway": SKEW_S, "options": _CLAIMS}
            claims = jwt.decode(token, published.key, algorithms=["RS256"], **ours)
        except jwt.PyJWTError as error:
            raise Stranger(f"the token does not hold ({type(error).__name__})") from None
        if CHANNEL not in published.endorsements:
            raise Stranger("the key of the token does not sign for Teams")
        return str(claims.get("serviceurl") or "")

    def require_ours(self, activity: Activity, vouched: str) -> None:
        """Raise Stranger unless an activity is of Teams, and comes from where the token says and the settings allow."""
        allowed = urlsplit(self.settings.service_url)
        same = vouched and activity.service_url == vouched and urlsplit(vouched)[:2] == allowed[:2]
        if activity.channel_id != CHANNEL or not same:
            raise Stranger("the token does not vouch for this activity, or TEAMS_SERVICE_URL names another service")

    async def person(self, activity: Activity) -> str:
        """Return who sent an activity, by their name in the tenant; raises NotVerified."""
        tenant = self.settings.tenant
        if not activity.object_id or activity.tenant != tenant:
            raise NotVerified("people of other tenants decide nothing here")
        place = f"v3/conversations/{_named(activity.conversation)}/members/{_named(activity.sender)}"
        member = await self._call("GET", place)
        known = member.get("aadObjectId") or member.get("objectId")
        if known != activity.object_id or member.get("tenantId") != tenant or member.get("userRole") != "user":
            raise NotVerified("guests and people of other tenants decide nothing here")
        # An e-mail address is whatever somebody wrote into the directory; the tenant itself gives out this name.
        name = str(member.get("userPrincipalName") or "")
        if "@" not in name or "#EXT#" in name.upper() or not name.isascii():
            raise NotVerified("you have no name of this tenant, such as ana@example.com; guests decide nothing")
        return principal(name)

    async def write(self, card: dict[str, Any], place: str = "") -> str:
        """Post a card, or change the one that stands at a place; return its place. Raises NotTaken."""
        at = f"v3/conversations/{_named(self.settings.conversation)}/activities"
        said = {"type": "message", "attachments": [{"contentType": CARD, "content": card}]}
        if not place:
            return str((await self._call("POST", at, said))["id"])
        await self._call("PUT", f"{at}/{_named(place)}", {**said, "id": place})
        return place

    async def _call(self, method: str, place: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        try:
            bearer, service = {"Authorization": f"Bearer {await self._bearer()}"}, self.settings.service_url.rstrip("/")
            answer = await self._http.request(method, f"{service}/{place}", json=body, headers=bearer)
            if answer.is_success:
                return answer.json() if answer.content else {}
        except (httpx2.HTTPError, ValueError, KeyError) as error:
            raise NotTaken(f"Teams cannot be reached: {type(error).__name__}") from None
        if method == "PUT" and answer.status_code in _NEVER_MIND:
            return {}
        if answer.status_code == 401:
            self._until = 0.0
        after = answer.headers.get("Retry-After", "") if answer.status_code == 429 else ""
        raise NotTaken(f"Teams refuses: {answer.status_code}", float(after) if after.isdecimal() else None)

    async def _bearer(self) -> str:
        if self._until < time.monotonic():
            own, asked_at = self.settings, time.monotonic()
            said = {"grant_type": "client_credentials", "client_id": own.app_id, "scope": SCOPE}
            place = f"{own.login.rstrip('/')}/{_named(own.tenant)}/oauth2/v2.0/token"
            answer = await self._http.post(place, data={**said, "client_secret": own.app_password})
            given = answer.raise_for_status().json()
            self._token, self._until = str(given["access_token"]), asked_at + float(given["expires_in"]) - SKEW_S
        return self._token


def _named(part: str) -> str:
    return quote(part, safe="")
