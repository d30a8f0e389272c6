"""Open the servers that toolbox.json names, those at which people sign in, and those that users have added."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backstay.errors import ToolUnavailable
from backstay.redaction.redactor import Redactor
from backstay.tools.connection import SERVICE, Connection, ConnectionPlace
from system.dialing import GuardedTransport
from toolbox.configuration.configuration import BY_SERVICE, Configuration, ProviderEntry, ServerEntry
from toolbox.providers.answer import Answer
from toolbox.providers.listing import Listing
from toolbox.providers.provider import Provider, ProviderCall

if TYPE_CHECKING:
    from toolbox.oauth.connections import OAuthConnections
    from toolbox.own_servers.providers import OwnProviders

_NO_STORE = "people sign in at it, and only what has the store open knows their connections"


def sign_ins_of(configuration: Configuration, place: ConnectionPlace | None) -> "OAuthConnections | None":
    """Return who has the tokens of users; None where no server wants any, or there is no store."""
    if place is None or not configuration.signs_in:
        return None
    from toolbox.oauth.connections import OAuthConnections  # noqa: PLC0415 - slow to load, and few toolboxes need it

    return OAuthConnections(configuration.servers, place.store, place.page)


def own_providers_of(
    configuration: Configuration, place: ConnectionPlace | None, secrets: frozenset[str]
) -> "OwnProviders | None":
    """Return who opens the servers of users; None where the operator allows none, or there is no store."""
    if configuration.users_servers is None or place is None or place.own_servers is None:
        return None
    from toolbox.own_servers.providers import OwnProviders  # noqa: PLC0415 - as above
    from toolbox.own_servers.registry import UserServerRegistry  # noqa: PLC0415 - as above

    return OwnProviders(UserServerRegistry(configuration.users_servers, place.own_servers), secrets)


class Unusable:
    """Stand for a provider that cannot be opened as it is configured."""

    kind = "none"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return no tool, and why."""
        return Listing(reason=self._reason)

    async def call(self, call: ProviderCall) -> Answer:
        """Raise ToolUnavailable with the reason."""
        raise ToolUnavailable(f"{self.name}: {self._reason}")

    async def close(self) -> None:
        """Nothing is open."""


def server_provider(
    name: str,
    server: ServerEntry,
    entry: ProviderEntry,
    environment: Mapping[str, str],
    tokens: "OAuthConnections | None",
    *,
    folder: Path,
    log: Path,
    redactor: Redactor,
) -> Provider:
    """Return a server of `mcpServers`; nothing is connected or started yet."""
    from toolbox.mcp.provider import McpProvider  # noqa: PLC0415 - slow to load, and not every toolbox has a server
    from toolbox.mcp.transports import http_transports, stdio_transport  # noqa: PLC0415 - the same

    most = 1 if entry.serial else entry.concurrency
    options: Any = {"most": most, "init_timeout": server.init_timeout, "idle_timeout": server.idle_timeout}
    if server.url is not None and server.auth is not None:
        return Unusable(name, _NO_STORE) if tokens is None else _signed_in(name, server, tokens, redactor, options)
    options["redactor"] = lambda: redactor
    if server.url is not None:
        return McpProvider(name, http_transports(server), url=server.url, **options)
    started = stdio_transport(server, environment=environment, folder=folder, log=log, redactor=redactor)
    return McpProvider(name, (started,), log=log, **options)


def _signed_in(
    name: str, server: ServerEntry, tokens: "OAuthConnections", redactor: Redactor, options: dict[str, Any]
) -> Provider:
    """Return a server at which each user signs in, or backstay itself for all of them."""
    from toolbox.mcp.authorization import Authorization  # noqa: PLC0415 - as above
    from toolbox.mcp.of_users import UserServers  # noqa: PLC0415 - as above
    from toolbox.mcp.provider import McpProvider  # noqa: PLC0415 - as above
    from toolbox.mcp.scrubbed_server import ScrubbedServer  # noqa: PLC0415 - as above
    from toolbox.mcp.scrubbing import TokenScrubber, secrets_in  # noqa: PLC0415 - as above
    from toolbox.mcp.transports import http_transports  # noqa: PLC0415 - as above

    url = str(server.url)

    def opened(place: str, ways: Any, scrubber: TokenScrubber, **more: Any) -> ScrubbedServer:
        told: dict[str, Any] = {**options, **more, "redactor": lambda: scrubber.beside(redactor)}
        return ScrubbedServer(McpProvider(name, ways, url=place, **told), scrubber)

    def with_token(owner: str, scrubber: TokenScrubber) -> ScrubbedServer:
        auth = Authorization(tokens, owner, name, url, noted=scrubber.note)
        return opened(url, http_transports(server, auth), scrubber)

    def make(owner: str, known: Connection, scrubber: TokenScrubber) -> ScrubbedServer:
        service = tokens.account_service(name)
        if service is None or known.grant is None:
            return with_token(owner, scrubber)
        # Composio's answer is an address that a server names, and goes the guarded way.
        place, dialer = known.grant.access_token, tokens.dialer(name)
        scrubber.note(place, *secrets_in(place))
        entry = server.model_copy(update={"url": place, "headers": {**server.headers, **service.headers(place)}})
        auth = Authorization(tokens, owner, name, place, bears=False)
        ways = http_transports(entry, auth, partial(GuardedTransport, dialer, place))
        return opened(place, ways, scrubber, look_up=dialer.look_up)

    if server.auth is not None and server.auth.grant == "client_credentials":
        return with_token(SERVICE, TokenScrubber())
    return UserServers(
        name, tokens, make, "mcp" if server.auth is None or server.auth.account_service is None else BY_SERVICE
    )
