"""A person's permission for backstay to act at a server in their name, and who has the tokens for it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from backstay.tools.own_server import OwnServerStore

SERVICE = ""
"""The user of connections that belong to the operator: no person has this name."""
SIGN_IN_S = 600.0
"""How long a sign-in that was begun can be finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Hold the tokens that a sign-in has brought, and where they are renewed; a `repr` shows none of them."""

    issuer: str
    """Who gave them; they are renewed and revoked there and nowhere else."""
    resource: str
    """The only server that they are sent to."""
    scope: str = ""
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    """When the access token ends, in unix seconds; None where its issuer did not say."""
    token_endpoint: str
    revocation_endpoint: str | None = None
    client: dict[str, Any] = field(repr=False)
    """How backstay is known to the issuer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Hold one connection of one user to one server."""

    user_id: str
    provider: str
    id: str
    """Names the sign-in; another one has another name, also of the same person."""
    version: int
    """Counts renewals."""
    state: Literal["connected", "ended"]
    """`ended`: the issuer renews it no more, or the server refuses it, until the person signs in again."""
    wanted: str = ""
    """What the server wants to be allowed beside what it is."""
    connected_at: float
    refreshed_at: float
    ends_at: float | None = None
    """After this it is not renewed, whatever its issuer would say."""
    grant: Grant | None = field(repr=False)
    """None once its issuer renews it no more."""

    def told(self) -> dict[str, Any]:
        """Return what people and programs may know of it."""
        grant = self.grant
        return {
            "provider": self.provider,
            "user": self.user_id,
            "state": self.state,
            "issuer": "" if grant is None else grant.issuer,
            "scope": "" if grant is None else grant.scope,
            "connected_at": self.connected_at,
            "refreshed_at": self.refreshed_at,
            "ends_at": self.ends_at,
        }


@dataclass(frozen=True, slots=True)
class Departure:
    """Lead a person to where they sign in; nothing is granted by it."""

    url: str = field(repr=False)
    host: str
    """Where that is, for people."""


def client_document(client_id: str, return_to: Sequence[str]) -> dict[str, Any]:
    """Return what backstay says of itself to issuers that read documents instead of registering clients."""
    return {
        "client_id": client_id,
        "client_name": "backstay",
        "redirect_uris": list(return_to),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


class ConnectionStore(Protocol):
    """Keep connections for all workers, as `store.connections.Connections` does."""

    get: Callable[[str, str], Awaitable[Connection | None]]
    listed: Callable[[str | None], Awaitable[list[Connection]]]
    forget: Callable[[str, str], Awaitable[Connection | None]]
    claim: Callable[[Connection, float], Awaitable[str]]
    unclaimed: Callable[[Connection, str], Awaitable[None]]
    renewed: Callable[[Connection, str, Grant | None], Awaitable[bool]]
    begin_sign_in: Callable[[str, str, str, dict[str, Any]], Awaitable[None]]
    take_sign_in: Callable[[str], Awaitable[tuple[str, str, dict[str, Any]] | None]]
    client: Callable[[str, str, str], Awaitable[dict[str, Any] | None]]
    keep_client: Callable[[str, str, str, dict[str, Any] | None], Awaitable[None]]
    mark: Callable[[str, str], str]
    connect: Any
    refused: Any


class ConnectionPlace(NamedTuple):
    """Say where connections are kept, and where people find the page, if there is one."""

    store: ConnectionStore
    page: str | None = None
    own_servers: OwnServerStore | None = None
    """Who keeps the servers that users have added for themselves."""


class SignIns(Protocol):
    """Let people sign in at servers, and end what they have let backstay do there."""

    @property
    def providers(self) -> Sequence[str]:
        """Return the servers at which people sign in."""
        ...

    def link(self, user_id: str, provider: str) -> tuple[str | None, str]:
        """Return where a user signs in, where there is a page, and what marks a question about it as ours."""
        ...

    async def begin(self, user_id: str, provider: str, return_to: str) -> Departure:
        """Begin a sign-in that ends at our own address `return_to`; raises SignInRefused."""
        ...

    async def finish(self, user_id: str, provider: str, said: dict[str, str]) -> Connection:
        """Take what came back with a person; raises SignInRefused."""
        ...

    async def of_user(self, user_id: str) -> list[Connection]:
        """Return the connections of one user."""
        ...

    async def disconnect(self, user_id: str, provider: str) -> bool | None:
        """Forget a connection and have it revoked.

        Return whether its issuer did that; None where there was no connection.
        """
        ...
