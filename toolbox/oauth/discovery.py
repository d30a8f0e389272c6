"""Find out who gives tokens for an MCP server, by what the server and that issuer say of themselves."""

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    create_oauth_metadata_request,
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    get_client_metadata_scopes,
    handle_auth_metadata_response,
    handle_protected_resource_response,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed, resource_url_from_server_url

from backstay.errors import SignInRefused
from backstay.shown import one_line
from system.dialing import Dialer
from toolbox.configuration.configuration import ServerAuth

GRANTS = ["authorization_code", "refresh_token"]
_ACCEPT = "application/json, text/event-stream"
MOST_SCOPES = 16 * 1024
"""How many characters of scopes a sign-in may ask for: they are part of an address."""
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@dataclass(frozen=True, slots=True)
class TokenEndpoints:
    """Hold where tokens for one server come from."""

    metadata: OAuthMetadata
    resource: str
    scope: str

    @property
    def issuer(self) -> str:
        """Return the issuer's name as it writes it."""
        return str(self.metadata.issuer)


def wanted_scope(response: httpx2.Response) -> str:
    """Return what a server says that a call needs, where it refuses for want of that; else nothing."""
    if response.status_code != 403 or extract_field_from_www_auth(response, "error") != "insufficient_scope":
        return ""
    wanted = plain_scope(extract_scope_from_www_auth(response))
    return wanted if len(wanted) <= MOST_SCOPES else ""


async def discover(url: str, auth: ServerAuth, dialer: Dialer) -> TokenEndpoints:
    """Ask a server who gives tokens for it, and that issuer for its addresses; all of them may be used.

    Raises SignInRefused, AddressRefused and httpx2.HTTPError.
    """
    challenge = await dialer.request("POST", url, json=_PING, headers={"accept": _ACCEPT})
    described = await _resource(url, challenge, dialer)
    metadata = await _issuer(url, auth, described, dialer)
    addresses = [metadata.authorization_endpoint, metadata.token_endpoint]
    for address in (*addresses, metadata.registration_endpoint, metadata.revocation_endpoint):
        if address is not None:
            dialer.require(str(address))
    scope = " ".join(auth.scopes) or _needed(challenge, described, metadata, auth)
    return TokenEndpoints(metadata, _named_resource(url, described), require_few(scope))


def _needed(
    challenge: httpx2.Response, described: ProtectedResourceMetadata | None, metadata: OAuthMetadata, auth: ServerAuth
) -> str:
    """Return the scopes that a server says it needs; all that its issuer has may be far more."""
    asked = plain_scope(extract_scope_from_www_auth(challenge)) if challenge.status_code in {401, 403} else ""
    listed = None if described is None else described.scopes_supported
    named = asked or plain_scope(" ".join(listed or ()))
    # Nothing of a client's own sign-in is renewed by a refresh token.
    grants = GRANTS if auth.grant == "user" else []
    return plain_scope(get_client_metadata_scopes(named, None, metadata, grants)) if named else ""


def is_for(url: str, resource: str) -> bool:
    """Return whether tokens for a resource may be sent to a server."""
    return check_resource_allowed(resource_url_from_server_url(url), resource)


async def _resource(url: str, challenge: httpx2.Response, dialer: Dialer) -> ProtectedResourceMetadata | None:
    """Return what the server says of itself; None for one of the first revisions, which say nothing."""
    named = extract_resource_metadata_from_www_auth(challenge)
    failed = 0
    for address in dict.fromkeys(build_protected_resource_metadata_discovery_urls(named, url)):
        answer = await _asked(address, dialer)
        failed = failed or _failure(answer)
        if failed and address == named:
            # At an address that we guess, another server may describe itself, or this one as it once was.
            break
        found = await handle_protected_resource_response(answer)
        if found is None:
            continue
        # Tokens for another server would be got in our name, and sent to this one.
        if not is_for(url, str(found.resource)):
            raise SignInRefused(f"the server describes another one, {one_line(str(found.resource), 100)}")
        return found
    if failed:
        # It may say something of itself all the same, once it can.
        raise SignInRefused(f"the server does not say who gives tokens for it: HTTP {failed}")
    return None


async def _issuer(
    url: str, auth: ServerAuth, described: ProtectedResourceMetadata | None, dialer: Dialer
) -> OAuthMetadata:
    offered = [] if described is None else [str(each) for each in described.authorization_servers]
    if auth.issuer is not None and offered and not any(issuers_match(auth.issuer, each) for each in offered):
        raise SignInRefused(f"the server names {one_line(offered[0], 100)} and not {auth.issuer}, as `issuer` wants")
    chosen = next((each for each in offered if auth.issuer is None or issuers_match(auth.issuer, each)), auth.issuer)
    expected = chosen or "{0.scheme}://{0.netloc}".format(urlsplit(url))
    failed = 0
    for address in build_oauth_authorization_server_metadata_discovery_urls(chosen, url):
        answer = await _asked(address, dialer)
        failed = failed or _failure(answer)
        _, found = await handle_auth_metadata_response(answer)
        if found is not None:
            _require_issuer(found, expected)
            return found
    why = f": HTTP {failed}" if failed else ""
    raise SignInRefused(f"{one_line(expected, 100)} does not say how to sign in there{why}")


def _failure(answer: httpx2.Response) -> int:
    """Return the status of a fault that may pass; some gateways answer so where there is nothing."""
    return answer.status_code if answer.status_code >= 500 or answer.status_code == 429 else 0


def _require_issuer(found: OAuthMetadata, expected: str) -> None:
    """Raise SignInRefused for metadata of another issuer; `https://host` and `https://host/` are the same one."""
    if not issuers_match(str(found.issuer), expected):
        raise SignInRefused(
            f"{one_line(expected, 100)} says that it is another issuer, {one_line(str(found.issuer), 100)}"
        )


def require_pkce(metadata: OAuthMetadata) -> None:
    """Raise SignInRefused for an issuer that does not tie a code to whoever asked for it."""
    if "S256" not in (metadata.code_challenge_methods_supported or ()):
        raise SignInRefused(f"{metadata.issuer} does not say that it supports PKCE with S256")


async def _asked(address: str, dialer: Dialer) -> httpx2.Response:
    request = create_oauth_metadata_request(address)
    return await dialer.request("GET", address, headers=dict(request.headers))


def _named_resource(url: str, described: ProtectedResourceMetadata | None) -> str:
    return resource_url_from_server_url(url) if described is None else str(described.resource)


def plain_scope(said: Any) -> str:
    """Return scopes, without what has other characters than a scope may have."""
    return " ".join(each for each in str(said or "").split() if _SCOPE.fullmatch(each))


def require_few(scope: str) -> str:
    """Return the scopes of a sign-in; raises SignInRefused where they are more than it can ask for."""
    if len(scope) > MOST_SCOPES:
        raise SignInRefused(
            f"{len(scope):,} characters of scopes are too many for one sign-in; name those to ask for as `scopes` "
            "under `auth`"
        )
    return scope


def parsed(answer: httpx2.Response) -> dict[str, Any]:
    """Return the JSON object of an answer; an empty one where there is none."""
    try:
        found = json.loads(answer.content)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
