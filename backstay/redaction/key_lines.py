"""Find the lines of a private key that a list holds one by one: the lines of a file, the rows of a log or a sheet."""

import re
from collections.abc import Callable
from typing import Any

_KEY = "[A-Za-z0-9 ]{0,40}(PRIVATE|SECRET|[Ss]tatic) [Kk]"
_BEGINNING = re.compile(f"-{{4,5}} ?BEGIN {_KEY}")
_END = re.compile(r"-{4,5} ?END ")
_END_OF_KEY = re.compile(f"{_END.pattern}{_KEY}")
_MATERIAL = re.compile(r"\s*(?:[A-Za-z0-9+/=]{16,200}|[A-Z][A-Za-z-]{2,20}: [^\n]{1,200})?\s*")
"""A line of base64, a header such as `DEK-Info: ...`, or an empty line."""
_NUMBERED = re.compile(r"\s*\d\S{0,40}(?:\s+\S{1,40})?\s+[A-Za-z0-9+/=-]{4,200}\s*")
"""A line with its number or a time in front."""
_MOST_LINES = 2000
_Path = tuple[str | int, ...]


def begins_key(text: str) -> bool:
    """Return whether a private key begins in a string and does not end there."""
    begun = list(_BEGINNING.finditer(text))
    return bool(begun) and _END.search(text, begun[-1].end()) is None


def key_lines_behind(items: list[Any], at: int) -> tuple[_Path, int, bool]:
    """Return where the key goes on that begins in an item: the path in each item, how many there are, and if it ends.

    Without its own end, only what must be a part of a key belongs to it.
    """
    path = _path_to(items[at])
    if path is None:
        return (), 0, False
    *_, kind = _BEGINNING.findall(_leaf_at(items[at], path) or "")
    count, is_material = 0, True
    for number, item in enumerate(items[at + 1 : at + 1 + _MOST_LINES], 1):
        line = _leaf_at(item, path)
        if line is None or begins_key(line):
            break
        if _END.search(line):
            end = _END_OF_KEY.search(line)
            return (path, number, True) if end and end[1] == kind else (path, count, False)
        fits = _MATERIAL.fullmatch(line) is not None
        if not fits and len(line.split()) > 1 and not _NUMBERED.fullmatch(line):
            break
        is_material = is_material and fits
        count += is_material
    return path, count, False


def with_leaf(item: Any, path: _Path, change: Callable[[str], str]) -> Any:
    """Return an item with the string at a path changed."""
    if not path:
        return change(item)
    key, *rest = path
    changed = item.copy()
    changed[key] = with_leaf(item[key], tuple(rest), change)
    return changed


def _path_to(item: Any) -> _Path | None:
    """Return the path to the string in which a key begins."""
    waiting: list[tuple[_Path, Any]] = [((), item)]
    while waiting:
        path, value = waiting.pop()
        match value:
            case str():
                if begins_key(value):
                    return path
            case dict():
                waiting += [((*path, name), below) for name, below in value.items()]
            case list():
                waiting += [((*path, index), below) for index, below in enumerate(value)]
            case _:
                pass
    return None


def _leaf_at(item: Any, path: _Path) -> str | None:
    for key in path:
        item = _member(item, key)
    return item if isinstance(item, str) else None


def _member(item: Any, key: str | int) -> Any:
    match item:
        case dict():
            return item.get(key)
        case list():
            return item[key] if isinstance(key, int) and key < len(item) else None
        case _:
            return None
