"""Every provider that toolbox.json describes, and the tools that each user may see."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from backstay.canonical import digest_of
from backstay.errors import ToolChanged, ToolUnavailable
from backstay.policies.names import ProviderTools
from backstay.python_tools.safety import Ask, Deny, ProposedCall
from backstay.redaction.redactor import Redactor
from backstay.tools.connection import ConnectionPlace
from backstay.tools.own_server import NOT_THEIRS, OWN
from backstay.tools.tool import BUILTIN, Safety
from toolbox.catalog.capabilities import Capability, capability
from toolbox.catalog.catalog import Catalog, build
from toolbox.catalog.definition import Definition, define
from toolbox.catalog.naming import file_name, is_presentable
from toolbox.configuration.configuration import Configuration, ProviderEntry
from toolbox.configuration.load import load
from toolbox.plugins.folders import PluginFolders
from toolbox.plugins.opening import plugin_provider
from toolbox.plugins.plugin import Confinement
from toolbox.plugins.provider import PluginProvider
from toolbox.providers.answer import Answer
from toolbox.providers.declaration import Declaration
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.listing import ListedTool, Listing
from toolbox.providers.provider import (
    NOBODYS,
    Caller,
    PerUser,
    Provider,
    ProviderCall,
    Sent,
    StartableProvider,
    WorkspaceAccess,
)
from toolbox.providers.server_tasks import FollowsTasks, TaskRequest
from toolbox.python_tools.load import load_tools
from toolbox.python_tools.provider import PythonProvider
from toolbox.python_tools.safety import SafetyPolicies, load_safety
from toolbox.schema import too_large
from toolbox.servers import Unusable, own_providers_of, server_provider, sign_ins_of
from toolbox.workspace.provider import WorkspaceHost, WorkspaceProvider, workspace_providers, workspace_tools

if TYPE_CHECKING:
    from toolbox.oauth.connections import OAuthConnections
    from toolbox.own_servers.providers import OwnProviders

_KEPT = 8
_DEFINED = 4
"""How many lists of tools are kept for each provider, on average: users may be offered different ones."""
_OWN_DEFINED = 50
"""As for this many providers more, for the servers of users."""


class Toolbox:
    """List and call the tools of all providers; a connection is opened when it is first needed."""

    def __init__(
        self,
        configuration: Configuration,
        providers: Mapping[str, Provider],
        secrets: frozenset[str] = frozenset(),
        safety: SafetyPolicies | None = None,
        *,
        own: "OwnProviders | None" = None,
        plugins: PluginFolders | None = None,
    ) -> None:
        self._own = own
        self._plugins = plugins
        listed = frozenset[str]() if plugins is None else plugins.there.keys()
        self._others = {name: provider for name, provider in providers.items() if name not in listed}
        self._configuration = configuration
        self._safety = safety or SafetyPolicies()
        self._providers = dict(providers)
        self.secrets = secrets
        """Values that must never be shown; at least 8 bytes each."""
        self._defined: dict[tuple[str, int], tuple[list[Definition], list[str]]] = {}
        self._built: dict[tuple[tuple[str, int], ...], Catalog] = {}
        self._building = asyncio.Lock()
        # As long as a tool has it: users add and remove servers without an end.
        self._checking = WeakValueDictionary[str, asyncio.Lock]()

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
        await self._look_for_plugins()
        offered = self._providers.keys() - (BUILTIN - builtin)
        granted, withheld = self._seen_by(user_id, owner, offered)
        servers = {name: self._of(name, owner) for name in granted}
        servers |= {} if self._own is None else await self._own.of(owner)
        if patience_s:
            started = (server for server in servers.values() if isinstance(server, StartableProvider))
            await asyncio.gather(*(server.wait_started(patience_s) for server in started))
        listings = await asyncio.gather(*(server.list(fresh=fresh) for server in servers.values()))
        found = dict(zip(servers, listings, strict=True))
        built = await self._built_of(found)
        spoken = {name: listing.instructions for name, listing in found.items() if listing.instructions}
        signed_in = {name: listing.connection for name, listing in found.items() if listing.connection}
        alone = [spoken] if spoken else []
        told = [spoken, signed_in] if signed_in else alone
        return replace(
            built,
            version=digest_of([built.version, *told])[:16] if told else built.version,
            instructions=spoken,
            kinds={name: server.kind for name, server in servers.items()},
            withheld=withheld,
            starting=frozenset(name for name, listing in found.items() if listing.starting),
            unavailable={name: listing.reason for name, listing in found.items() if listing.reason is not None},
        )

    async def _look_for_plugins(self) -> None:
        """Take in the plugins whose folders were added, and leave out those whose folders are gone."""
        if self._plugins is None:
            return
        if await self._plugins.look():
            self._providers = self._others | self._plugins.there
            entries = {**self._configuration.providers, **self._plugins.added}
            self._configuration = self._configuration.model_copy(update={"providers": entries})

    def _seen_by(self, user_id: str, owner: str, offered: Collection[str]) -> tuple[list[str], dict[str, str]]:
        """Return what of these providers a user sees, and why not the others."""
        granted = self._configuration.granted(user_id, offered)
        nobodys = {} if owner else {name: NOBODYS for name in granted if _needs_owner(self._providers[name])}
        refused = {} if self._plugins is None else self._plugins.refused
        withheld = self._configuration.withheld(user_id, offered) | nobodys | refused
        return sorted(granted - nobodys.keys()), withheld

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
        by_grant: bool = False,
    ) -> Answer:
        """Call one tool; tools of a workspace need `workspace_access`.

        With `judged`, the operator's checks look at the calls that it makes on its way. A caller that `follows` may get
        a task for an answer. `by_grant`: it is made only if jobs may still call the tool without asking.
        Raises ToolUnavailable and ToolChanged before `before_send`, NotSent and OutcomeUnknown after it.
        """
        if (named := definition.declaration.idempotency_argument) is not None and effect_id is not None:
            arguments = {**arguments, named: effect_id}
        call = ProviderCall(
            tool=definition.mcp_name,
            arguments=arguments,
            deadline_s=deadline_s,
            effect_id=effect_id,
            before_send=before_send,
            on_progress=on_progress,
            reply=reply,
            follows=follows,
            still_listed=lambda listing: self._compare(definition, listing),
            still_granted=partial(self._require_granted, definition) if by_grant else None,
            workspace_access=workspace_access,
            caller=caller or Caller(),
            judge=partial(self._judge_within, caller or Caller()) if judged else None,
        )
        return await (await self._found(definition.provider, call.caller.owner)).call(call)

    def _of(self, name: str, owner: str) -> Provider:
        provider = self._providers[name]
        return provider.of(owner) if isinstance(provider, PerUser) else provider

    async def _found(self, name: str, owner: str) -> Provider:
        """Return a provider as the owner of a run has it; raises ToolUnavailable where they have none of this name."""
        if name in self._providers:
            return self._of(name, owner)
        if self._own is None:
            raise ToolUnavailable(f"{name}: {NOT_THEIRS if name.startswith(OWN) else 'there is no such provider'}")
        return await self._own.find(owner, name)

    async def follow(self, provider: str, request: TaskRequest, caller: Caller) -> Answer:
        """Ask a server, as who called it, about a task by which it answered. Raises what `FollowsTasks` says."""
        following = await self._found(provider, caller.owner)
        if not isinstance(following, FollowsTasks):
            raise ToolUnavailable(f"{provider} is not a server that can be asked about a task now")
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
        provider = self._providers.get(definition.provider)
        call = ProviderCall(
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
        providers = self._providers
        listings = await asyncio.gather(*(provider.list() for provider in providers.values()))
        return {
            name: capability(
                [found.tool.safety for found in self._define(name, listing)[0] if found.is_found],
                offered[name].unread,
                listing.place,
            )
            for name, listing in zip(providers, listings, strict=True)
        }

    async def runs_unasked(self, definition: Definition) -> bool:
        """Return whether jobs of a plugin may call this tool without asking, with the plugin's files as they are."""
        provider, grant = self._providers.get(definition.provider), self._configuration.of(definition.provider).jobs
        if grant is None or not isinstance(provider, PluginProvider) or definition.mcp_name not in grant.unasked:
            return False
        return await asyncio.to_thread(provider.hash_of_files, grant.leave_out) == grant.sha256

    async def _require_granted(self, definition: Definition) -> None:
        if not await self.runs_unasked(definition):
            raise ToolChanged(f"{definition.name}: a file of its plugin has changed since its jobs were granted")

    async def offered(self, patience_s: float = 0) -> dict[str, ProviderTools]:
        """Return the names of all tools by provider, whoever may see them, and why a list cannot be read."""
        await self._look_for_plugins()
        providers = self._providers
        started = (p.wait_started(patience_s) for p in providers.values() if isinstance(p, StartableProvider))
        await asyncio.gather(*started)
        listings = await asyncio.gather(*(provider.list() for provider in providers.values()))
        off = [name for name, server in self._configuration.servers.items() if server.disabled]
        found = {name: ProviderTools(unread=f"{name} is disabled in toolbox.json") for name in off}
        found |= {
            name: ProviderTools(unread=f"{name} calls tools of a disabled server")
            for name in self._configuration.python
        }
        for name, listing in zip(providers, listings, strict=True):
            provider = providers[name]
            own = provider.named if isinstance(provider, PythonProvider) else frozenset[str]()
            reason = listing.reason or (f"{name} is starting" if listing.starting else "")
            tools = frozenset(listed.name for listed in listing.tools) | own
            found[name] = ProviderTools(tools=tools, unread="" if own else reason)
        return {name: ProviderTools(tools=tools) for name, tools in workspace_tools().items()} | found

    async def close(self) -> None:
        """Close all providers at the same time."""
        own = () if self._own is None else (self._own.close(),)
        plugins = () if self._plugins is None else (self._plugins.close(),)
        closing = (provider.close() for provider in self._providers.values())
        await asyncio.gather(*closing, *plugins, *own, return_exceptions=True)

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
                definitions.append(replace(defined, behind=listed.behind, checking=self._lock_of(name)))
        listed_names = {listed.name for listed in listing.tools if not listed.of_engine}
        if listed_names:
            known = {listed.name for listed in listing.tools}
            missing = [tool for tool in entry.tools if tool not in known]
            problems += [
                f"providers.{name}.tools.{tool}: the server has no such tool; correct its name" for tool in missing
            ]
        self._defined[name, listing.generation] = definitions, problems
        for old in [*self._defined][: -_DEFINED * (len(self._providers) + _OWN_DEFINED)]:
            self._defined.pop(old, None)
        return definitions, problems

    def _lock_of(self, name: str) -> asyncio.Lock:
        return self._checking.setdefault(name, asyncio.Lock())

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
    _silence_client()
    signed_in = sign_ins_of(configuration, connections)
    options: Any = {"home": home, "jail": confinement, "redactor": Redactor(secrets), "tokens": signed_in}
    configuration, providers = await asyncio.to_thread(
        partial(_open_providers, **options), configuration, path, environment
    )
    builtin = {} if workspaces is None else workspace_providers(workspaces, configuration.workspace)
    safety = await asyncio.to_thread(load_safety, configuration.safety, path)
    toolbox = Toolbox(
        configuration,
        providers | builtin,
        secrets,
        safety,
        own=own_providers_of(configuration, connections, secrets),
        plugins=_plugins_of(configuration, providers, path, environment, options),
    )
    try:
        yield toolbox
    finally:
        await toolbox.close()
        if signed_in is not None:
            await signed_in.close()


def _silence_client() -> None:
    for name in ("mcp", "client"):
        # The MCP client logs what servers send, which may hold secrets; faults are returned as errors anyway.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _plugins_of(
    configuration: Configuration,
    providers: Mapping[str, Provider],
    path: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any],
) -> PluginFolders | None:
    """Return what follows which plugins there are; None where toolbox.json names no folder of them."""
    if configuration.plugins is None:
        return None

    def open_one(name: str, folder: Path, entry: ProviderEntry) -> PluginProvider:
        kept: Any = {option: options[option] for option in ("home", "jail", "redactor")}
        return plugin_provider(name, folder, entry, environment, **kept)

    folders = configuration.plugin_folders(path.absolute().parent)
    opened = {name: providers[name] for name in folders if name in providers}
    return PluginFolders(configuration, path, opened, open_one)


def _open_providers(
    configuration: Configuration,
    path: Path,
    environment: Mapping[str, str],
    *,
    home: Path,
    jail: Confinement | None,
    redactor: Redactor,
    tokens: "OAuthConnections | None",
) -> tuple[Configuration, dict[str, Provider]]:
    """Return every provider by name, and the configuration in which functions are trusted.

    Nothing is connected or started yet. Raises ToolboxInvalid for functions that cannot be loaded.
    """
    folder = path.absolute().parent
    providers: dict[str, Provider] = {name: Unusable(name, reason) for name, reason in configuration.unset.items()}
    for name, server in configuration.servers.items():
        if not server.disabled and name not in providers:
            kept: Any = {"folder": folder, "log": home / "logs" / f"{file_name(name)}.stderr", "redactor": redactor}
            providers[name] = server_provider(name, server, configuration.of(name), environment, tokens, **kept)
    for name, place in configuration.plugin_folders(folder).items():
        if name not in providers:
            providers[name] = plugin_provider(
                name, place, configuration.of(name), environment, home=home, jail=jail, redactor=redactor
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
