"""Ask Composio, by three calls of its API, whether a user has an account there, how they get one, and for an address.

The address that it gives may hold a secret, and whoever answers may be wrong: it is sealed as tokens are, and is used
only where every address that a server names may be.
"""

import json
from typing import Any
from urllib.parse import urlencode

from backstay.errors import SignInRefused, ToolUnavailable
from backstay.tools.connection import Departure, Grant
from system.dialing import Dialer, origin_of
from toolbox.configuration.configuration import AccountServiceAuth
from toolbox.oauth.discovery import parsed
from toolbox.oauth.tokens import GrantGone

_KEY = "x-api-key"
_WANTED = frozenset({401, 403})
_LONGEST = 2000


class UserAccounts:
    """Speak with Composio about the accounts of users."""

    def __init__(self, url: str, auth: AccountServiceAuth, dialer: Dialer) -> None:
        """`url` is where its API is."""
        self._url, self._auth, self._dialer = url.rstrip("/"), auth, dialer

    async def departure(self, user_id: str, return_to: str, state: str) -> Departure:
        """Return where a user connects an account; raises SignInRefused, ToolUnavailable and httpx2.HTTPError."""
        asked = {
            "auth_config_id": self._auth.auth_config_id,
            "user_id": user_id,
            "callback_url": f"{return_to}?{urlencode({'state': state})}",
        }
        said = await self._asked("POST", "/api/v3/connected_accounts/link", asked)
        url = said.get("redirect_url")
        if not isinstance(url, str):
            raise SignInRefused("Composio gives no address at which an account is connected")
        return Departure(url, self._dialer.require(url)[1])

    async def grant(self, user_id: str) -> Grant:
        """Return the address of a user; raises GrantGone where they have no account that is connected."""
        asked = {"user_ids": user_id, "auth_config_ids": self._auth.auth_config_id, "statuses": "ACTIVE"}
        found = (await self._asked("GET", f"/api/v3/connected_accounts?{urlencode(asked)}")).get("items")
        accounts = [each["id"] for each in found or () if _is_theirs(each, user_id)] if isinstance(found, list) else []
        if not accounts:
            raise GrantGone("no account is connected")
        said = await self._asked(
            "POST",
            "/api/v3/mcp/servers/generate",
            {"mcp_server_id": self._auth.mcp_server_id, "user_ids": [user_id], "managed_auth_by_composio": False},
        )
        urls = said.get("user_ids_url")
        if not isinstance(urls, list) or len(urls) != 1 or not isinstance(urls[0], str) or len(urls[0]) > _LONGEST:
            raise ToolUnavailable("Composio gives no address for this user")
        self._dialer.require(urls[0])
        return Grant(
            issuer=self._url,
            resource=self._url,
            access_token=urls[0],
            token_endpoint=self._url,
            client={"grant": "service"},
        )

    def headers(self, url: str) -> dict[str, str]:
        """Return what is sent to the address of a user: the key of the operator only to Composio itself."""
        return {_KEY: self._auth.api_key} if origin_of(url) == origin_of(self._url) else {}

    async def _asked(self, method: str, path: str, said: dict[str, Any] | None = None) -> dict[str, Any]:
        headers = {_KEY: self._auth.api_key, "accept": "application/json"}
        content: dict[str, Any] = {}
        if said is not None:
            headers["content-type"] = "application/json"
            content["content"] = json.dumps(said).encode()
        answer = await self._dialer.request(method, f"{self._url}{path}", headers=headers, **content)
        if answer.status_code in _WANTED:
            raise ToolUnavailable(f"Composio refuses the key of the operator: HTTP {answer.status_code}")
        if answer.status_code not in {200, 201}:
            raise ToolUnavailable(f"Composio does not answer now: HTTP {answer.status_code}")
        return parsed(answer)


def _is_theirs(account: Any, user_id: str) -> bool:
    """Return whether an account is connected, and of this user, as far as the answer says of whom it is."""
    return (
        isinstance(account, dict)
        and isinstance(account.get("id"), str)
        and account.get("status") == "ACTIVE"
        and account.get("user_id", user_id) == user_id
    )
