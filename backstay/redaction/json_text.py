"""Change literals of a JSON text in place, and leave everything between them as it is."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_BETWEEN = frozenset(" \t\r\n:,")
_SCAN = json.JSONDecoder().raw_decode
_SIGN = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.|.", re.DOTALL)
"""One character as a literal holds it."""
_OBJECT = re.compile(r"\{[ \t]*\"")
_ALONE = re.compile(r"^[ \t]*(?P<object>\{)[ \t]*\r?$", re.MULTILINE)
_MOST_FAILED = 20
JOINT = ",\n"
"""Joins JSON texts of one line each: no literal holds a line break as it is."""
Pairs = list[tuple[str, Any]]


class RepeatedNames:
    """Read objects, of which the last value of each name counts, and keep the values before it."""

    def __init__(self) -> None:
        """Know none yet."""
        self.before: list[dict[str, Any]] = []

    def pairs(self, items: Pairs) -> dict[str, Any]:
        """Return an object."""
        found = dict(items)
        if len(found) < len(items):
            last = {name: at for at, (name, _) in enumerate(items)}
            self.before += [{name: value} for at, (name, value) in enumerate(items) if at != last[name]]
        return found


def json_in(line: str) -> str:
    """Return the object that a line of a log or of JSON lines holds or ends with; empty for none."""
    begins = _OBJECT.search(line)
    held = line[begins.start() : line.rfind("}") + 1] if begins else ""
    try:
        return held if held and isinstance(json.loads(held), dict) else ""
    except (ValueError, RecursionError):
        return ""


def objects_in(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the objects of several lines begin and end in a string, as behind the prompt of a command."""
    at = failed = 0
    while failed < _MOST_FAILED and (found := _ALONE.search(text, at)) is not None:
        try:
            _, at = _SCAN(text, found.start("object"))
        except (ValueError, RecursionError):
            failed += 1
            at = found.end()
        else:
            yield found.start("object"), at


class LiteralChange(NamedTuple):
    """A literal of a JSON text, which becomes another one: where it ends, its value, and the value after that."""

    end: int
    old: Any
    new: Any


class ShapesDiffer(ValueError):
    """A value has other members than the text that it is to be written into."""


def changes_of(text: str, old: Any, new: Any) -> dict[int, LiteralChange]:
    """Return which literals of a JSON text change with its value, by where they begin; raises ShapesDiffer."""
    found: dict[int, LiteralChange] = {}
    _look(text, _next(text, 0), old, new, found)
    return found


def _look(text: str, at: int, old: Any, new: Any, found: dict[int, LiteralChange]) -> int:
    """Note what changes in the value that begins here, and return where it ends."""
    if old == new:
        # Read once more, which is faster than anything that notes where each literal is.
        return _SCAN(text, at)[1]
    match old, new:
        case dict(), dict() if len(old) == len(new):
            for (name, item), (shown, other) in zip(old.items(), new.items(), strict=True):
                at = _next(text, at + 1)
                _, end = _SCAN(text, at)
                if name != shown:
                    found[at] = LiteralChange(end, name, shown)
                at = _look(text, _next(text, end), item, other, found)
        case list(), list() if len(old) == len(new):
            for item, other in zip(old, new, strict=True):
                at = _look(text, _next(text, at + 1), item, other, found)
        case _:
            value, end = _SCAN(text, at)
            if {dict, list} & {type(value), type(old), type(new)}:
                raise ShapesDiffer
            found[at] = LiteralChange(end, old, new)
            return end
    return _next(text, at) + 1


def _next(text: str, at: int) -> int:
    # Mostly one or two characters, for which a pattern would be slower.
    while text[at] in _BETWEEN:
        at += 1
    return at


def signs_of(literal: str) -> list[str]:
    """Return how each character of a string is written in its literal."""
    return _SIGN.findall(literal[1:-1])
