"""Every provider that toolbox.json describes, and the tools that each user may see."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backstay.canonical import digest_of
from backstay.errors import ToolChanged, ToolUnavailable
from backstay.policies.names import Offered
from backstay.python_tools.safety import Ask, Deny, ProposedCall
from backstay.redaction.redactor import Redactor
from backstay.tools.connection import SERVICE, ConnectionPlace
from backstay.tools.tool import BUILTIN, Safety
from toolbox.catalog.capabilities import Capability, capability
from toolbox.catalog.catalog import Catalog, build
from toolbox.catalog.definition import Definition, define
from toolbox.catalog.naming import file_name, is_presentable
from toolbox.configuration.configuration import Configuration, ProviderEntry, ServerEntry
from toolbox.configuration.load import load
from toolbox.plugins.opening import plugin_provider
from toolbox.plugins.plugin import Confinement
from toolbox.plugins.provider import PluginProvider
from toolbox.providers.answer import Answer
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.listing import ListedTool, Listing
from toolbox.providers.provider import NOBODYS, Call, Caller, PerUser, Provider, Sent, Started, WorkspaceAccess
from toolbox.providers.server_tasks import FollowsTasks, TaskRequest
from toolbox.python_tools.load import load_tools
from toolbox.python_tools.provider import PythonProvider
from toolbox.python_tools.safety import SafetyPolicies, load_safety
from toolbox.schema import too_large
from toolbox.workspace.provider import WorkspaceHost, WorkspaceProvider, workspace_providers, workspace_tools

if TYPE_CHECKING:
    from toolbox.oauth.connections import Connections

_NO_STORE = "people sign in at it, and only what has the store open knows their connections"
_KEPT = 8
_DEFINED = 4
"""How many lists of tools are kept for each provider, on average: users may be offered different ones."""


class Toolbox:
    """List and call the tools of all providers; a connection is opened when it is first needed."""

    def __init__(
        self,
        configuration: Configuration,
        providers: Mapping[str, Provider],
        secrets: frozenset[str] = frozenset(),
        safety: SafetyPolicies | None = None,
    ) -> None:
        self._configuration = configuration
        self._safety = safety or SafetyPolicies()
        self._providers = dict(providers)
        self.secrets = secrets
        """Values that must never be shown; at least 8 bytes each."""
        self._defined: dict[tuple[str, int], tuple[list[Definition], list[str]]] = {}
        self._built: dict[tuple[tuple[str, int], ...], Catalog] = {}
        self._building = asyncio.Lock()
        self._checking: dict[str, asyncio.Lock] = {name: asyncio.Lock() for name in self._providers}

    @property
    def names(self) -> list[str]:
        """Return the names of all providers."""
        return sorted(self._providers)

    async def catalog(
        self,
        user_id: str,
        *,
        owner: str = "",
        fresh: bool = False,
        builtin: frozenset[str] = frozenset(),
        patience_s: float = 0,
    ) -> Catalog:
        """Return what this user sees now; an unreachable server is listed with the reason, never an error.

        `owner` is whose connections count: the user's own, where that is who started the run.
        With patience, servers that are starting for the first time are waited for so long.
        A run sees `fs` and `shell` only when `builtin` names them and its user is granted them.
        """
        offered = self._providers.keys() - (BUILTIN - builtin)
        granted, withheld = self._seen_by(user_id, owner, offered)
        if patience_s:
            servers = (self._of(name, owner) for name in granted)
            waits = (server.wait_started(patience_s) for server in servers if isinstance(server, Started))
            await asyncio.gather(*waits)
        listings = await asyncio.gather(*(self._of(name, owner).list(fresh=fresh) for name in granted))
        found = dict(zip(granted, listings, strict=True))
        built = await self._built_of(found)
        spoken = {name: listing.instructions for name, listing in found.items() if listing.instructions}
        signed_in = {name: listing.connection for name, listing in found.items() if listing.connection}
        told = [spoken, signed_in] if signed_in else [spoken] if spoken else []
        return replace(
            built,
            version=digest_of([built.version, *told])[:16] if told else built.version,
            instructions=spoken,
            kinds={name: self._providers[name].kind for name in granted},
            withheld=withheld,
            starting=frozenset(name for name, listing in found.items() if listing.starting),
            unavailable={name: listing.reason for name, listing in found.items() if listing.reason is not None},
        )

    def _seen_by(self, user_id: str, owner: str, offered: Collection[str]) -> tuple[list[str], dict[str, str]]:
        """Return what of these providers a user sees, and why not the others."""
        granted = self._configuration.granted(user_id, offered)
        nobodys = {} if owner else {name: NOBODYS for name in granted if _needs_owner(self._providers[name])}
        return sorted(granted - nobodys.keys()), self._configuration.withheld(user_id, offered) | nobodys

    async def _built_of(self, found: Mapping[str, Listing]) -> Catalog:
        key = tuple((name, listing.generation) for name, listing in found.items())
        async with self._building:
            if key not in self._built:
                self._built[key] = await asyncio.to_thread(self._build, found)
            built = self._built[key] = self._built.pop(key)  # the most recently used goes last
            while len(self._built) > _KEPT:
                self._built.pop(next(iter(self._built)))
        return built

    async def call(
        self,
        definition: Definition,
        arguments: dict[str, Any],
        *,
        deadline_s: float,
        effect_id: str | None = None,
        before_send: Sent | None = None,
        on_progress: Callable[[str], None] | None = None,
        reply: InputResponse | None = None,
        workspace_access: WorkspaceAccess | None = None,
        caller: Caller | None = None,
        judged: bool = False,
        follows: bool = False,
    ) -> Answer:
        """Call one tool; tools of a workspace need `workspace_access`.

        With `judged`, the operator's checks look at the calls that it makes on its way. Whoever `follows` may get a
        task for an answer.

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
            on_progress=on_progress,
            reply=reply,
            follows=follows,
            still_listed=lambda listing: self._compare(definition, listing),
            workspace_access=workspace_access,
            caller=caller or Caller(),
            judge=partial(self._judge_within, caller or Caller()) if judged else None,
        )
        return await self._of(definition.provider, call.caller.owner).call(call)

    def _of(self, name: str, owner: str) -> Provider:
        provider = self._providers[name]
        return provider.of(owner) if isinstance(provider, PerUser) else provider

    async def follow(self, provider: str, request: TaskRequest, caller: Caller) -> Answer:
        """Ask a server, as who called it, about a task by which it answered. Raises what `FollowsTasks` says."""
        following = self._of(provider, caller.owner) if provider in self._providers else None
        if not isinstance(following, FollowsTasks):
            raise ToolUnavailable(f"{provider} is no server that can be asked about a task now")
        return await following.follow(request)

    async def judge(self, definition: Definition, arguments: dict[str, Any], caller: Caller) -> Ask | Deny | None:
        """Return what the operator's checks say against a call, with its arguments as the tool receives them."""
        call = ProposedCall(
            tool=definition.name,
            safety=definition.tool.safety,
            arguments=arguments,
            user_id=caller.user_id,
            session_id=caller.session_id,
        )
        return await self._safety.judge(call)

    async def _judge_within(
        self, caller: Caller, provider: str, tool: str, arguments: dict[str, Any]
    ) -> Ask | Deny | None:
        """Return what the checks say against a call that a tool makes on its way."""
        name = f"{provider}.{tool}"
        behind = self._of(provider, caller.owner) if provider in self._providers else None
        found = [] if behind is None else self._define(provider, await behind.list())[0]
        safety = next((other.tool.safety for other in found if other.name == name), Safety.RESTRICTED_WRITE)
        call = ProposedCall(
            tool=name, safety=safety, arguments=arguments, user_id=caller.user_id, session_id=caller.session_id
        )
        return await self._safety.judge(call)

    async def preview(
        self, definition: Definition, arguments: dict[str, Any], *, deadline_s: float, workspace_access: WorkspaceAccess
    ) -> str | None:
        """Return what a call would change in a workspace, as a unified diff; None where nothing can be shown."""
        provider = self._providers[definition.provider]
        call = Call(
            tool=definition.mcp_name, arguments=arguments, deadline_s=deadline_s, workspace_access=workspace_access
        )
        return await provider.preview(call) if isinstance(provider, WorkspaceProvider) else None

    async def inspect(self, providers: Collection[str]) -> dict[str, tuple[list[Definition], str | None]]:
        """Return the tools of these providers, whoever may see them, and why a provider cannot be asked."""
        listings = await asyncio.gather(*(self._providers[name].list(fresh=True) for name in providers))
        return {
            name: (self._define(name, listing)[0], listing.reason)
            for name, listing in zip(providers, listings, strict=True)
        }

    async def index(self, patience_s: float) -> dict[str, Capability]:
        """Return what there is of each provider, whoever may see it; starting servers are waited for."""
        offered = await self.offered(patience_s)
        listings = await asyncio.gather(*(provider.list() for provider in self._providers.values()))
        return {
            name: capability(
                [found.tool.safety for found in self._define(name, listing)[0] if found.is_found],
                offered[name].unread,
                listing.place,
            )
            for name, listing in zip(self._providers, listings, strict=True)
        }

    async def runs_unasked(self, definition: Definition) -> bool:
        """Return whether jobs of a plugin may call this tool without asking, with the plugin's files as they are."""
        provider, grant = self._providers.get(definition.provider), self._configuration.of(definition.provider).jobs
        if grant is None or not isinstance(provider, PluginProvider) or definition.mcp_name not in grant.unasked:
            return False
        return await asyncio.to_thread(provider.hash_of_files, grant.leave_out) == grant.sha256

    async def offered(self, patience_s: float = 0) -> dict[str, Offered]:
        """Return the names of all tools by provider, whoever may see them, and why a list cannot be read."""
        started = (p.wait_started(patience_s) for p in self._providers.values() if isinstance(p, Started))
        await asyncio.gather(*started)
        listings = await asyncio.gather(*(provider.list() for provider in self._providers.values()))
        off = [name for name, server in self._configuration.servers.items() if server.disabled]
        found = {name: Offered(unread=f"{name} is disabled in toolbox.json") for name in off}
        found |= {
            name: Offered(unread=f"{name} calls tools of a disabled server") for name in self._configuration.python
        }
        for name, listing in zip(self._providers, listings, strict=True):
            provider = self._providers[name]
            own = provider.named if isinstance(provider, PythonProvider) else frozenset[str]()
            reason = listing.reason or (f"{name} is starting" if listing.starting else "")
            tools = frozenset(listed.name for listed in listing.tools) | own
            found[name] = Offered(tools=tools, unread="" if own else reason)
        return {name: Offered(tools=tools) for name, tools in workspace_tools().items()} | found

    async def close(self) -> None:
        """Close all providers at the same time."""
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
        if (kept := self._defined.get((name, listing.generation))) is not None:
            return kept
        entry = self._configuration.of(name)
        definitions: list[Definition] = []
        problems = [f"{name}{problem}" for problem in listing.problems]
        server = self._configuration.servers.get(name)
        for listed in listing.tools:
            if server is not None and not listed.always and not server.offers(listed.name):
                continue
            if not is_presentable(listed.name):
                problems.append(f"{name}: a tool is left out because its name {listed.name[:60]!a} cannot be shown")
            elif reason := too_large(listed.input_schema) or too_large(listed.output_schema):
                problems.append(f"{name}.{listed.name[:60]}: left out because its schema {reason}")
            else:
                declared = _declared(listed, entry.tools.get(listed.name))
                defined = define(
                    name,
                    listed,
                    declared,
                    trusted=entry.trusted,
                    serial=entry.serial,
                    parallel=entry.parallel,
                    timeout=entry.timeout,
                )
                if self._safety.sees(defined.name):
                    defined = replace(defined, tool=defined.tool.model_copy(update={"judged": True}))
                definitions.append(replace(defined, behind=listed.behind, checking=self._checking[name]))
        listed_names = {listed.name for listed in listing.tools if not listed.of_engine}
        if listed_names:
            known = {listed.name for listed in listing.tools}
            missing = [tool for tool in entry.tools if tool not in known]
            problems += [
                f"providers.{name}.tools.{tool}: the server has no such tool; correct its name" for tool in missing
            ]
        self._defined[name, listing.generation] = definitions, problems
        for old in [*self._defined][: -_DEFINED * len(self._providers)]:
            self._defined.pop(old, None)
        return definitions, problems

    def _compare(self, definition: Definition, listing: Listing) -> None:
        definitions, _ = self._define(definition.provider, listing)
        now = next((other for other in definitions if other.name == definition.name), None)
        if now is None:
            raise ToolChanged(f"{definition.name} is no longer offered by its server")
        if now.tool.definition != definition.tool.definition:
            raise ToolChanged(
                f"{definition.name} has changed since the call was ruled on; review the tool and call it again"
            )


def _needs_owner(provider: Provider) -> bool:
    return isinstance(provider, PerUser) and provider.needs_owner


def _declared(listed: ListedTool, operator: Declaration | None) -> Declaration:
    """Return the declaration of a tool: fields set by the operator override those of a built-in tool."""
    if listed.declared is None or operator is None:
        return operator or listed.declared or Declaration()
    return listed.declared.model_copy(update={name: getattr(operator, name) for name in operator.model_fields_set})


@asynccontextmanager
async def open_toolbox(
    path: Path,
    *,
    environment: Mapping[str, str],
    home: Path,
    confinement: Confinement | None = None,
    workspaces: WorkspaceHost | None = None,
    connections: ConnectionPlace | None = None,
    optional: bool = False,
) -> AsyncGenerator[Toolbox]:
    """Open the toolbox that a toolbox.json describes, and end its servers on exit.

    Jailed plugins need `confinement`; `fs` and `shell` need `workspaces`, and servers with `auth` need `connections`.
    An `optional` file may be missing.

    Raises ToolboxInvalid naming field, value and fix.
    """
    configuration, secrets = await asyncio.to_thread(partial(load, path, environment, optional=optional))
    for name in ("mcp", "client"):
        # The MCP client logs what servers send, which may hold secrets; faults are returned as errors anyway.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    signed_in = _connections(configuration, connections)
    options: Any = {"jail": confinement, "redactor": Redactor(secrets), "tokens": signed_in}
    configuration, providers = await asyncio.to_thread(
        partial(_open_providers, **options), configuration, path, environment, home
    )
    builtin = {} if workspaces is None else workspace_providers(workspaces, configuration.workspace)
    safety = await asyncio.to_thread(load_safety, configuration.safety, path)
    toolbox = Toolbox(configuration, providers | builtin, secrets, safety)
    try:
        yield toolbox
    finally:
        await toolbox.close()
        if signed_in is not None:
            await signed_in.close()


def _connections(configuration: Configuration, place: ConnectionPlace | None) -> "Connections | None":
    """Return who has the tokens of users; None where no server wants any, or there is no store."""
    if place is None or not configuration.signs_in:
        return None
    from toolbox.oauth.connections import Connections  # noqa: PLC0415 - slow to load, and few toolboxes need it

    return Connections(configuration.servers, place.store, place.page)


def _open_providers(
    configuration: Configuration,
    path: Path,
    environment: Mapping[str, str],
    home: Path,
    *,
    jail: Confinement | None,
    redactor: Redactor,
    tokens: "Connections | None",
) -> tuple[Configuration, dict[str, Provider]]:
    """Return every provider by name, and the configuration in which functions are trusted.

    Nothing is connected or started yet. Raises ToolboxInvalid for functions that cannot be loaded.
    """
    folder = path.absolute().parent
    providers: dict[str, Provider] = {name: _Unusable(name, reason) for name, reason in configuration.unset.items()}
    for name, server in configuration.servers.items():
        if not server.disabled and name not in providers:
            kept: Any = {"folder": folder, "log": home / "logs" / f"{file_name(name)}.stderr", "redactor": redactor}
            providers[name] = _server(name, server, configuration.of(name), environment, tokens, **kept)
    for name, place in configuration.plugin_folders(folder).items():
        if name not in providers:
            providers[name] = plugin_provider(
                name, place, configuration.of(name), environment, jail=jail, redactor=redactor
            )
    entries = dict(configuration.providers)
    for name, python in configuration.python.items():
        if name in providers:
            continue
        tools, shape = load_tools(name, python, configuration.of(name), folder)
        behind = None if python.provider is None else providers.get(python.provider)
        if python.provider is None or behind is not None:  # a disabled server disables what calls its tools
            providers[name] = PythonProvider(name, tools, shape, behind, python.secrets)
        entries[name] = configuration.of(name).model_copy(update={"trusted": True})
    return configuration.model_copy(update={"providers": entries}), providers


class _Unusable:
    """Stand for a provider that cannot be opened as it is configured."""

    kind = "none"

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self._reason = reason

    async def list(self, *, fresh: bool = False) -> Listing:
        """Return no tool, and why."""
        return Listing(reason=self._reason)

    async def call(self, call: Call) -> Answer:
        """Raise ToolUnavailable with the reason."""
        raise ToolUnavailable(f"{self.name}: {self._reason}")

    async def close(self) -> None:
        """Nothing is open."""


def _server(
    name: str,
    server: ServerEntry,
    entry: ProviderEntry,
    environment: Mapping[str, str],
    tokens: "Connections | None",
    *,
    folder: Path,
    log: Path,
    redactor: Redactor,
) -> Provider:
    from toolbox.mcp.provider import McpProvider  # noqa: PLC0415 - slow to load, and not every toolbox has a server
    from toolbox.mcp.transports import http_transports, stdio_transport  # noqa: PLC0415 - the same

    most = 1 if entry.serial else entry.concurrency
    options: Any = {"most": most, "init_timeout": server.init_timeout, "redactor": redactor}
    options["idle_timeout"] = server.idle_timeout
    if server.url is not None and server.auth is not None:
        return _Unusable(name, _NO_STORE) if tokens is None else _signed_in(name, server, tokens, options)
    if server.url is not None:
        return McpProvider(name, http_transports(server), url=server.url, **options)
    started = stdio_transport(server, environment=environment, folder=folder, log=log, redactor=redactor)
    return McpProvider(name, (started,), log=log, **options)


def _signed_in(name: str, server: ServerEntry, tokens: "Connections", options: dict[str, Any]) -> Provider:
    """Return a server at which each user signs in, or backstay itself for all of them."""
    from toolbox.mcp.authorization import Authorization  # noqa: PLC0415 - as above
    from toolbox.mcp.of_users import UserServers  # noqa: PLC0415 - as above
    from toolbox.mcp.provider import McpProvider  # noqa: PLC0415 - as above
    from toolbox.mcp.transports import http_transports  # noqa: PLC0415 - as above

    url = str(server.url)

    def make(auth: Any) -> McpProvider:
        return McpProvider(name, http_transports(server, auth), url=url, **options)

    if server.auth is not None and server.auth.grant == "client_credentials":
        return make(Authorization(tokens, SERVICE, name, url))
    return UserServers(name, tokens, make, url)
