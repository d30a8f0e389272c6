"""Offer each user the servers that they have added: opened when needed, guarded, and trusted in nothing."""

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from backstay.errors import ToolUnavailable
from backstay.redaction.redactor import Redactor
from backstay.tools.own_server import NOT_THEIRS, OwnServer
from backstay.tools.tool import Safety
from system.dialing import GuardedTransport
from toolbox.configuration.configuration import ServerEntry
from toolbox.mcp.open_servers import OpenServer, OpenServers
from toolbox.mcp.provider import McpProvider
from toolbox.mcp.scrubbed_server import ScrubbedServer
from toolbox.mcp.scrubbing import ListingNumbers, Scrubber, secrets_in, secrets_in_header
from toolbox.mcp.transports import http_transports
from toolbox.own_servers.registry import UserServerRegistry
from toolbox.providers.answer import Answer
from toolbox.providers.declaration import Declaration
from toolbox.providers.listing import Listing
from toolbox.providers.provider import Provider, ProviderCall
from toolbox.providers.server_tasks import TaskRequest

_MOST_OPEN = 200
_CONCURRENCY = 8
_NOWHERE = "about:blank"
"""Stands for an address that no key opens any more; every use of one is refused."""
_OUTWARD = {"egress": True, "safety": Safety.RESTRICTED_WRITE}
"""All that is declared of such a tool, and of those for its resources and prompts: what it is called with leaves, and
it may change something. Any other tool asks."""


class OwnProviders:
    """Open the servers of users, each as its own user has it."""

    def __init__(self, registry: UserServerRegistry, secrets: Collection[str] = ()) -> None:
        """`secrets` are those of the toolbox."""
        self._registry = registry
        self._secrets = frozenset(secrets)
        self._lists = ListingNumbers()
        self._open = OpenServers["OwnServerProvider"](_MOST_OPEN)

    async def of(self, owner: str) -> dict[str, Provider]:
        """Return a user's servers as they are now, by the names of their providers."""
        found = await self._registry.servers(owner) if owner else []
        known = {server.provider for server in found}
        self._open.end_where(lambda name, opened: opened.owner == owner and name not in known)
        return {server.provider: self._opened(server) for server in found}

    async def find(self, owner: str, provider: str) -> Provider:
        """Return one of a user's servers; raises ToolUnavailable for any other."""
        found = (await self.of(owner)).get(provider)
        if found is None:
            raise ToolUnavailable(f"{provider}: {NOT_THEIRS}")
        return found

    async def close(self) -> None:
        """Close all that is open."""
        await self._open.close()

    def _opened(self, server: OwnServer) -> "OwnServerProvider":
        return self._open.get(
            server.provider, lambda: OwnServerProvider(server, self._registry, self._secrets, self._lists)
        )


class OwnServerProvider(OpenServer):
    """Offer one server of one user to that user."""

    kind = "mcp"

    def __init__(
        self, server: OwnServer, registry: UserServerRegistry, secrets: Collection[str], lists: ListingNumbers
    ) -> None:
        """Open nothing yet."""
        super().__init__()
        self.name = server.provider
        self.owner = server.user_id
        self._url, self._registry, self._lists = server.url, registry, lists
        hidden = secrets_of(server)
        self._dialer = registry.dialer(server.url)
        entry = ServerEntry(url=server.url or _NOWHERE, headers=dict(server.headers))
        redactor = Redactor({*secrets, *hidden})
        inner = McpProvider(
            self.name,
            http_transports(entry, inner=partial(GuardedTransport, self._dialer, server.url)),
            url=server.url,
            most=_CONCURRENCY,
            redactor=lambda: redactor,
            look_up=self._dialer.look_up,
        )
        self._inner = ScrubbedServer(inner, Scrubber(hidden))

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return the tools; where the operator allows its host no more, none, and why."""
        if fault := self._registry.fault_of(self._url):
            return self._lists.numbered(Listing(reason=fault))
        with self.used():
            return self._listed(await self._inner.list(fresh=fresh))

    async def wait_started(self, patience_s: float) -> None:
        """Wait for a server that is starting."""
        if not self._registry.fault_of(self._url):
            with self.used():
                await self._inner.wait_started(patience_s)

    async def call(self, call: ProviderCall) -> Answer:
        """Make a call; the server cannot repeat what it was called with."""
        self._require_allowed()
        with self.used():
            return await self._inner.call(call.relisted(self._listed))

    async def follow(self, request: TaskRequest) -> Answer:
        """Ask about a task by which the server has answered."""
        self._require_allowed()
        with self.used():
            return await self._inner.follow(request)

    async def close(self) -> None:
        """End the connection to the server."""
        await self._inner.close()
        self._dialer.close()

    def _require_allowed(self) -> None:
        if fault := self._registry.fault_of(self._url):
            raise ToolUnavailable(f"{self.name}: {fault}")

    def _listed(self, found: Listing) -> Listing:
        tools = tuple(
            replace(tool, declared=(tool.declared or Declaration()).model_copy(update=_OUTWARD)) for tool in found.tools
        )
        return self._lists.numbered(replace(found, tools=tools, problems=tuple(found.problems), connection=self.name))


def secrets_of(server: OwnServer) -> frozenset[str]:
    """Return what a server must not repeat: its headers, and what of its address could let somebody in."""
    return frozenset().union(*map(secrets_in_header, server.headers.values()), secrets_in(server.url))
