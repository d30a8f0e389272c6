"""Read toolbox.json; whatever is wrong is said with field, value and fix."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

from backstay.errors import ToolboxInvalid
from toolbox.configuration import Configuration, ServerEntry
from toolbox.declaration import Declaration
from toolbox.explain import explain
from toolbox.template import check
from toolbox.variables import Variables

BUILTIN = frozenset({"fs", "shell"})
"""Providers of our own, which no server may be called like."""
_RESERVED = frozenset({"engine", *BUILTIN})


def load(path: Path, environment: Mapping[str, str]) -> tuple[Configuration, frozenset[str]]:
    """Return the checked configuration with its variables resolved, and the secrets among their values.

    Raises ToolboxInvalid.
    """
    data = _read(path)
    try:
        configuration = Configuration.model_validate(data)
    except ValidationError as error:
        raise ToolboxInvalid(f"{path.name}: " + "; ".join(explain(fault) for fault in error.errors())) from None
    _check_names(configuration)
    _check_templates(configuration)
    _check_plugins(configuration, path.parent)
    variables = Variables(environment)
    servers = {
        name: entry if entry.disabled else _resolve(entry, variables, f"mcpServers.{name}")
        for name, entry in configuration.servers.items()
    }
    return configuration.model_copy(update={"servers": servers}), variables.secrets


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


def _check_names(configuration: Configuration) -> None:
    for name in configuration.servers:
        if name in _RESERVED:
            raise ToolboxInvalid(f"mcpServers.{name}: this name belongs to the engine; choose another")
    known = ", ".join(configuration.servers) or "none"
    for name in configuration.providers:
        if name not in configuration.servers and name not in BUILTIN:
            raise ToolboxInvalid(f"providers.{name}: there is no such entry in mcpServers (known: {known})")
    for user, entry in (configuration.users or {}).items():
        for name in entry.providers:
            if name not in configuration.servers and name not in BUILTIN:
                raise ToolboxInvalid(f"users.{user}.providers: unknown provider {name!r} (known: {known})")


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


def _check_plugins(configuration: Configuration, folder: Path) -> None:
    if not configuration.plugins:
        return
    place = folder / configuration.plugins
    if place.is_dir() and any(not entry.name.startswith((".", "README")) for entry in place.iterdir()):
        raise ToolboxInvalid("plugins: not available in this version: plugins; empty the directory or remove the field")


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
