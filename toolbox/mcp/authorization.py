"""Let requests to an MCP server carry the token of one user, and of nobody else."""

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Protocol

import httpx2

from backstay.errors import BackstayError
from backstay.tools.connection import Connection
from system.dialing import origin_of
from toolbox.oauth.discovery import wanted_scope


class TokenSource(Protocol):
    """Know which token a call of a user is made with."""

    async def usable(self, user_id: str, provider: str) -> Connection | None:
        """Return a connection with a token that holds now; None where the user must sign in."""
        ...

    async def renewed(self, known: Connection) -> Connection | None:
        """Return what follows a connection whose token was refused."""
        ...

    def link(self, user_id: str, provider: str) -> tuple[str | None, str]:
        """Return where a user signs in, where there is a page, and what marks a question about it as ours."""
        ...

    async def refused(self, known: Connection, wanted: str) -> None:
        """Keep that a server takes a token no more, or wants more to be allowed."""
        ...


class Authorization(httpx2.Auth):
    """Add the token of one user to each request, and renew it once where it is refused.

    Nothing is raised here: the MCP client ends when a request of it does, and with it every other call.
    """

    def __init__(
        self,
        tokens: TokenSource,
        user_id: str,
        provider: str,
        url: str,
        *,
        bears: bool = True,
        noted: Callable[[str], None] | None = None,
    ) -> None:
        """`url` is the only server that gets the token; with an address of the user's own, it `bears` none.

        `noted` hears of each token before the server does.
        """
        self._tokens, self._bears, self._noted = tokens, bears, noted
        self._named = user_id, provider
        self._origin = origin_of(url)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Send a request with the token, and once more with the next one."""
        known = await self._usable() if origin_of(str(request.url)) == self._origin else None
        response = yield self._with_token(request, known)
        if known is None:
            return
        if response.status_code == 401:
            fresh = await self._renewed(known)
            if fresh is None:
                # It has ended, or could not be renewed just now; of that nothing is kept.
                return
            if not self._bears and _token_of(fresh) != _token_of(known):
                # The server is at another address now, which is opened with the next call.
                return
            known = fresh
            response = yield self._with_token(request, known)
        wanted = wanted_scope(response)
        if response.status_code == 401 or wanted:
            with suppress(BackstayError):
                await self._note(known, wanted)

    async def _note(self, known: Connection, wanted: str) -> None:
        now = await self._tokens.usable(*self._named)
        if now is not None and (now.id, now.version) == (known.id, known.version):
            await self._tokens.refused(known, wanted)

    async def _usable(self) -> Connection | None:
        with suppress(BackstayError):
            return await self._tokens.usable(*self._named)
        return None

    async def _renewed(self, known: Connection) -> Connection | None:
        with suppress(BackstayError):
            return await self._tokens.renewed(known)
        return None

    def _with_token(self, request: httpx2.Request, known: Connection | None) -> httpx2.Request:
        if self._bears and known is not None and known.grant is not None:
            if self._noted is not None:
                self._noted(_token_of(known))
            request.headers["Authorization"] = f"Bearer {_token_of(known)}"
        return request


def _token_of(known: Connection) -> str:
    return "" if known.grant is None else known.grant.access_token
