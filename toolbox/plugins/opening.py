"""Open the plugins of a toolbox.json, with or without the rest of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backstay.errors import ArgumentsInvalid
from backstay.redaction.redactor import Redactor
from toolbox.configuration.configuration import Configuration, ProviderEntry
from toolbox.configuration.load import load
from toolbox.plugins.parser import Parameter
from toolbox.plugins.plugin import Confinement, NoJail, Plugin, PluginTool
from toolbox.plugins.provider import PluginProvider
from toolbox.processes.runner import Runner
from toolbox.schema import compile_schema, fault_of

_FOLDER = "plugins"
_CACHE = "pycache"


@dataclass(frozen=True, slots=True)
class OpenPlugins:
    """Hold the plugins by name, why others cannot be used, and the secrets in their environments."""

    providers: dict[str, PluginProvider]
    unset: dict[str, str]
    secrets: frozenset[str]


def open_plugins(
    path: Path, environment: Mapping[str, str], *, home: Path, confinement: Confinement | None
) -> OpenPlugins:
    """Open the plugins that a toolbox.json names; without the file, those in the folder `plugins` beside it.

    Raises ToolboxInvalid naming field, value and fix.
    """
    found = (Configuration(plugins=_FOLDER), frozenset[str]())
    configuration, secrets = load(path, environment) if path.exists() else found
    redactor = Redactor(secrets)
    folders = configuration.plugin_folders(path.absolute().parent)
    return OpenPlugins(
        {
            name: plugin_provider(
                name, folder, configuration.of(name), environment, home=home, jail=confinement, redactor=redactor
            )
            for name, folder in folders.items()
            if name not in configuration.unset
        },
        {name: reason for name, reason in configuration.unset.items() if name in folders},
        secrets,
    )


def plugin_provider(
    name: str,
    folder: Path,
    entry: ProviderEntry,
    environment: Mapping[str, str],
    *,
    home: Path,
    jail: Confinement | None,
    redactor: Redactor,
) -> PluginProvider:
    """Return the provider of one plugin; its bytecode is kept in the home of backstay."""
    confinement = jail or NoJail()
    plugin = Plugin(
        folder=folder,
        runner=Runner(environment=environment),
        python=entry.python or "python",
        environment=entry.env,
        parallel=entry.parallel,
        cache=home.absolute() / _CACHE,
        confinement=confinement if entry.jail else None,
        describing=confinement if entry.jail is None else None,
    )
    return PluginProvider(name, plugin, redactor)


def check_arguments(tool: PluginTool, arguments: Mapping[str, Any]) -> None:
    """Raise ArgumentsInvalid for arguments that the plugin's parser would not take."""
    validator = compile_schema(tool.schema)
    fault = None if isinstance(validator, str) else fault_of(validator, dict(arguments))
    if fault is not None:
        raise ArgumentsInvalid(fault)


def help_of(plugin: str, tool: PluginTool) -> dict[str, Any]:
    """Return how a tool is called on a command line: its arguments as they are written, and which must be given."""
    found = [parameter for level in tool.levels or () for parameter in level.parameters]
    words = [plugin, *([] if tool.name == "run" else tool.name.split(".")), *map(_usage, found)]
    return {
        "description": tool.description,
        "args": [_written(parameter) for parameter in found] if tool.levels is not None else ["args"],
        "required": [_written(parameter) for parameter in found if parameter.required],
        "usage": " ".join(words if tool.levels is not None else [*words, "[args ...]"]),
    }


def _written(parameter: Parameter) -> str:
    options = parameter.argument.options
    if parameter.argument.kind == "boolean":
        return options[0]  # not the longer one that denies it
    return max(options, key=len, default=parameter.name)


def _usage(parameter: Parameter) -> str:
    argument = parameter.argument
    value = "" if argument.kind in {"const", "boolean", "count"} else parameter.name.upper()
    value = f"{value} ..." if argument.many or argument.kind in {"append", "extend"} else value
    written = " ".join(part for part in ((_written(parameter) if argument.options else ""), value) if part)
    return written if parameter.required else f"[{written}]"
