"""The toolbox: every provider of toolbox.json, and what each user may see of them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from backstay.errors import ToolChanged
from toolbox.answer import Answer
from toolbox.catalog import Catalog, build
from toolbox.configuration import Configuration, ServerEntry
from toolbox.connection import http_transport, stdio_transport
from toolbox.declaration import Declaration
from toolbox.definition import Definition, define
from toolbox.listed import Listing
from toolbox.load import load
from toolbox.mcp_provider import McpProvider
from toolbox.naming import file_name, is_presentable
from toolbox.provider import Call, Provider, Sent

_SCHEMA_BYTES = 256 * 1024
_KEPT = 8


class Toolbox:
    """Know the tools and call them; every connection is opened when it is first needed."""

    def __init__(
        self, configuration: Configuration, providers: Mapping[str, Provider], secrets: frozenset[str] = frozenset()
    ) -> None:
        self._configuration = configuration
        self._providers = dict(providers)
        self.secrets = secrets
        """Values that must never be shown; at least 8 bytes each."""
        self._defined: dict[str, tuple[int, list[Definition], list[str]]] = {}
        self._built: dict[tuple[tuple[str, int], ...], Catalog] = {}
        self._building = asyncio.Lock()

    async def catalog(self, user_id: str, *, fresh: bool = False) -> Catalog:
        """Return what this user sees now; a server that cannot be reached is a reason, never an error.

        Raises ToolboxInvalid when two tools would be called by one name.
        """
        granted = sorted(self._configuration.granted(user_id) & self._providers.keys())
        listings = await asyncio.gather(*(self._providers[name].list(fresh=fresh) for name in granted))
        found = dict(zip(granted, listings, strict=True))
        key = tuple((name, listing.generation) for name, listing in found.items())
        async with self._building:
            if key not in self._built:
                self._built[key] = await asyncio.to_thread(self._build, found)
            built = self._built[key] = self._built.pop(key)  # the last used is the last to go
            while len(self._built) > _KEPT:
                self._built.pop(next(iter(self._built)))
        return replace(
            built,
            kinds={name: self._providers[name].kind for name in granted},
            withheld=self._configuration.withheld(user_id),
            unavailable={name: listing.reason for name, listing in found.items() if listing.reason is not None},
        )

    async def call(
        self,
        definition: Definition,
        arguments: dict[str, Any],
        *,
        deadline_s: float,
        effect_id: str | None = None,
        before_send: Sent | None = None,
    ) -> Answer:
        """Call one tool.

        Raises ToolUnavailable and ToolChanged before `before_send`, NotSent and OutcomeUnknown after it.
        """
        named = definition.declaration.idempotency_argument
        if named is not None and effect_id is not None:
            arguments = {**arguments, named: effect_id}
        call = Call(
            tool=definition.mcp_name,
            arguments=arguments,
            deadline_s=deadline_s,
            effect_id=effect_id,
            before_send=before_send,
            still_listed=lambda listing: self._compare(definition, listing),
        )
        return await self._providers[definition.provider].call(call)

    async def close(self) -> None:
        """Let go of every provider at once."""
        await asyncio.gather(*(provider.close() for provider in self._providers.values()), return_exceptions=True)

    def _build(self, listings: Mapping[str, Listing]) -> Catalog:
        definitions: list[Definition] = []
        problems: list[str] = []
        for name, listing in listings.items():
            known = self._define(name, listing)
            definitions += known[0]
            problems += known[1]
        return build(definitions, problems, {})

    def _define(self, name: str, listing: Listing) -> tuple[list[Definition], list[str]]:
        kept = self._defined.get(name)
        if kept is not None and kept[0] == listing.generation:
            return kept[1], kept[2]
        entry = self._configuration.of(name)
        definitions: list[Definition] = []
        problems: list[str] = []
        for listed in listing.tools:
            if not is_presentable(listed.name):
                problems.append(f"{name}: a tool is left out because its name {listed.name[:60]!a} cannot be shown")
            elif len(str(listed.input_schema)) > _SCHEMA_BYTES:
                problems.append(f"{name}.{listed.name[:60]}: left out because its schema passes {_SCHEMA_BYTES} bytes")
            else:
                declared = entry.tools.get(listed.name) or Declaration()
                definitions.append(define(name, listed, declared, trusted=entry.trusted, serial=entry.serial))
        listed_names = {listed.name for listed in listing.tools}
        if listed_names:
            missing = [tool for tool in entry.tools if tool not in listed_names]
            problems += [
                f"providers.{name}.tools.{tool}: the server has no such tool; correct its name" for tool in missing
            ]
        self._defined[name] = (listing.generation, definitions, problems)
        return definitions, problems

    def _compare(self, definition: Definition, listing: Listing) -> None:
        definitions, _ = self._define(definition.provider, listing)
        now = next((other for other in definitions if other.name == definition.name), None)
        if now is None:
            raise ToolChanged(f"{definition.name} is no longer offered by its server")
        if now.tool.definition != definition.tool.definition:
            raise ToolChanged(f"{definition.name} is no longer the tool that was ruled on; look at it again")


@asynccontextmanager
async def open_toolbox(path: Path, *, environment: Mapping[str, str], home: Path) -> AsyncGenerator[Toolbox]:
    """Open the toolbox that a toolbox.json describes; servers die with it.

    Raises ToolboxInvalid naming field, value and fix.
    """
    configuration, secrets = await asyncio.to_thread(load, path, environment)
    for name in ("mcp", "client"):
        # The MCP client logs what servers send, which may hold secrets; what matters comes back as an error anyway.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    providers = {
        name: _provider(name, server, configuration, environment=environment, path=path, home=home)
        for name, server in configuration.servers.items()
        if not server.disabled
    }
    toolbox = Toolbox(configuration, providers, secrets)
    try:
        yield toolbox
    finally:
        await toolbox.close()


def _provider(
    name: str,
    server: ServerEntry,
    configuration: Configuration,
    *,
    environment: Mapping[str, str],
    path: Path,
    home: Path,
) -> McpProvider:
    serial = configuration.of(name).serial
    if server.url is not None:
        return McpProvider(name, http_transport(server), serial=serial, url=server.url)
    log = home.absolute() / "logs" / f"{file_name(name)}.stderr"
    return McpProvider(
        name, stdio_transport(server, environment=environment, folder=path.absolute().parent, log=log), serial=serial
    )
