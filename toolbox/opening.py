"""Make the providers that a toolbox.json describes, each kind in its own way."""

from collections.abc import Mapping
from pathlib import Path

from toolbox.actions.modules import load_actions
from toolbox.actions.provider import ActionProvider
from toolbox.catalog.naming import file_name
from toolbox.configuration.configuration import Configuration, ProviderEntry, ServerEntry
from toolbox.mcp.provider import McpProvider
from toolbox.mcp.transports import http_transports, stdio_transport
from toolbox.plugins.plugin import Confinement, Plugin
from toolbox.plugins.provider import PluginProvider
from toolbox.processes.runner import Runner
from toolbox.providers.declaration import Declaration
from toolbox.providers.provider import Provider


def open_providers(
    configuration: Configuration, path: Path, environment: Mapping[str, str], home: Path, jail: Confinement | None
) -> tuple[Configuration, dict[str, Provider]]:
    """Return every provider by name, and the configuration with what actions declare of themselves.

    Nothing is connected or started yet. Raises ToolboxInvalid for actions that cannot be loaded.
    """
    folder, logs = path.absolute().parent, home.absolute() / "logs"
    providers: dict[str, Provider] = {}
    for name, server in configuration.servers.items():
        if not server.disabled:
            log = logs / f"{file_name(name)}.stderr"
            providers[name] = _server(name, server, configuration.of(name), environment, folder=folder, log=log)
    for name, place in configuration.plugin_folders(folder).items():
        providers[name] = _plugin(name, place, configuration.of(name), environment, jail)
    entries = dict(configuration.providers)
    for name, action in configuration.actions.items():
        wrappers, shape = load_actions(name, action, folder)
        behind = None if action.provider is None else providers.get(action.provider)
        if action.provider is None or behind is not None:  # a server that is switched off takes its actions with it
            providers[name] = ActionProvider(name, wrappers, shape, behind)
        declared = {one.name: Declaration(undo=one.undo) for one in wrappers.values() if one.undo is not None}
        entry = configuration.of(name)
        entries[name] = entry.model_copy(update={"trusted": True, "tools": {**declared, **entry.tools}})
    return configuration.model_copy(update={"providers": entries}), providers


def _server(
    name: str, server: ServerEntry, entry: ProviderEntry, environment: Mapping[str, str], *, folder: Path, log: Path
) -> Provider:
    most = 1 if entry.serial else entry.concurrency
    if server.url is not None:
        return McpProvider(name, http_transports(server), most=most, url=server.url)
    started = stdio_transport(server, environment=environment, folder=folder, log=log)
    return McpProvider(name, (started,), most=most)


def _plugin(
    name: str, folder: Path, entry: ProviderEntry, environment: Mapping[str, str], jail: Confinement | None
) -> Provider:
    if entry.jail and jail is None:
        return PluginProvider(name, None, reason="it must run in a jail, and there is none here; see its `jail`")
    plugin = Plugin(
        folder=folder,
        runner=Runner(environment=environment),
        python=entry.python or "python",
        environment=entry.env,
        confinement=jail if entry.jail else None,
    )
    return PluginProvider(name, plugin)
