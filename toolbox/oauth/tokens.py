"""Speak with an issuer: be known there, exchange a code, renew, and revoke."""

import math
import re
import time
from dataclasses import replace
from typing import Any, TypeGuard
from urllib.parse import urlencode

from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext, PKCEParameters, check_registration_usable
from mcp.client.auth.utils import (
    create_client_info_from_metadata_url,
    create_client_registration_request,
    handle_registration_response,
    should_use_client_metadata_url,
)
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import ValidationError

from backstay.errors import SignInRefused, ToolUnavailable
from backstay.tools.connection import Grant, client_document
from system.dialing import Dialer
from toolbox.configuration.configuration import ServerAuth
from toolbox.oauth.discovery import MOST_SCOPES, TokenEndpoints, parsed, plain_scope

_ENDED = frozenset(
    {
        "invalid_grant",
        "login_required",
        "consent_required",
        "interaction_required",
        # As GitHub, HubSpot, Slack and others say it.
        "bad_refresh_token",
        "expired_refresh_token",
        "expired_token",
        "invalid_refresh_token",
        "token_expired",
        "token_revoked",
    }
)
"""What an issuer says of the tokens or of the person when it will not renew, however often it is asked."""
_GONE = _ENDED | {
    "access_denied",
    "invalid_client",
    "unauthorized_client",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "unsupported_grant_type",
}
"""What it says then, too, unless its description says that this may pass."""
_PASSING = re.compile(
    r"(?:server|internal|gateway|unknown).?error|internal.?failure|transient|unavailable|slow.?down|too.?many|throttl"
    r"|limit.?exceeded|rate.?limit|time.?d?.?out",
    re.IGNORECASE,
)
"""What it says, with whatever status, when it may renew the next time."""
_PASSING_WORD = re.compile(r"limit.?ed|try.?again|retry", re.IGNORECASE)
"""What it calls such a fault, too; a description may say so to a person who must do something first."""
_LATER = re.compile(
    r"\b(?:re)?try.{0,60}(?:later|soon|shortly|moment|minute|second|hour)|\b(?:re)?try(?: again)?\W*(?:after|in)\W*\d"
    r"|\bbusy\b",
    re.IGNORECASE,
)
_SIGN_IN = re.compile(
    r"\b(?:sign|log)(?:ing)?.?(?:back.?)?(?:in|on)\b|\bre.?auth|expired|revoked"
    r"|\b(?:authori[sz]e|authenticate|connect) (?:again|the app|your)",
    re.IGNORECASE,
)
"""What it says to a person, often beside "try again later", where only they can help."""
_AGREE = re.compile(r"\bre.?connect|consent", re.IGNORECASE)
"""The same, unless it names a fault of its own."""
_DEAD_TOKEN = re.compile(
    r"(?!.*(?:grant.?type|secret|credential|assertion|certificate|\bflow\b|for (?:this|the) (?:app|client)))"
    r".*(?:refresh.?token\b.{0,40}(?:invalid|not.?valid|expired|revoked|unknown|not.?found|inactive)"
    r"|(?:invalid|expired|revoked|unknown|inactive).{0,20}refresh.?token)"
    r"|(?!.*(?:client|secret|credential|assertion|certificate|\bapp|trial|licen[cs]e|\bkey)).*(?:expired|revoked)",
    re.IGNORECASE | re.DOTALL,
)
"""How it describes a refresh token that holds no more, where it blames the client for it, as Atlassian does."""
_REFUSES = frozenset({400, 401})
"""With what it refuses the request itself, in whatever words it likes."""
_GIVEN = frozenset({200, 201})
_SPOKEN = _GIVEN | _REFUSES | {403}
"""With what it speaks of the request in words that are known; any other status is one of its host."""
_METHODS = ("none", "client_secret_basic", "client_secret_post")
"""How we can prove to an issuer who we are, the way that is asked for first where it has several."""
_LATER_METHOD = "method_with_secret"
"""In what is kept of a client: how its issuer would take a secret, if it had one."""
_BOUND = frozenset({"dpop", "mac", "pop"})
_LONGEST_TOKEN = 64 * 1024
_SHORTEST = 8
_LONGEST_LIFE_S = 3650 * 86_400
"""No number of seconds beyond this is believed; it could be one that no time can hold."""
_KNOWN_FAULTS = _GONE | {"server_error", "temporarily_unavailable"}


class GrantGone(Exception):
    """The issuer renews these tokens no more."""


def known_client(auth: ServerAuth, metadata: OAuthMetadata, return_to: str) -> dict[str, Any] | None:
    """Return how backstay is known to an issuer without a registration; None where it is not."""
    if auth.client_id is not None:
        secret_method = _secret_method(metadata)
        method = "none" if auth.client_secret is None else secret_method
        known = {"client_id": auth.client_id, "client_secret": auth.client_secret, "token_endpoint_auth_method": method}
        return {**known, _LATER_METHOD: secret_method}
    if should_use_client_metadata_url(metadata, auth.client_metadata_url):
        return _plain(create_client_info_from_metadata_url(str(auth.client_metadata_url)))
    if not auth.register_client or metadata.registration_endpoint is None:
        raise SignInRefused(
            f"{metadata.issuer} knows no client of ours: register one there, with the return address {return_to}, "
            "and give its `client_id` under `auth`"
        )
    return None


async def register(metadata: OAuthMetadata, return_to: str, scope: str, dialer: Dialer) -> dict[str, Any]:
    """Register backstay with an issuer; raises SignInRefused."""
    kind = "web" if return_to.startswith("https:") else "native"
    offered = metadata.token_endpoint_auth_methods_supported or _METHODS
    method = next((each for each in _METHODS if each in offered), _METHODS[0])
    said = {"application_type": kind, "scope": scope or None, "token_endpoint_auth_method": method}
    told = OAuthClientMetadata.model_validate(client_document("", [return_to]) | said)
    request = create_client_registration_request(metadata, told, "")
    answer = await dialer.request("POST", str(request.url), content=request.content, headers=_JSON)
    try:
        client = await handle_registration_response(answer)
        check_registration_usable(client)
    except OAuthRegistrationError:
        raise SignInRefused(f"{metadata.issuer} does not register us: HTTP {answer.status_code}") from None
    if client.client_secret is not None and client.token_endpoint_auth_method is None:
        client.token_endpoint_auth_method = _secret_method(metadata)
    return _plain(client)


def with_secret(client: dict[str, Any], secret: str | None) -> dict[str, Any]:
    """Return a client with the secret that it has now, which is sent also where it had none as its sign-in began."""
    method = client.get("token_endpoint_auth_method") or "none"
    if secret is not None and method == "none":
        method = client.get(_LATER_METHOD, "client_secret_basic")
    return {**client, "client_secret": secret, "token_endpoint_auth_method": method}


def _secret_method(metadata: OAuthMetadata) -> str:
    """Return how a secret is sent to an issuer."""
    offered = metadata.token_endpoint_auth_methods_supported or ["client_secret_basic"]
    return "client_secret_basic" if "client_secret_basic" in offered else "client_secret_post"


def departure(found: TokenEndpoints, client: dict[str, Any], return_to: str, state: str) -> tuple[str, str]:
    """Return the address at which a person signs in, and the verifier that only we know."""
    pkce = PKCEParameters.generate()
    asked = {
        "response_type": "code",
        "client_id": client["client_id"],
        "redirect_uri": return_to,
        "state": state,
        "code_challenge": pkce.code_challenge,
        "code_challenge_method": "S256",
        "resource": found.resource,
    }
    asked |= {"scope": found.scope} if found.scope else {}
    # Without it, an issuer of OpenID Connect gives no token that can be renewed.
    asked |= {"prompt": "consent"} if "offline_access" in found.scope.split() else {}
    address = str(found.metadata.authorization_endpoint)
    return f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}", pkce.code_verifier


async def exchange(sealed: dict[str, Any], code: str, dialer: Dialer) -> Grant:
    """Return what a code is worth; raises GrantGone, ToolUnavailable or httpx2.HTTPError."""
    said = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": sealed["return_to"],
        "code_verifier": sealed["verifier"],
        "resource": sealed["resource"],
    }
    empty = Grant(
        issuer=sealed["issuer"],
        resource=sealed["resource"],
        scope=sealed["scope"],
        access_token="",
        token_endpoint=sealed["token_endpoint"],
        revocation_endpoint=sealed["revocation_endpoint"],
        client=sealed["client"],
    )
    return await _asked(empty, said, dialer)


async def renew(grant: Grant, dialer: Dialer) -> Grant:
    """Return the tokens that follow; raises GrantGone, ToolUnavailable or httpx2.HTTPError."""
    if grant.client.get("grant") == "client_credentials":
        said = {"grant_type": "client_credentials"}
        said |= {"scope": grant.scope} if grant.scope else {}
    elif grant.refresh_token is None:
        raise GrantGone("no refresh token")
    else:
        said = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
    return await _asked(grant, {**said, "resource": grant.resource}, dialer)


async def revoke(grant: Grant, dialer: Dialer) -> bool:
    """Have an issuer revoke the tokens; return whether it says that it did."""
    if grant.revocation_endpoint is None:
        return False
    done = True
    for kind, token in (("refresh_token", grant.refresh_token), ("access_token", grant.access_token)):
        if token:
            data, headers = _authenticated(grant, {"token": token, "token_type_hint": kind})
            answer = await dialer.request("POST", grant.revocation_endpoint, data=data, headers=headers)
            done = done and answer.status_code == 200
    return done


async def _asked(grant: Grant, said: dict[str, str], dialer: Dialer) -> Grant:
    data, headers = _authenticated(grant, said)
    # The issuer counts from no earlier moment than this.
    at = time.time()
    answer = await dialer.request("POST", grant.token_endpoint, data=data, headers=headers)
    told = parsed(answer)
    # HubSpot has no `error`, and names it in `status`.
    said_fault = told.get("error", told.get("status"))
    fault = fault_word(said_fault)
    may_pass = _may_pass(told)
    if fault == "unauthorized_client" and "refresh_token" in said and _blames_token(told):
        fault = "invalid_grant"
    if (fault in _ENDED or (fault in _GONE and not may_pass)) and answer.status_code in _SPOKEN:
        raise GrantGone(fault)
    if answer.status_code in _REFUSES and _is_said(told.get("error")) and not may_pass:
        raise GrantGone(f"HTTP {answer.status_code}, in words that are not known")
    if answer.status_code not in _GIVEN or fault:
        raise ToolUnavailable(f"{grant.issuer} gives no tokens now: {fault or f'HTTP {answer.status_code}'}")
    try:
        given = _token(told)
    except ValueError as error:
        raise ToolUnavailable(f"{grant.issuer} gives no tokens now: {error}") from None
    return replace(
        grant,
        access_token=given.access_token,
        refresh_token=given.refresh_token or grant.refresh_token,
        expires_at=None if given.expires_in is None else at + given.expires_in,
        scope=_granted(grant.scope, given.scope),
    )


def _granted(asked: str, said: str | None) -> str:
    """Return what was granted: what was asked for, unless an issuer says otherwise, and no more than can be kept."""
    scope = asked if said is None else plain_scope(said)
    return scope if len(scope) <= MOST_SCOPES else asked


def _token(told: dict[str, Any]) -> OAuthToken:
    """Return the tokens that an issuer gives; raises ValueError with the name of a field that cannot be used."""
    if str(told.get("token_type")).lower() in _BOUND:
        raise ValueError("its tokens are bound to a key (token_type), which is not supported")
    # Some name the kind after its owner, such as "user" or "bot": it is sent as a bearer token all the same.
    meant = {**told, "token_type": "Bearer", "expires_in": _seconds(told.get("expires_in"))}
    if isinstance(scope := told.get("scope"), list):
        meant["scope"] = " ".join(map(str, scope))
    try:
        given = OAuthToken.model_validate(meant)
    except ValidationError as error:
        raise ValueError(f"its answer has no {error.errors()[0]['loc'][0]} that can be used") from None
    for name, token in (("access_token", given.access_token), ("refresh_token", given.refresh_token)):
        plain = not token or (token.isascii() and token.isprintable() and " " not in token)
        if not plain or not _SHORTEST <= len(token or given.access_token) <= _LONGEST_TOKEN:
            raise ValueError(f"its answer has no {name} that can be used")
    return given


def _seconds(said: Any) -> int | None:
    """Return for how long tokens hold; None where the issuer says no number."""
    try:
        seconds = float(said)
    except OverflowError:
        return _LONGEST_LIFE_S
    except (TypeError, ValueError):
        return None
    return None if math.isnan(seconds) else int(min(max(0.0, seconds), _LONGEST_LIFE_S))


def _authenticated(grant: Grant, said: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    client = OAuthClientInformationFull.model_validate(grant.client)
    described = OAuthClientMetadata.model_validate({"redirect_uris": ["http://127.0.0.1/"]})
    context = OAuthContext(grant.resource, described, _NOTHING, None, None, client_info=client)
    try:
        data, headers = context.prepare_token_auth({**said, "client_id": client.client_id}, dict(_FORM))
    except (OAuthTokenError, OAuthFlowError):
        raise GrantGone("the client cannot be authenticated") from None
    return data, headers


def fault_word(said: Any) -> str:
    """Return what an issuer calls a fault, where it is a word that is known; its own words go nowhere."""
    word = said.lower().replace("-", "_") if isinstance(said, str) else ""
    return word if word in _KNOWN_FAULTS else ""


def _may_pass(told: dict[str, Any]) -> bool:
    """Return whether an issuer refuses in words that say that it may grant the same the next time."""
    error, described = told.get("error"), told.get("error_description")
    if _is_said(error) and (_PASSING.search(error) or _PASSING_WORD.search(error)):
        return True
    if not _is_said(described) or _SIGN_IN.search(described):
        return False
    is_later = _LATER.search(described) is not None and not _AGREE.search(described)
    return is_later or _PASSING.search(described) is not None


def _blames_token(told: dict[str, Any]) -> bool:
    """Return whether an issuer that refuses the client describes a refresh token that holds no more."""
    described = told.get("error_description")
    return _is_said(described) and _DEAD_TOKEN.match(described) is not None


def _is_said(word: Any) -> TypeGuard[str]:
    return isinstance(word, str) and bool(word.strip())


def _plain(client: OAuthClientInformationFull) -> dict[str, Any]:
    kept = {"client_id", "client_secret", "client_secret_expires_at", "token_endpoint_auth_method"}
    return client.model_dump(mode="json", include=kept)


_FORM = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
_JSON = {"content-type": "application/json", "accept": "application/json"}
_NOTHING: Any = None
