"""JSON with comments and trailing commas, as people write it: read it, and change a part without losing the rest."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from backstay.canonical import read_json

_TEXT = r'"(?:[^"\\]|\\.)*(?:"|\Z)'
_COMMENT = re.compile(rf"{_TEXT}|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_COMMA = re.compile(rf"{_TEXT}|,(?=\s*[}}\]])", re.DOTALL)
_SPACE = re.compile(r"\s*")
_BEHIND = re.compile(r"(?:[ \t]*(?://[^\n]*|/\*(?:(?!\*/).)*\*/))*[ \t]*(?=\n|\Z)", re.DOTALL)
"""What may be behind a value up to the end of the line: comments."""
_NOT_BREAKS = re.compile(r"[^\n]")
_WIDTH = 100


def read(text: str, parse_float: Callable[[str], Any] | None = None) -> Any:
    """Return the value; raises KeyTwice, and JSONDecodeError with line and column."""
    return read_json(_plain(text), parse_float=parse_float)


def add(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value added: the last part of the path is its name, `-` appends to a list.

    Objects that are missing on the way are made. Raises ValueError when the name is taken or the way is not an object.
    """
    plain, place = _plain(text), 0
    *way, name = path
    while way and (inner := _find(plain, place, way[0])) is not None:
        place, way = inner, way[1:]
    for missing in reversed(way):
        value, name = {name: value}, missing
    inside = _inside(plain, place)
    if inside.kind == "{" and any(key == name for key, *_ in inside.members):
        raise ValueError(f"{'.'.join(path)}: is there already")
    return _put(text, inside, name, value)


def remove(text: str, path: Sequence[str]) -> str:
    """Return the text without a value: the last part of the path is its name, or a string in a list.

    A comment behind it goes with it; one above it stays. Raises ValueError when the value is not there.
    """
    plain, place = _plain(text), 0
    *way, name = path
    for part in way:
        inner = _find(plain, place, part)
        if inner is None:
            raise ValueError(f"{'.'.join(path)}: is not there")
        place = inner
    inside = _inside(plain, place)
    named = [key if inside.kind == "{" else json.loads(plain[start:end]) for key, start, end in inside.members]
    if name not in named:
        raise ValueError(f"{'.'.join(path)}: is not there")
    return _cut(text, inside, named.index(name))


@dataclass(frozen=True, slots=True)
class _Inside:
    """Hold where an object or a list begins and ends, and its members: key, start and end of each value."""

    kind: str
    start: int
    end: int
    members: list[tuple[str, int, int]]


def _plain(text: str) -> str:
    """Return plain JSON of the same length: the rest is blank, so that every place stays where it is."""
    uncommented = _uncommented(text)
    return _COMMA.sub(lambda found: _comma(found, uncommented), uncommented)


def _uncommented(text: str) -> str:
    return _COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else _NOT_BREAKS.sub(" ", found[0]), text)


def _comma(found: "re.Match[str]", text: str) -> str:
    """Return a blank for a comma behind a value; one that follows nothing stays, and is a fault."""
    if found[0] != ",":
        return found[0]
    before = found.start() - 1
    while before >= 0 and text[before].isspace():
        before -= 1
    return "," if before < 0 or text[before] in "{[,:" else " "


def _inside(plain: str, place: int) -> _Inside:
    place = _skip(plain, place)
    kind = plain[place : place + 1]
    if kind not in {"{", "["}:
        raise ValueError("a part of the path is neither an object nor a list")
    members = list(_members(plain, place, named=kind == "{"))
    return _Inside(kind, place, _skip(plain, members[-1][2] if members else place + 1), members)


def _members(plain: str, place: int, *, named: bool) -> Iterator[tuple[str, int, int]]:
    decoder = json.JSONDecoder()
    place = _skip(plain, place + 1)
    while plain[place] not in "}]":
        key = ""
        if named:
            key, place = decoder.raw_decode(plain, place)
            place = _skip(plain, _skip(plain, place) + 1)
        _, end = decoder.raw_decode(plain, place)
        yield key, place, end
        place = _skip(plain, end)
        if plain[place] == ",":
            place = _skip(plain, place + 1)


def _skip(plain: str, place: int) -> int:
    found = _SPACE.match(plain, place)
    return place if found is None else found.end()


def _find(plain: str, place: int, name: str) -> int | None:
    return next((start for key, start, _ in _inside(plain, place).members if key == name), None)


def _put(text: str, inside: _Inside, name: str, value: Any) -> str:
    """Put a member behind the last one; a comment behind that one stays with it."""
    outer = _indent(text, inside.start)
    last = inside.members[-1][2] if inside.members else inside.start + 1
    indent = _indent(text, inside.members[-1][1]) if inside.members else ""
    if len(indent) <= len(outer):
        indent = outer + "  "
    tail = text[last : inside.end]
    # A comma that the plain text lacks is a trailing one.
    trailing = any(sign == "," for sign in _COMMENT.sub(lambda found: " " * len(found[0]), tail))
    comma = "," if inside.members and not trailing else ""
    member = _spelled(value, indent) if inside.kind == "[" else f"{json.dumps(name)}: {_spelled(value, indent)}"
    line_end = text.find("\n", inside.end)
    after = (len(text) if line_end < 0 else line_end) - inside.start
    if "\n" not in text[inside.start : inside.end] and inside.members and after + len(member) < _WIDTH - len(outer):
        return f"{text[:last]}{comma}{tail.rstrip()} {member}{text[inside.end :]}"
    return f"{text[:last]}{comma}{tail.rstrip()}\n{indent}{member}\n{outer}{text[inside.end :]}"


def _cut(text: str, inside: _Inside, at: int) -> str:
    """Cut a member out, with its comma; of the last one, which has none, with that of the one before."""
    bare, is_first, is_last = _uncommented(text), at == 0, at == len(inside.members) - 1
    before = inside.start + 1 if is_first else inside.members[at - 1][2]
    begin = _skip(bare, before if is_first else _skip(bare, before) + 1)
    end = inside.members[at][2]
    comma = _skip(bare, end)
    has_comma = bare[comma] == ","
    end = comma + 1 if has_comma else end
    if behind := _BEHIND.match(text, end):
        end = behind.end()
        begin = len(text[:begin].rstrip(" \t"))
        end += text[begin - 1 : begin] == text[end : end + 1] == "\n"
    elif not is_last:
        end = _skip(bare, end) if not text[end : _skip(bare, end)].strip() else end
    if is_first and is_last and not (text[inside.start + 1 : begin] + text[end : inside.end]).strip():
        return text[: inside.start + 1] + text[inside.end :]
    if is_last and not is_first and not has_comma:
        gone = _skip(bare, before)
        return text[:gone] + text[gone + 1 : begin].rstrip(" ") + text[end:]
    return text[:begin] + text[end:]


def _indent(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _spelled(value: Any, indent: str) -> str:
    """Return a value as JSON, on one line where it fits."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= _WIDTH or not isinstance(value, dict) or not value:
        return line
    inner = indent + "  "
    members = [f"{inner}{json.dumps(key)}: {_spelled(item, inner)}" for key, item in value.items()]
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
