"""Keep what users let backstay do at servers: begin and finish sign-ins, renew tokens once for all, and end them."""

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import httpx2
import structlog
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.client.auth.utils import issuers_match, union_scopes, validate_authorization_response_iss
from mcp.shared.auth import OAuthMetadata

from backstay.errors import SignInRefused, StoreUnavailable, ToolUnavailable
from backstay.shown import NOBODY, one_line
from backstay.tools.connection import SERVICE, SIGN_IN_S, Connection, ConnectionStore, Departure, Grant
from system.dialing import AddressRefused, Dialer
from toolbox.configuration.configuration import ServerEntry
from toolbox.oauth.account_service import UserAccounts
from toolbox.oauth.discovery import TokenEndpoints, discover, is_for, require_few, require_pkce
from toolbox.oauth.tokens import (
    GrantGone,
    departure,
    exchange,
    fault_word,
    known_client,
    register,
    renew,
    revoke,
    with_secret,
)

RENEWAL_S = 45.0
"""How long one worker alone may renew a connection; longer than all its requests may take."""
REGISTERED_S = SIGN_IN_S
"""So long, at least, a registration is used, and whoever left with it is waited for, before there is another."""
LEFT = "left"
"""In what is kept of a registration: since when somebody has left with it, and nobody has come back."""
_BEFORE_END_S = 30.0
"""So long before its end, at most, a token is renewed."""
_SHARE = 0.1
_LOOK_S = 0.05
_AGAIN_S = 0.2
_MOST_SAID = 4000
_SERVICES = "client_credentials"
_OF_CLIENTS = frozenset({"invalid_client", "unauthorized_client"})
"""What an issuer says when it refuses the client, whoever has granted what."""
_MAY_BE = {
    "client_secret": "may have expired or been replaced",
    "client_id": "may be known there no more, or need a `client_secret`",
    "client_metadata_url": "may be an address that it cannot fetch",
}
"""Why an issuer may refuse the operator's client, by the field of `auth` that says who it is."""
_ENDED = "this sign-in has ended, or was finished before; begin it again under Connections"
_FAULTS = (AddressRefused, OAuthFlowError, GrantGone, ToolUnavailable, httpx2.HTTPError)
_log = structlog.get_logger("toolbox")


class OAuthConnections:
    """Sign users in at the servers of one toolbox, and say with which token a call is made."""

    def __init__(self, servers: Mapping[str, ServerEntry], store: ConnectionStore, page: str | None = None) -> None:
        """Take the servers of toolbox.json; those without `auth` are left out. `page` is where people find ours."""
        self._page = page
        self._servers = {
            name: server
            for name, server in servers.items()
            if server.auth is not None and server.url is not None and not server.disabled
        }
        self._store = store
        self._renewing: dict[tuple[str, str], asyncio.Task[Connection | None]] = {}
        self._dialers: dict[str, Dialer] = {}
        self._making = asyncio.Lock()
        """Held while a connection of the operator's own is made, so that calls at once make one."""

    @property
    def providers(self) -> Sequence[str]:
        """Return the servers at which people sign in."""
        services = {name for name, server in self._servers.items() if server.auth and server.auth.grant == _SERVICES}
        return sorted(self._servers.keys() - services)

    def link(self, user_id: str, provider: str) -> tuple[str | None, str]:
        """Return where a user signs in, where there is a page, and what marks a question about it as ours."""
        place = None if self._page is None else f"{self._page.rstrip('/')}/connections#{quote(provider)}"
        return place, self._store.mark(user_id, provider)

    async def begin(self, user_id: str, provider: str, return_to: str) -> Departure:
        """Begin a sign-in that ends at our own address `return_to`; raises SignInRefused."""
        self._require(user_id, provider)
        try:
            return await self._begun(user_id, provider, return_to)
        except _FAULTS as error:
            raise _refusal(provider, error) from None

    async def _begun(self, user_id: str, provider: str, return_to: str) -> Departure:
        if (service := self.account_service(provider)) is not None:
            state = secrets.token_urlsafe(32)
            found = await service.departure(user_id, return_to, state)
            await self._store.begin_sign_in(state, user_id, provider, {})
            return found
        found = await self._discovered(provider)
        found = replace(found, scope=require_few(self._scope(await self._store.get(user_id, provider), found)))
        require_pkce(found.metadata)
        client = await self._client(provider, found, return_to)
        state = secrets.token_urlsafe(32)
        url, verifier = departure(found, client, return_to, state)
        metadata = found.metadata
        sealed = {
            "verifier": verifier,
            "issuer": found.issuer,
            "resource": found.resource,
            "scope": found.scope,
            "return_to": return_to,
            "client": client,
            "metadata": metadata.model_dump(mode="json", exclude_none=True),
            "token_endpoint": str(metadata.token_endpoint),
            "revocation_endpoint": _text(metadata.revocation_endpoint),
        }
        await self._store.begin_sign_in(state, user_id, provider, sealed)
        return Departure(url, self.dialer(provider).require(url.partition("?")[0])[1])

    async def finish(self, user_id: str, provider: str, said: dict[str, str]) -> Connection:
        """Take what came back with a person; raises SignInRefused.

        The sign-in is over then, also where it is refused: a caller that brings its state a second time gets nothing.
        """
        given = {name: value for name, value in said.items() if len(value) <= _MOST_SAID}
        taken = await self._store.take_sign_in(given.get("state", ""))
        if taken is None:
            raise SignInRefused(_ENDED)
        who, where, sealed = taken
        if who != user_id:
            raise SignInRefused("somebody else began this sign-in; it is over, and nothing was connected")
        if where != provider or provider not in self.providers:
            raise SignInRefused("this sign-in was begun at another server; it is over, and nothing was connected")
        grant = await self._granted(user_id, provider, given, sealed)
        connected: Connection = await self._store.connect(user_id, provider, grant, ends_at=self._ends(provider))
        _log.info("connection.made", provider=provider, issuer=grant.issuer)
        return connected

    async def _granted(self, user_id: str, provider: str, given: dict[str, str], sealed: dict[str, Any]) -> Grant:
        """Return what a person who has come back has granted; raises SignInRefused."""
        if (service := self.account_service(provider)) is not None:
            try:
                return await service.grant(user_id)
            except _FAULTS as error:
                raise _refusal(provider, error) from None
        try:
            validate_authorization_response_iss(given.get("iss"), OAuthMetadata.model_validate(sealed["metadata"]))
        except OAuthFlowError:
            raise SignInRefused("another issuer answered than the one that was asked; nothing was connected") from None
        # An issuer sends back nobody for a client that it does not know.
        if given.get("error") not in _OF_CLIENTS:
            await self._came_back(provider, sealed["issuer"], sealed["client"])
        if "error" in given:
            word = fault_word(given.get("error"))
            raise SignInRefused(f"{sealed['issuer']} did not sign you in{f': {word}' if word else ''}")
        if not given.get("code"):
            raise SignInRefused("no code came back; begin again")
        try:
            return await exchange(sealed, given["code"], self.dialer(provider))
        except _FAULTS as error:
            await self._forget_client(provider, sealed["issuer"], sealed["client"], error)
            raise _refusal(provider, self._meant(provider, sealed["client"], error)) from None

    def account_service(self, provider: str) -> UserAccounts | None:
        """Return who gives an address to each user of a server; None where they sign in at it themselves."""
        server = self._servers[provider]
        auth = None if server.auth is None else server.auth.account_service
        return None if auth is None else UserAccounts(str(server.url), auth, self.dialer(provider))

    async def of_user(self, user_id: str) -> list[Connection]:
        """Return the connections of one user."""
        listed = await self._store.listed(user_id)
        return [each if self._fits(each) else replace(each, state="ended") for each in listed]

    async def disconnect(self, user_id: str, provider: str) -> bool | None:
        """Forget a connection and have it revoked.

        Return whether its issuer did that; None where there was no connection.
        """
        found = await self._store.forget(user_id, provider)
        if found is None:
            return None
        _log.info("connection.forgotten", provider=provider)
        return found.grant is not None and await self._revoked(provider, found.grant)

    async def usable(self, user_id: str, provider: str) -> Connection | None:
        """Return a connection with a token that holds now, renewed if need be; None where the user must sign in.

        Raises ToolUnavailable when it cannot be renewed just now.
        """
        found = await self._known(user_id, provider)
        if found is None or found.grant is None:
            return None
        if not _is_due(found):
            return found
        return await self.renewed(found)

    async def renewed(self, known: Connection) -> Connection | None:
        """Return what follows a connection whose token is not good any more; all who ask at once share one renewal."""
        key = known.user_id, known.provider
        task = self._renewing.get(key)
        if task is None or task.done():
            task = self._renewing[key] = asyncio.create_task(self._renewed(known))
            task.add_done_callback(lambda done: self._forget_task(key, done))
        found = await asyncio.shield(task)
        if found is not None and found.id == known.id and found.version == known.version:
            # The task that was shared had begun for an older version.
            return await self._renewed(known)
        return found

    async def refused(self, known: Connection, wanted: str) -> None:
        """Keep that a server takes these tokens no more, or wants more to be allowed."""
        await self._store.refused(known, wanted=wanted)

    async def close(self) -> None:
        """Look up no name any more."""
        for task in list(self._renewing.values()):
            # A renewal that is under way may have used the only token that there is: its end must be kept.
            with suppress(Exception):
                await asyncio.wait_for(asyncio.shield(task), RENEWAL_S)
        for dialer in self._dialers.values():
            dialer.close()

    async def _known(self, user_id: str, provider: str) -> Connection | None:
        if provider not in self._servers:
            return None
        found = await self._store.get(user_id, provider)
        if found is not None and not self._fits(found):
            found = None
        if user_id == SERVICE and not self._is_current(found):
            async with self._making:
                found = await self._store.get(user_id, provider)
                if found is not None and self._fits(found) and self._is_current(found):
                    return found
                return await self._own(provider, "" if found is None else found.id)
        over = found is not None and found.ends_at is not None and found.ends_at <= time.time()
        return None if found is None or over or found.state == "ended" else found

    def _fits(self, found: Connection) -> bool:
        """Return whether tokens are for the server, and of the issuer, that toolbox.json names now."""
        server = self._servers.get(found.provider)
        if found.grant is None or server is None or server.auth is None:
            return True
        named = server.auth.issuer
        return is_for(str(server.url), found.grant.resource) and (
            named is None or issuers_match(named, found.grant.issuer)
        )

    def _is_current(self, found: Connection | None) -> bool:
        """Return whether a connection of the operator's own is as toolbox.json says now; one that ended is not."""
        if found is None or found.grant is None or found.state == "ended":
            return False
        auth, client = self._servers[found.provider].auth, found.grant.client
        known = None if auth is None else (auth.client_id, auth.client_secret, list(auth.scopes))
        return (client["client_id"], client["client_secret"], client.get("scopes")) == known

    async def _own(self, provider: str, before: str) -> Connection | None:
        """Return the operator's own connection, made in place of the one before; another worker may be first."""
        auth = self._servers[provider].auth
        if auth is None or auth.grant != _SERVICES:
            return None
        try:
            found = await self._discovered(provider)
            client = known_client(auth, found.metadata, "") or {}
        except (SignInRefused, *_FAULTS) as error:
            _log.warning("connection.none", provider=provider, reason=one_line(str(error), 300))
            raise ToolUnavailable(str(_refusal(provider, error))) from None
        grant = Grant(
            issuer=found.issuer,
            resource=found.resource,
            scope=found.scope,
            access_token="",
            expires_at=0.0,
            token_endpoint=str(found.metadata.token_endpoint),
            revocation_endpoint=_text(found.metadata.revocation_endpoint),
            # The issuer may grant others, which say nothing of whether toolbox.json has changed.
            client={**client, "grant": "client_credentials", "scopes": list(auth.scopes)},
        )
        made: Connection = await self._store.connect(SERVICE, provider, grant, ends_at=None, before=before)
        return made

    async def _renewed(self, known: Connection) -> Connection | None:
        """Renew a connection, or wait for another worker that does."""
        ends = time.monotonic() + 2 * RENEWAL_S
        while time.monotonic() < ends:
            found = await self._known(known.user_id, known.provider)
            if found is None or found.grant is None:
                return None
            if (found.id, found.version) != (known.id, known.version):
                return found
            held_until = time.monotonic() + RENEWAL_S
            if token := await self._store.claim(found, RENEWAL_S):
                return await self._renew(found, found.grant, token, held_until)
            await asyncio.sleep(_LOOK_S)
        raise ToolUnavailable(f"{known.provider}: its token is being renewed elsewhere, and that takes long")

    async def _renew(self, found: Connection, grant: Grant, token: str, held_until: float) -> Connection | None:
        try:
            fresh: Grant | None = await self._fresh(found, grant)
        except GrantGone as error:
            _log.warning("connection.ended", provider=found.provider, issuer=grant.issuer, reason=str(error))
            await self._forget_client(found.provider, grant.issuer, grant.client, error)
            fresh = None
        except BaseException as error:
            await self._store.unclaimed(found, token)
            if isinstance(error, httpx2.HTTPError | AddressRefused | ToolUnavailable):
                raise ToolUnavailable(f"{found.provider}: {one_line(str(error), 300)}") from None
            raise
        if await self._stored(found, token, fresh, held_until):
            _log.debug("connection.renewed", provider=found.provider)
        elif fresh is not None and await self._store.get(found.user_id, found.provider) is None:
            # It was forgotten meanwhile, and what has just been given was not revoked with it.
            await self._revoked(found.provider, fresh)
        return await self._known(found.user_id, found.provider)

    async def _stored(self, found: Connection, token: str, fresh: Grant | None, held_until: float) -> bool:
        """Keep what a renewal has brought, trying again while no other worker may renew.

        The token that it was renewed with may be spent: without what it has brought, the person would have to sign in.
        """
        while True:
            try:
                return bool(await self._store.renewed(found, token, fresh))
            except StoreUnavailable:
                if time.monotonic() >= held_until:
                    raise
            await asyncio.sleep(_AGAIN_S)

    async def _fresh(self, found: Connection, grant: Grant) -> Grant:
        if (service := self.account_service(found.provider)) is not None:
            return await service.grant(found.user_id)
        try:
            return await renew(self._with_secret(found.provider, grant), self.dialer(found.provider))
        except GrantGone as error:
            raise self._meant(found.provider, grant.client, error) from None

    async def _revoked(self, provider: str, grant: Grant) -> bool:
        try:
            if provider not in self._servers:
                return False
            return await revoke(self._with_secret(provider, grant), self.dialer(provider))
        except (httpx2.HTTPError, AddressRefused, GrantGone):
            return False

    def _scope(self, before: Connection | None, found: TokenEndpoints) -> str:
        """Return the scopes to ask for: those of before too, if the operator names none and they are of this issuer."""
        if before is None or not self._fits(before):
            return found.scope
        grant, auth = before.grant, self._servers[before.provider].auth
        if grant is not None and not issuers_match(grant.issuer, found.issuer):
            return found.scope
        allowed = "" if grant is None or (auth is not None and auth.scopes) else grant.scope
        return union_scopes(union_scopes(allowed, before.wanted), found.scope) or ""

    async def _discovered(self, provider: str) -> TokenEndpoints:
        server = self._servers[provider]
        assert server.auth is not None and server.url is not None  # noqa: S101, PT018 - others are left out
        return await discover(server.url, server.auth, self.dialer(provider))

    async def _client(self, provider: str, found: TokenEndpoints, return_to: str) -> dict[str, Any]:
        """Return how backstay is known to an issuer; where nothing else says so, it is registered there once."""
        auth = self._servers[provider].auth
        assert auth is not None  # noqa: S101 - others are left out
        known = known_client(auth, found.metadata, return_to)
        if known is not None:
            return known
        kept: dict[str, Any] | None = await self._store.client(provider, found.issuer, return_to)
        left = time.time() if kept is None else _left(kept)
        if kept is None or _may_be_lost(kept):
            # Where that fails, it is tried again as late as if it had not.
            kept, left = await self._registered(provider, found, return_to, kept), time.time()
        await self._store.keep_client(provider, found.issuer, return_to, {**kept, LEFT: left})
        return {name: value for name, value in kept.items() if name != LEFT}

    async def _registered(
        self, provider: str, found: TokenEndpoints, return_to: str, kept: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Return a new registration; where there is none, the one of before, as long as its secret holds."""
        try:
            made = await register(found.metadata, return_to, found.scope, self.dialer(provider))
        except (SignInRefused, *_FAULTS) as error:
            if kept is None or _secret_ends(kept) <= time.time():
                raise
            _log.warning("connection.not_registered", provider=provider, reason=one_line(str(error), 300))
            return kept
        return {**made, "return_to": return_to, "registered_at": time.time()}

    async def _came_back(self, provider: str, issuer: str, client: dict[str, Any]) -> None:
        """Keep that an issuer knows a client that was registered there: it has sent somebody back."""
        if await self._is_kept(provider, issuer, client):
            await self._store.keep_client(provider, issuer, client["return_to"], client)

    async def _is_kept(self, provider: str, issuer: str, client: dict[str, Any]) -> bool:
        """Return whether a client was registered, and is the one that the next sign-in begins with."""
        return_to = client.get("return_to")
        kept = await self._store.client(provider, issuer, return_to) if return_to else None
        return kept is not None and kept["client_id"] == client["client_id"]

    def _with_secret(self, provider: str, grant: Grant) -> Grant:
        """Return a grant with the secret that the operator's client has now."""
        auth = self._servers[provider].auth
        if auth is None or auth.client_id is None or auth.client_id != grant.client.get("client_id"):
            return grant
        return replace(grant, client=with_secret(grant.client, auth.client_secret))

    def _named_by(self, provider: str, client: dict[str, Any]) -> str | None:
        """Return the field of `auth` in which the operator says who a client is; None where backstay registered it."""
        auth, known = self._servers[provider].auth, client.get("client_id")
        if auth is None or known is None:
            return None
        if auth.client_id == known:
            return "client_id" if auth.client_secret is None else "client_secret"
        return "client_metadata_url" if auth.client_metadata_url == known else None

    def _meant(self, provider: str, client: dict[str, Any], error: Exception) -> Exception:
        """Return what a fault means: where an issuer refuses the operator's client, no grant of a person has ended."""
        field = self._named_by(provider, client) if str(error) in _OF_CLIENTS else None
        if field is None:
            return error
        # Where a server refuses a token before its time, nobody is told of it.
        _log.warning("connection.client_refused", provider=provider, field=field, reason=str(error))
        return ToolUnavailable(
            f"its authorization server refuses the client of the operator ({error}): the `{field}` in "
            f"`mcpServers.{provider}.auth` {_MAY_BE[field]}"
        )

    async def _forget_client(self, provider: str, issuer: str, client: dict[str, Any], error: Exception) -> None:
        """Have backstay register itself again where an issuer knows it no more."""
        if str(error) == "invalid_client" and await self._is_kept(provider, issuer, client):
            await self._store.keep_client(provider, issuer, client["return_to"], None)

    def dialer(self, provider: str) -> Dialer:
        """Return what reaches the addresses that a server names."""
        if provider not in self._dialers:
            server = self._servers[provider]
            own = [str(server.url), *([server.auth.issuer] if server.auth and server.auth.issuer else [])]
            self._dialers[provider] = Dialer(own)
        return self._dialers[provider]

    def _ends(self, provider: str) -> float | None:
        auth = self._servers[provider].auth
        return None if auth is None or auth.days is None else time.time() + auth.days * 86_400

    def _require(self, user_id: str, provider: str) -> None:
        if provider not in self.providers:
            known = ", ".join(self.providers) or "none"
            raise SignInRefused(f"people do not sign in at {one_line(provider, 60)!r} (known: {known})")
        if user_id in {NOBODY, SERVICE}:
            raise SignInRefused(f"{NOBODY} is nobody, and has no connections")

    def _forget_task(self, key: tuple[str, str], done: "asyncio.Task[Any]") -> None:
        if self._renewing.get(key) is done:
            del self._renewing[key]
        if not done.cancelled():
            done.exception()


def _is_due(found: Connection) -> bool:
    """Return whether a token ends so soon that it is renewed first."""
    ends = None if found.grant is None else found.grant.expires_at
    if ends is None:
        return False
    return time.time() >= ends - min(_BEFORE_END_S, _SHARE * max(0.0, ends - found.refreshed_at))


def _may_be_lost(kept: dict[str, Any]) -> bool:
    """Return whether an issuer may know a client no more: its secret ends, or nobody who left with it has come back.

    An issuer that has lost a client says so on its own page, where only the person sees it.
    """
    now = time.time()
    before = now - REGISTERED_S
    ends = _secret_ends(kept) <= now + SIGN_IN_S and kept.get("registered_at", 0.0) <= before
    return ends or (LEFT in kept and _left(kept) <= before)


def _left(kept: dict[str, Any]) -> float:
    """Return since when nobody has come back; it begins now where nobody has left, or an older version kept no time."""
    left = kept.get(LEFT)
    return left if isinstance(left, float) else time.time()


def _secret_ends(kept: dict[str, Any]) -> float:
    return kept.get("client_secret_expires_at") or float("inf")


def _text(address: Any) -> str | None:
    return None if address is None else str(address)


def _refusal(provider: str, error: Exception) -> SignInRefused:
    return SignInRefused(f"{provider}: {one_line(str(error), 300)}")
