"""MCP servers that users have added for themselves, and who keeps them."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

OWN = "own-"
"""How the provider of every such server begins, and no other."""
NOT_THEIRS = "its user has removed this server, or the operator no longer allows servers of users"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """Hold one server that a user has added; a `repr` shows neither its address nor its headers."""

    user_id: str
    name: str
    """What its user calls it."""
    provider: str
    """How its tools begin; no other server, of whichever user, has ever had it."""
    host: str
    added_at: float
    url: str = field(repr=False)
    """Empty where no key opens what was sealed of it any more."""
    headers: Mapping[str, str] = field(repr=False)

    def told(self) -> dict[str, Any]:
        """Return what people and programs may know of it."""
        return {
            "name": self.name,
            "provider": self.provider,
            "user": self.user_id,
            "host": self.host,
            "headers": sorted(self.headers),
            "added_at": self.added_at,
        }


class OwnServerStore(Protocol):
    """Keep such servers for all workers, as `store.own_servers.OwnServers` does."""

    listed: Callable[[str | None], Awaitable[list[OwnServer]]]
    removed: Callable[[str, str], Awaitable[str]]
    added: Any


class OwnServerRegistry(Protocol):
    """Add, list and remove the servers of users, within what the operator allows."""

    async def add(self, user_id: str, name: str, url: str, headers: Iterable[tuple[str, str]]) -> OwnServer:
        """Add a server; raises ArgumentsInvalid naming the field."""
        ...

    async def of_user(self, user_id: str) -> list[dict[str, Any]]:
        """Return what is told of a user's servers, each with why it is `refused` now, if it is."""
        ...

    async def remove(self, user_id: str, name: str) -> str:
        """Forget a server, with all that was sealed of it; return its provider, or nothing without one."""
        ...
