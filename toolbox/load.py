"""Read toolbox.json; whatever is wrong is said with field, value and fix."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from backstay.errors import ToolboxInvalid
from toolbox.configuration import Configuration, ProviderEntry, ProviderName, ServerEntry
from toolbox.declaration import Declaration
from toolbox.explain import explain
from toolbox.template import check
from toolbox.variables import Variables

BUILTIN = frozenset({"fs", "shell"})
"""Providers of our own, which no other may be called like."""
_RESERVED = frozenset({"engine", *BUILTIN})
_NAME = TypeAdapter(ProviderName)


def load(path: Path, environment: Mapping[str, str]) -> tuple[Configuration, frozenset[str]]:
    """Return the checked configuration with its variables resolved, and the secrets among their values.

    Raises ToolboxInvalid.
    """
    data = _read(path)
    try:
        configuration = Configuration.model_validate(data)
    except ValidationError as error:
        raise ToolboxInvalid(f"{path.name}: " + "; ".join(explain(fault) for fault in error.errors())) from None
    plugins = configuration.plugin_folders(path.absolute().parent)
    _check_names(configuration, plugins)
    _check_templates(configuration)
    variables = Variables(environment)
    servers = {
        name: entry if entry.disabled else _resolve(entry, variables, f"mcpServers.{name}")
        for name, entry in configuration.servers.items()
    }
    providers = configuration.providers | {
        name: _resolve_plugin(configuration.of(name), variables, f"providers.{name}") for name in plugins
    }
    return configuration.model_copy(update={"servers": servers, "providers": providers}), variables.secrets


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ToolboxInvalid(
            f"{path}: there is no toolbox file; create it with mcpServers, or set BACKSTAY_TOOLBOX"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolboxInvalid(f"{path}: cannot be read: {error}") from None
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise ToolboxInvalid(
            f"{path}: no valid JSON at line {error.lineno} column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise ToolboxInvalid(f"{path}: nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twice := [key for key in keys if keys.count(key) > 1]:
        raise ToolboxInvalid(f"{twice[0]}: this key is written twice in one object; keep one of them")
    return dict(pairs)


def _check_names(configuration: Configuration, plugins: Collection[str]) -> None:
    for name in configuration.servers:
        if name in _RESERVED:
            raise ToolboxInvalid(f"mcpServers.{name}: this name belongs to the engine; choose another")
    for name in plugins:
        _check_plugin_name(configuration, name)
    sources = [*configuration.servers, *plugins]
    for name, entry in configuration.actions.items():
        if name in _RESERVED or name in sources:
            raise ToolboxInvalid(f"actions.{name}: this name belongs to another provider or the engine; choose another")
        if entry.provider is not None and entry.provider not in sources:
            known = ", ".join(sources) or "none"
            raise ToolboxInvalid(f"actions.{name}.provider: unknown provider {entry.provider!r} (known: {known})")
    _check_providers(configuration, plugins, [*sources, *configuration.actions])


def _check_providers(configuration: Configuration, plugins: Collection[str], every: Collection[str]) -> None:
    known = ", ".join(every) or "none"
    for name, entry in configuration.providers.items():
        if name not in every and name not in BUILTIN:
            raise ToolboxInvalid(f"providers.{name}: there is no such server, plugin or action (known: {known})")
        if entry.jail and entry.python is not None:
            raise ToolboxInvalid(f"providers.{name}.python: a jail has its own interpreter; remove this or `jail`")
        strange = entry.model_fields_set & {"python", "env", "jail"}
        if name not in plugins and strange:
            raise ToolboxInvalid(f"providers.{name}.{min(strange)}: this is for plugins; remove it here")
    for user, entry in (configuration.users or {}).items():
        for name in entry.providers:
            if name not in every and name not in BUILTIN:
                raise ToolboxInvalid(f"users.{user}.providers: unknown provider {name!r} (known: {known})")


def _check_plugin_name(configuration: Configuration, name: str) -> None:
    field = f"plugins: the folder {name!r}"
    if name in configuration.servers:
        raise ToolboxInvalid(f"{field} has the name of an entry in mcpServers; rename one of them")
    if name in _RESERVED:
        raise ToolboxInvalid(f"{field}: this name belongs to the engine; choose another")
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise ToolboxInvalid(f"{field} has no usable name; use letters, digits, space, _ and -, at most 48") from None


def _check_templates(configuration: Configuration) -> None:
    for provider, entry in configuration.providers.items():
        for tool, declared in entry.tools.items():
            for field, template, names in _templates(declared):
                if fault := check(template, names, expression=field in {"verify.applied_if", "verify.result"}):
                    raise ToolboxInvalid(f"providers.{provider}.tools.{tool}.{field}: {fault}")


def _templates(declared: Declaration) -> list[tuple[str, Any, frozenset[str]]]:
    every = frozenset({"result", "arguments", "effect"})
    found: list[tuple[str, Any, frozenset[str]]] = []
    if declared.undo:
        found.append(("undo.arguments", declared.undo.arguments, every))
    if declared.undo_by_effect_id:
        found.append(("undo_by_effect_id.arguments", declared.undo_by_effect_id.arguments, every - {"result"}))
    if declared.verify:
        found.append(("verify.arguments", declared.verify.arguments, every - {"result"}))
        found.append(("verify.applied_if", declared.verify.applied_if, every))
        if declared.verify.result is not None:
            found.append(("verify.result", declared.verify.result, every))
    return found


def _resolve_plugin(entry: ProviderEntry, variables: Variables, field: str) -> ProviderEntry:
    update: dict[str, Any] = {"env": variables.resolve_named(entry.env, f"{field}.env"), "serial": True}
    if entry.python is not None:
        update["python"] = variables.resolve(entry.python, f"{field}.python")
    return entry.model_copy(update=update)


def _resolve(entry: ServerEntry, variables: Variables, field: str) -> ServerEntry:
    update: dict[str, Any] = {
        "args": [variables.resolve(text, f"{field}.args") for text in entry.args],
        "env": variables.resolve_named(entry.env, f"{field}.env"),
        "headers": variables.resolve_named(entry.headers, f"{field}.headers"),
    }
    for name in ("command", "cwd", "url"):
        if (text := cast("str | None", getattr(entry, name))) is not None:
            update[name] = variables.resolve(text, f"{field}.{name}")
    for name, value in update["headers"].items():
        if not (name.isascii() and value.isascii() and value.isprintable() and name.isprintable() and name.strip()):
            raise ToolboxInvalid(
                f"{field}.headers.{name!r}: a header is one line of printable ASCII; correct its value"
            )
    if url := update.get("url"):
        _check_url(url, field)
    return entry.model_copy(update=update)


def _check_url(url: str, field: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ToolboxInvalid(f"{field}.url: not an http:// or https:// address; write it in full")
