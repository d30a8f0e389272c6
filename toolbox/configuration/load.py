"""Read toolbox.json, and report every fault with field, value and fix."""

import difflib
import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import AliasChoices, BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from backstay.canonical import KeyTwice
from backstay.errors import ToolboxInvalid
from backstay.policies.command_lists import CommandLists
from backstay.quoting import named, quoted
from backstay.tools.own_server import OWN
from backstay.tools.tool import BUILTIN
from system.addresses import is_loopback
from toolbox.configuration import commented
from toolbox.configuration.configuration import (
    AccountServiceAuth,
    Configuration,
    JobGrant,
    PluginsEntry,
    ProviderEntry,
    ProviderName,
    PythonEntry,
    ServerAuth,
    ServerEntry,
    ShapedCall,
    UserEntry,
)
from toolbox.configuration.template import check
from toolbox.configuration.users_servers import UsersServers
from toolbox.providers.declaration import CallTemplate, Check, Declaration

_REFERENCE = re.compile(r"\$\{([^}]*)\}?")
_VARIABLE = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_PUBLIC = frozenset({"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "PWD", "TMPDIR", "LANG"})
_SECRET_NAME = re.compile(r"token|secret|passw|api.?key|private.?key|credential|authorization|cookie", re.IGNORECASE)


class VariableUnset(ToolboxInvalid):
    """A variable that a provider needs is not set; the others go on without it."""


class Variables:
    """Resolve references and remember which values must never be shown."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._secrets: set[str] = set()

    @property
    def secrets(self) -> frozenset[str]:
        """Return the values of at least 8 bytes that a redactor must know."""
        return frozenset(value for value in self._secrets if len(value.encode("utf-8", "surrogatepass")) >= 8)

    def resolve(self, text: str, field: str) -> str:
        """Return the text with every `${NAME}`, `${env:NAME}` and `${NAME:-default}` replaced.

        Raises VariableUnset naming the field and the variable that is missing, ToolboxInvalid for what is not a
        reference.
        """
        return _REFERENCE.sub(lambda found: self._value(found, field), text)

    def resolve_named(self, values: Mapping[str, str], field: str) -> dict[str, str]:
        """Resolve a mapping; a value under a secret-looking name is a secret even when it is written out."""
        resolved = {name: self.resolve(text, f"{field}.{name}") for name, text in values.items()}
        for name, value in resolved.items():
            if is_secret_name(name):
                self._secrets |= {value, value.rpartition(" ")[2]}
        return resolved

    def resolve_secrets(self, values: Mapping[str, str], field: str) -> dict[str, str]:
        """Resolve a mapping whose values are all secrets."""
        resolved = {name: self.resolve(text, f"{field}.{name}") for name, text in values.items()}
        self._secrets |= set(resolved.values())
        return resolved

    def _value(self, found: "re.Match[str]", field: str) -> str:
        parsed = _VARIABLE.fullmatch(found[1]) if found[0].endswith("}") else None
        if parsed is None:
            raise ToolboxInvalid(
                f"{field}: {found[0][:60]!r} is not a reference; write ${{NAME}} or ${{NAME:-default}}"
            )
        name: str = parsed[1]
        default: str | None = parsed[2]
        value = self._environment.get(name, default)
        if value is None:
            raise VariableUnset(f"{field}: the environment variable {name} is not set; set it where the worker starts")
        if name not in _PUBLIC and not is_path(name, value):
            self._secrets.add(value)
        return value


def is_path(name: str, value: str) -> bool:
    """Return whether a value is a place in the file system, which is not a secret: its folder exists.

    Nothing that is named like a secret is one.
    """
    place = Path(value)
    return place.is_absolute() and len(place.parts) > 2 and not is_secret_name(name) and place.parent.is_dir()


def is_secret_name(name: str) -> bool:
    """Return whether what is under this name is taken for a secret."""
    return _SECRET_NAME.search(name) is not None


_HIDDEN = frozenset({"api_key", "env", "headers", "args", "command", "url", "secrets"})


def explain(fault: Any) -> str:
    """Return one line for one fault that pydantic found."""
    path = [str(part) for part in fault["loc"] if part != "[key]"]
    field = ".".join(map(named, path)) or "the file"
    if fault["type"] == "extra_forbidden":
        return f"{field}: unknown field{_shown(path, fault)}; {_fix(path)}"
    if fault["type"] == "missing":
        return f"{field}: required field is missing; add it"
    if "[key]" in fault["loc"]:
        return f"{field}: not a usable provider name; use letters, digits, space, _ and -, at most 48"
    return f"{field}: {str(fault['msg']).removeprefix('Value error, ')}{_shown(path, fault)}"


def _shown(path: list[str], fault: Any) -> str:
    if _HIDDEN & set(path) or isinstance(fault.get("input"), dict | list):
        return ""
    return f" (value {quoted(fault.get('input'), '.'.join(path))})"


def _fix(path: list[str]) -> str:
    model = _model_at(path[:-1])
    known = [taken for name, field in model.model_fields.items() for taken in _names(name, field)]
    near = difflib.get_close_matches(path[-1], known, 1)
    return f"did you mean {near[0]!r}?" if near else f"remove it (known here: {', '.join(known)})"


def _names(name: str, field: FieldInfo) -> list[str]:
    """Return the names under which a file may give a field."""
    taken = field.validation_alias
    if isinstance(taken, AliasChoices):
        return [choice for choice in taken.choices if isinstance(choice, str)]
    return [taken if isinstance(taken, str) else name]


_MODELS: tuple[tuple[tuple[str, ...], type[BaseModel]], ...] = (
    (("mcpServers", "*"), ServerEntry),
    (("mcpServers", "*", "auth"), ServerAuth),
    (("mcpServers", "*", "auth", "*"), AccountServiceAuth),
    (("providers", "*"), ProviderEntry),
    (("providers", "*", "jobs"), JobGrant),
    (("providers", "*", "tools", "*"), Declaration),
    (("providers", "*", "tools", "*", "verify"), Check),
    (("providers", "*", "tools", "*", "*"), CallTemplate),
    (("python", "*"), PythonEntry),
    # Where there may be text instead, pydantic names the type as well.
    (("python", "*", "shape", "*", "*"), ShapedCall),
    (("plugins", "*"), PluginsEntry),
    (("workspace",), CommandLists),
    (("users", "*"), UserEntry),
    (("users_servers",), UsersServers),
)
"""What is at a place of the file; `*` stands for any name, and the first that fits counts."""


def _model_at(path: list[str]) -> type[BaseModel]:
    for place, model in _MODELS:
        if len(place) == len(path) and all(part in ("*", name) for part, name in zip(place, path, strict=True)):
            return model
    return Configuration


RESERVED = frozenset({"engine", *BUILTIN})
"""Names that no server, plugin or module may have."""
_NAME = TypeAdapter(ProviderName)


def load(path: Path, environment: Mapping[str, str], *, optional: bool = False) -> tuple[Configuration, frozenset[str]]:
    """Return the checked configuration with its variables resolved, and the secrets among their values.

    A provider whose variable is not set is named in `unset`; an `optional` file that is missing names no provider.
    Raises ToolboxInvalid.
    """
    if optional and not os.path.lexists(path):
        return Configuration(), frozenset()
    configuration = checked(read(path), path)
    plugins = configuration.plugin_folders(path.absolute().parent)
    variables, unset = Variables(environment), dict[str, str]()
    servers = {
        name: entry if entry.disabled else _unless_unset(_resolve, entry, variables, f"mcpServers.{name}", unset)
        for name, entry in configuration.servers.items()
    }
    providers = configuration.providers | {
        name: _unless_unset(_resolve_plugin, configuration.plugin(name), variables, f"providers.{name}", unset)
        for name in plugins
    }
    python = {
        name: _unless_unset(_resolve_python, entry, variables, f"python.{name}", unset)
        for name, entry in configuration.python.items()
    }
    resolved = configuration.model_copy(update={"servers": servers, "providers": providers, "python": python})
    resolved.note_unset(unset)
    return resolved, variables.secrets


def checked(text: str, path: Path) -> Configuration:
    """Return what a string says that is in the file, or would, without resolving a variable.

    Raises ToolboxInvalid naming line and column, or field, value and fix.
    """
    try:
        configuration = Configuration.model_validate(_parsed(text, path))
    except ValidationError as error:
        raise ToolboxInvalid(f"{path.name}: " + "; ".join(explain(fault) for fault in error.errors())) from None
    _check_names(configuration, configuration.plugin_folders(path.absolute().parent))
    _check_templates(configuration)
    return configuration


_Entry = TypeVar("_Entry", ServerEntry, ProviderEntry, PythonEntry)


def _resolve_python(entry: PythonEntry, variables: Variables, field: str) -> PythonEntry:
    return entry.model_copy(update={"secrets": variables.resolve_secrets(entry.secrets, f"{field}.secrets")})


def _unless_unset(
    resolve: Callable[[_Entry, Variables, str], _Entry],
    entry: _Entry,
    variables: Variables,
    field: str,
    unset: dict[str, str],
) -> _Entry:
    """Return the resolved entry; where a variable is missing, note why and return the entry as it is."""
    try:
        return resolve(entry, variables, field)
    except VariableUnset as error:
        unset[field.partition(".")[2]] = str(error)
        return entry


def read(path: Path) -> str:
    """Return the text of the file; raises ToolboxInvalid."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ToolboxInvalid(
            f"{path}: there is no toolbox file; write it with `backstay init`, or set BACKSTAY_TOOLBOX"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ToolboxInvalid(f"{path}: cannot be read: {error}") from None


def _parsed(text: str, path: Path) -> Any:
    try:
        return commented.read(text)
    except KeyTwice as error:
        raise ToolboxInvalid(str(error)) from None
    except json.JSONDecodeError as error:
        raise ToolboxInvalid(
            f"{path}: no valid JSON at line {error.lineno} column {error.colno}: {error.msg}"
        ) from None
    except RecursionError:
        raise ToolboxInvalid(f"{path}: nested too deeply") from None


def _check_names(configuration: Configuration, plugins: Collection[str]) -> None:
    for name in configuration.servers:
        if name in RESERVED:
            raise ToolboxInvalid(
                f"mcpServers.{name}: this name belongs to the engine; name it {name}-server, or otherwise"
            )
    for name in plugins:
        _check_plugin_name(configuration, name)
    sources = [*configuration.servers, *plugins]
    for name, entry in configuration.python.items():
        if name in RESERVED or name in sources:
            raise ToolboxInvalid(f"python.{name}: this name belongs to another provider or the engine; choose another")
        if entry.provider is not None and entry.provider not in sources:
            known = ", ".join(sources) or "none"
            raise ToolboxInvalid(f"python.{name}.provider: unknown provider {entry.provider!r} (known: {known})")
    _check_providers(configuration, plugins, [*sources, *configuration.python])
    taken = [name for name in (*sources, *configuration.python) if name.lower().startswith(OWN)]
    if taken and configuration.users_servers is not None:
        raise ToolboxInvalid(f"{taken[0]}: names that begin with {OWN} belong to `users_servers`; choose another")


def _check_providers(configuration: Configuration, plugins: Collection[str], every: Collection[str]) -> None:
    known = ", ".join(every) or "none"
    for name, entry in configuration.providers.items():
        if name not in every and name not in BUILTIN:
            raise ToolboxInvalid(f"providers.{name}: there is no such server, plugin or module (known: {known})")
        if entry.python is not None and configuration.plugin(name).jail:
            raise ToolboxInvalid(f"providers.{name}.python: a jail has its own interpreter; remove this or `jail`")
        strange = entry.model_fields_set & {"python", "env", "jail", "jobs"}
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
    if name in RESERVED:
        raise ToolboxInvalid(f"{field}: this name belongs to the engine; choose another")
    try:
        _NAME.validate_python(name)
    except ValidationError:
        raise ToolboxInvalid(f"{field} has no usable name; use letters, digits, space, _ and -, at most 48") from None


def added_plugin(configuration: Configuration, name: str, path: Path) -> ProviderEntry:
    """Return the settings of a plugin whose folder came after the configuration was read from this file.

    They are the usual ones: an entry of its own counts from the next start, and until then it cannot be used.
    Raises ToolboxInvalid for such an entry, and for a name that it cannot have.
    """
    _check_plugin_name(configuration, name)
    if name in configuration.python:
        raise ToolboxInvalid(f"plugins: the folder {name!r} has the name of an entry in python; rename one of them")
    if name.lower().startswith(OWN) and configuration.users_servers is not None:
        raise ToolboxInvalid(f"plugins: the folder {name!r}: such names belong to `users_servers`; choose another")
    if name in checked(read(path), path).providers:
        raise ToolboxInvalid(f"providers.{name}: this was written after the worker had begun; restart the worker")
    return configuration.plugin(name).model_copy(update={"serial": True})


_EXPRESSIONS = frozenset({"succeeded_if", "failed_if", "verify.applied_if", "verify.result"})


def _check_templates(configuration: Configuration) -> None:
    for provider, entry in configuration.providers.items():
        for tool, declared in entry.tools.items():
            for field, template, names in _templates(declared):
                if fault := check(template, names, expression=field in _EXPRESSIONS):
                    raise ToolboxInvalid(f"providers.{provider}.tools.{tool}.{field}: {fault}")


def _templates(declared: Declaration) -> Iterator[tuple[str, Any, frozenset[str]]]:
    """Yield the templates with their fields and the names they may use."""
    before, after = frozenset({"arguments", "effect"}), frozenset({"arguments", "effect", "result"})
    for field in ("succeeded_if", "failed_if"):
        if (condition := getattr(declared, field)) is not None:
            yield field, condition, after | {"error"}
    if declared.undo:
        yield "undo.arguments", declared.undo.arguments, after
    if declared.undo_by_effect_id:
        yield "undo_by_effect_id.arguments", declared.undo_by_effect_id.arguments, before
    if declared.preview:
        yield "preview.arguments", declared.preview.arguments, frozenset({"arguments"})
    if declared.simulate is not None:
        yield "simulate", declared.simulate, frozenset({"arguments", "token"})
    if declared.verify:
        yield "verify.arguments", declared.verify.arguments, before
        yield "verify.applied_if", declared.verify.applied_if, after
        if declared.verify.result is not None:
            yield "verify.result", declared.verify.result, after


def _resolve_plugin(entry: ProviderEntry, variables: Variables, field: str) -> ProviderEntry:
    update: dict[str, Any] = {"env": variables.resolve_named(entry.env, f"{field}.env"), "serial": not entry.parallel}
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
    if entry.auth is not None:
        update["auth"] = _resolve_auth(entry.auth, update["url"], variables, f"{field}.auth")
    return entry.model_copy(update=update)


def _resolve_auth(auth: ServerAuth, url: str, variables: Variables, field: str) -> ServerAuth:
    parts = urlsplit(url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ToolboxInvalid(f"{field}: tokens are sent over https only; give the server's https:// address as `url`")
    secret = {} if auth.client_secret is None else {"client_secret": auth.client_secret}
    named: dict[str, Any] = (
        {} if auth.client_id is None else {"client_id": variables.resolve(auth.client_id, f"{field}.client_id")}
    )
    named |= variables.resolve_secrets(secret, field)
    if auth.account_service is not None:
        key = variables.resolve_secrets({"api_key": auth.account_service.api_key}, f"{field}.composio")
        named["account_service"] = auth.account_service.model_copy(update=key)
    return auth.model_copy(update=named)


def _check_url(url: str, field: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable:
        raise ToolboxInvalid(f"{field}.url: not an http:// or https:// address; write it in full")
