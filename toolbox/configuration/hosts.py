"""Read the MCP servers that other hosts know: Claude, Cursor, VS Code, and whichever names them in JSON, YAML or TOML.

Nothing is started here, and no secret stays in what is returned: each is a variable, and its value is beside it.
"""

import codecs
import json
import os
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from backstay.errors import ToolboxInvalid
from backstay.redaction.redactor import Redactor
from backstay.yaml_text import AsWritten, number_as_written, read_yaml
from toolbox.configuration import commented
from toolbox.configuration.configuration import FOREIGN, ServerEntry
from toolbox.configuration.foreign import as_ours
from toolbox.configuration.load import RESERVED, explain, is_secret_name

_MOST_BYTES = 1 << 20
_REFERENCE = re.compile(r"\$\{\{(?P<asked>[^{}]*)\}\}|\$\{(?P<own>[^}]*)\}|(?<!\$)\{(?P<bare>(?:env|file):[^{}]*)\}")
"""Continue doubles the braces, and opencode leaves out the dollar."""
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(:-.*)?", re.DOTALL)
_STRANGE = re.compile(r"[^A-Za-z0-9 _-]+")
_ENGINES_OWN = ("BACKSTAY_", "OPENAI_", "TEMPORAL_", "PYTHON", "LD_", "PATH", "HOME")
_PLACES = (
    "mcpServers",
    "servers",
    "mcp_servers",
    "context_servers",
    "amp.mcpServers",
    "cody.mcpServers",
    "mcp.servers",
)
_LEADS = frozenset({"command", "cmd", "url", "httpUrl", "serverUrl"})
"""One of these is a field of every server."""
_OF_COMMANDS = ("args", "cwd", "env")
_PROJECT_FOLDERS = frozenset({".vscode", ".cursor"})


@dataclass(kw_only=True)
class ImportedServer:
    """Hold one server as toolbox.json will name it."""

    name: str
    entry: dict[str, Any]
    values: dict[str, str] = field(default_factory=dict)
    """Variables that stand for secrets, with the values that were written out."""
    unset: list[str] = field(default_factory=list)
    """Variables that the other host asked a person for."""
    left_out: list[str] = field(default_factory=list)
    """Fields that are not taken over."""


def host_files(variables: Mapping[str, str]) -> list[Path]:
    """Return the files in which other hosts keep their servers, where they exist."""
    home = Path.home()
    own = [Path(variables[name]) for name in ("APPDATA", "XDG_CONFIG_HOME") if variables.get(name)]
    places = [*own, home / ".config", home / "Library" / "Application Support"]
    found = [place / inner for place in places for inner in ("Claude/claude_desktop_config.json", "Code/User/mcp.json")]
    found += [home / ".cursor" / "mcp.json", Path(".cursor/mcp.json"), Path(".vscode/mcp.json")]
    return [path for path in dict.fromkeys(found) if path.is_file()]


def servers_of(path: Path, known: Mapping[str, str]) -> tuple[list[ImportedServer], list[str]]:
    """Return the servers that a host's file names, and why others of its entries are not among them.

    No secret gets the name of a variable that is known with another value. Raises ToolboxInvalid naming file, field
    and fix when there is no server that can be taken over.
    """
    data = _read(path)
    found, faults = _entries(data)
    found |= _of_this_folder(data)
    if not found:
        raise ToolboxInvalid(f"{path}: {_why_none(data)}")
    project = _project_of(path)
    taken = dict(known)
    servers = list[ImportedServer]()
    for name, entry in found.items():
        try:
            names = {server.name for server in servers}
            servers.append(_imported(name, entry, project, taken, names))
        except ToolboxInvalid as error:
            faults.append(str(error))
        except (RecursionError, TypeError, ValueError) as error:
            faults.append(f"mcpServers.{name}: {error}")
    if not servers:
        raise ToolboxInvalid(f"{path}: {'; '.join(faults)}")
    return servers, faults


def _entries(data: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the servers of a file by name, from wherever hosts keep them, and which others have the same names."""
    inner = data.get("mcp")
    places = [data.get(name) for name in _PLACES]
    if isinstance(inner, dict) and not _is_server(inner):
        places += [inner.get(name) for name in _PLACES]
        # One host names its servers right here.
        places.append({name: entry for name, entry in inner.items() if isinstance(entry, dict) and name not in _PLACES})
    if not any(places):
        # One calls them extensions; and a file may hold nothing but servers, as a page shows them.
        bare = {name: entry for name, entry in data.items() if _is_server(entry)}
        places = [data.get("extensions") or bare]
    found, faults = dict[str, Any](), list[str]()
    for name, entry in (named for place in places for named in _named(place)):
        if found.setdefault(name, entry) != entry:
            faults.append(f"mcpServers.{name}: is there more than once, and not the same; the first one counts")
    return found, faults


def _named(place: Any) -> Iterator[tuple[str, Any]]:
    """Yield the servers of a place by name; one that a list leaves without a name is called by its number."""
    if isinstance(place, dict):
        yield from ((str(name), entry) for name, entry in place.items())
    elif isinstance(place, list):
        for number, entry in enumerate(place, 1):
            yield str((isinstance(entry, dict) and entry.get("name")) or f"server {number}"), entry


def _is_server(entry: Any) -> bool:
    return isinstance(entry, dict) and any(entry.get(name) for name in _LEADS)


def _of_this_folder(data: dict[str, Any]) -> dict[str, Any]:
    """Return the servers that Claude Code knows for the current folder alone."""
    projects = data.get("projects")
    project = projects.get(str(Path.cwd())) if isinstance(projects, dict) else None
    found = project.get("mcpServers") if isinstance(project, dict) else None
    return found if isinstance(found, dict) else {}


def _why_none(data: dict[str, Any]) -> str:
    projects = data.get("projects")
    named = projects.items() if isinstance(projects, dict) else ()
    folders = [str(name) for name, project in named if isinstance(project, dict) and project.get("mcpServers")]
    if folders:
        return f"names servers of other folders only; run it in one of them: {', '.join(folders[:5])}"
    return "names no server; it needs `mcpServers`, or `servers` as VS Code writes it"


def server_of(name: str, entry: Mapping[str, Any], known: Mapping[str, str]) -> ImportedServer:
    """Return a server that a person describes, with its secrets as variables."""
    return _Reader(name, None, dict(known)).read(entry)


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ToolboxInvalid(f"{path}: larger than {_MOST_BYTES} bytes; name a file of a host")
        data = _parsed(path.suffix.lower(), _text_in(path.read_bytes()))
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ToolboxInvalid(f"{path}: cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise ToolboxInvalid(f"{path}: no JSON object; name a file of a host")
    return data


def _text_in(data: bytes) -> str:
    """Return the text of a file, which editors and shells on Windows write with a mark, or in UTF-16."""
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "utf-8-sig")


def _parsed(suffix: str, text: str) -> Any:
    match suffix:
        case ".toml":
            return tomllib.loads(text, parse_float=number_as_written)
        case ".yaml" | ".yml":
            if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.SafeLoader)):
                raise ValueError("it has aliases (`*name`), of which a few lines may hold more than any memory")
            return read_yaml(text, AsWritten)
        case _:
            return commented.read(text, number_as_written)


def _project_of(path: Path) -> Path | None:
    """Return the folder that a project's file speaks of, in which its host starts the servers."""
    folder = path.absolute().parent
    return folder.parent if folder.name in _PROJECT_FOLDERS and folder.parent != Path.home() else None


def _imported(
    name: str, entry: Any, project: Path | None, taken: dict[str, str], names: Collection[str]
) -> ImportedServer:
    if not isinstance(entry, dict):
        raise ToolboxInvalid(f"the server {name[:100]!r} is not an object; correct it there")
    known = dict(taken)  # an entry that is not taken over takes no variable either
    plain = _STRANGE.sub("-", name).strip(" -_")[:48] or "server"
    # In its own host the name was free; here it belongs to the engine.
    plain = _free(f"{plain}-server" if plain in RESERVED else plain, names)
    found = _Reader(plain, project, known).read(as_ours(entry))
    try:
        ServerEntry.model_validate(found.entry)
    except ValidationError as error:
        faults = "; ".join(explain({**fault, "loc": ("mcpServers", name, *fault["loc"])}) for fault in error.errors())
        raise ToolboxInvalid(faults) from None
    taken |= known
    return found


def _free(name: str, names: Collection[str]) -> str:
    """Return a name of its own: in other scripts than ours, two may leave the same letters."""
    number, free = 2, name
    while free in names:
        number, free = number + 1, f"{name}-{number}"
    return free


class _Reader:
    """Turn one entry of a host into one of ours."""

    def __init__(self, name: str, project: Path | None, taken: dict[str, str]) -> None:
        """Add to the variables that are taken, by value."""
        self._project = project
        self._taken = taken
        self._referenced: set[str] = set()
        self._redactor = Redactor(())
        self._found = ImportedServer(name=name, entry={})
        self._prefix = name

    def read(self, entry: Mapping[str, Any]) -> ImportedServer:
        """Return the entry with what belongs to it."""
        written = json.dumps(entry, default=str, ensure_ascii=False)
        try:
            written.encode()
        except UnicodeEncodeError:
            raise ToolboxInvalid(f"mcpServers.{self._found.name}: holds a character that no file can hold") from None
        self._referenced = {_variable(_name_in(found).removeprefix("input:")) for found in _REFERENCE.finditer(written)}
        is_started = bool(entry.get("command"))
        for key, value in entry.items():
            if key in _OF_COMMANDS and not is_started and _is_server(entry):
                # Some hosts take them beside an address, where they mean nothing.
                self._found.left_out += [key] if value else []
            elif key in _KNOWN:
                self._found.entry[key] = self._value(key, value)
            elif key not in FOREIGN:
                self._found.left_out.append(key)
        here = self._project is None or self._project == Path.cwd()
        if "command" in entry and "cwd" not in entry and not here:
            self._found.entry["cwd"] = str(self._project)
        return self._found

    def _value(self, key: str, value: Any) -> Any:
        match value:
            case str():
                return self._text(value, self._named(key), named_secret=False)
            case list():
                return list(self._arguments(value))
            case dict():
                return {str(name): self._assigned(key, str(name), item) for name, item in value.items()}
            case _:
                return value

    def _arguments(self, values: list[Any]) -> Iterator[Any]:
        """Yield arguments; a value behind `--token` or `--api-key=` is a secret whatever it looks like."""
        before = ""
        for value in values:
            if not isinstance(value, str):
                yield value
                continue
            flag, sign, given = value.partition("=")
            if value.startswith("-") and sign and is_secret_name(flag):
                yield f"{flag}={self._text(given, self._named(flag), named_secret=True)}"
            else:
                is_secret = before.startswith("-") and is_secret_name(before) and not value.startswith("-")
                yield self._text(value, self._named(before if is_secret else "secret"), named_secret=is_secret)
            before = value if not sign else ""

    def _assigned(self, key: str, name: str, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        variable = _variable(name) if key == "env" else self._named(name)
        return self._text(value, variable, named_secret=is_secret_name(name))

    def _named(self, name: str) -> str:
        return _variable(f"{self._prefix}_{name}")

    def _text(self, text: str, variable: str, *, named_secret: bool) -> str:
        """Return the text with references as ours, and each secret in it as a reference to a variable."""
        replaced = _REFERENCE.sub(self._reference, text)
        if replaced != text or "${" in text or not text:
            return replaced
        if named_secret:
            scheme, space, rest = text.rpartition(" ")
            return f"{scheme}{space}{self._kept(variable, rest)}"
        found = self._redactor.secret_in(text)
        if found is None:
            return text
        start, end, _ = found
        return f"{text[:start]}{self._kept(variable, text[start:end])}{text[end:]}"

    def _kept(self, variable: str, value: str) -> str:
        while self._taken.get(variable, value) != value or variable in self._referenced:
            variable += "_OWN"
        self._taken[variable] = self._found.values[variable] = value
        return f"${{{variable}}}"

    def _reference(self, found: "re.Match[str]") -> str:
        name = _name_in(found)
        kind, _, rest = name.partition(":")
        match kind:
            case "input":
                if _variable(rest) not in self._found.unset:
                    self._found.unset.append(_variable(rest))
                return f"${{{_variable(rest)}}}"
            case "env" if _PLAIN.fullmatch(rest):
                return f"${{{rest}}}"
            case "userHome":
                return "${HOME}"
            case "workspaceFolder" | "workspaceRoot":
                return str(self._project or Path.cwd())
            case "/" | "pathSeparator":
                return os.sep
            case _ if _PLAIN.fullmatch(name):
                return f"${{{name}}}"
            case _:
                raise ToolboxInvalid(
                    f"mcpServers.{self._found.name}: {found[0][:80]!r} is known to its own host only; write the value"
                )


def _name_in(found: "re.Match[str]") -> str:
    """Return what a reference names, as VS Code would write it."""
    if found["asked"] is None:
        return str(found["own"] if found["bare"] is None else found["bare"])
    name = found["asked"].strip()
    return f"input:{name.partition('.')[2]}" if name.startswith(("secrets.", "inputs.")) else name


def _variable(name: str) -> str:
    """Return the name of a variable that is none of the engine's own."""
    plain = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") or "VALUE"
    return f"MCP_{plain}" if plain[0].isdigit() or plain.startswith(_ENGINES_OWN) else plain


_KNOWN = frozenset(
    alias
    for name, known in ServerEntry.model_fields.items()
    for alias in (name, *(known.validation_alias.choices if known.validation_alias is not None else ()))  # type: ignore[union-attr]  # all are AliasChoices
    if isinstance(alias, str)
) - {"include", "exclude"}
