"""Turn an entry as another host writes it into the words of toolbox.json; anything else stays as it is."""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from backstay.canonical import with_texts
from backstay.data_files import data_beside
from toolbox.providers.json_safe import as_written

_DATA = data_beside(__file__)
_FIELDS = {theirs: ours for ours, names in _DATA["fields"].items() for theirs in names.split()}
_TYPES = {theirs: ours for ours, names in _DATA["types"].items() for theirs in names.split()}
INCLUDING, EXCLUDING, USED = (tuple(_DATA["filters"][name].split()) for name in ("include", "exclude", "used"))
_IS_ON = {word: kind == "on" for kind, words in _DATA["switches"].items() for word in words.split()}
_BARE = re.compile(r"\A((?:Basic|Bearer|Token) )?\$([A-Z]+(?:_[A-Z0-9]+)*)\Z")
"""A reference as Gemini CLI, Qwen Code and Crush have it, where it is the whole value: a secret may begin with `$`."""
_TYPE_NAMES = ("type", "transport", "transportType")


def as_ours(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with our names and forms; a field that is null is left out.

    Raises ValueError where it may be that the server is not to be used.
    """
    found: dict[str, Any] = {}
    # Of two names for one field ours counts, or else the first.
    for key, value in sorted(entry.items(), key=lambda field: field[0] in _FIELDS):
        ours = _FIELDS.get(key, key)
        # Where a form asks for both, the one that is not used is left empty.
        if value is not None and not (value == "" and ours in {"command", "url"}):
            found[key if ours in found else ours] = value
    found = without_switches(found)
    _split_command(found)
    for key in ("env", "headers"):
        if key in found:
            found[key] = _assigned(found[key])
    if isinstance(found.get("args"), list):
        found["args"] = [as_written(word) for word in found["args"] if word is not None]
    for name in _TYPE_NAMES:
        kind = _TYPES.get(str(found.get(name)).lower())
        if kind is not None:
            found = {key: (kind if key == name else value) for key, value in found.items() if key != name or kind}
    _set_tools(found)
    return found


def without_switches(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with `disabled` for whatever another host calls it.

    Raises ValueError for a field that should say true or false, and does not.
    """
    kept = dict(entry)
    for name in ("disabled", *USED):
        if name not in entry:
            continue
        is_on = _IS_ON.get(str(kept.pop(name)).lower())
        if is_on is None:
            raise ValueError(f"`{name}` says neither true nor false; write one of them")
        if is_on == (name == "disabled"):
            kept["disabled"] = True
    return kept


def _split_command(found: dict[str, Any]) -> None:
    """Split a command that holds its arguments, as a list, an object, or one line."""
    match found.get("command"):
        case [str() as command, *words]:
            more = found.get("args", [])
            more = _words(more) if isinstance(more, str) else more
            found |= {"command": command, "args": [*words, *more] if isinstance(more, list) else more}
        case {"path": str() as command, **more}:
            found["command"] = command
            for key in ("args", "env"):
                if more.get(key) is not None:
                    found.setdefault(key, more[key])
        case str() as line if not (found.get("args") or {"/", "\\"} & {*line.split(" ")[0]} or shutil.which(line)):
            # A whole line, as it is typed; a path may hold spaces itself.
            found["command"], *words = _words(line) or [line]
            found |= {"args": words} if words else {}
        case _:
            pass
    if isinstance(words := found.get("args"), str):
        found["args"] = _words(words)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return [line]


def _assigned(values: Any) -> Any:
    """Return variables or headers by name, each as a string; one that is null is not set."""
    if isinstance(values, list):
        values = dict(_pairs(values))
    if not isinstance(values, Mapping):
        return values
    given = {str(name): as_written(value) for name, value in values.items() if value is not None}
    return with_texts(given, lambda text: _BARE.sub(r"\1${\2}", text))


def _pairs(values: list[Any]) -> Iterator[tuple[str, Any]]:
    for item in values:
        match item:
            case {"name": str() as name, "value": value} | {"key": str() as name, "value": value}:
                yield name, value
            case str() if "=" in item:
                name, _, value = item.partition("=")
                yield name, value
            case None:
                pass
            case _:
                raise ValueError("a variable or header in a list has no name or no value; write NAME=VALUE")


def _set_tools(found: dict[str, Any]) -> None:
    """Read `tools` where it says which are offered; elsewhere it is left as it is."""
    tools = found.get("tools")
    if isinstance(tools, list) and all(isinstance(name, str) for name in tools):
        del found["tools"]
        if "*" not in tools:
            found.setdefault("enabledTools", tools)
    elif isinstance(tools, dict) and tools and set(tools) <= {"include", "exclude"}:
        del found["tools"]
        for key, name in (("include", "enabledTools"), ("exclude", "disabledTools")):
            if isinstance(tools.get(key), list):
                found.setdefault(name, tools[key])
