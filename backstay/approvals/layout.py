"""Lay out the arguments of a call as lines that people read: texts as lines, lists as tables, objects line by line.

The further lines of an argument are behind a bar, so that none can pass for another part of a request.
It takes arguments as they are shown: texts without invisible characters, with `⏎` for a line break.
"""

import difflib
import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from backstay.canonical import key_of
from backstay.provenance.source import leaves
from backstay.shown import CLIPPED, LINE_BREAK

BAR = "│"
_SHORT = 72
"""A list or object of at most this many characters as JSON stays on the line of its name."""
_WIDEST = 110
_MOST_COLUMNS = 12
_IN_NAMES = frozenset("_-./@$#" + CLIPPED)
_FACTS = frozenset({"changes", "REPEATED"})
"""What the engine itself says of a call begins so, or with a word and a space."""
_GONE = object()


def argument_lines(name: str, value: Any) -> list[str]:
    """Return an argument as lines: the first has its name, and each further one is behind a bar."""
    return _named(_name(name), value)


def argument_parts(name: str, value: Any) -> tuple[str, list[str]]:
    """Return how an argument is called, and its value as lines, for what sets them apart by other means than a bar."""
    shown = _name(name)
    first, *rest = _named(shown, value)
    said = first.removeprefix(f"{shown}:").strip()
    return shown, [*([said] if said or not rest else []), *(line.removeprefix(BAR).removeprefix(" ") for line in rest)]


def said_shortly(value: Any, most: int) -> str:
    """Return the first line of a value, cut after the given number of characters."""
    first, more, _ = (value if isinstance(value, str) else _said(value)).partition(LINE_BREAK)
    return first[:most] + (CLIPPED if more or len(first) > most else "")


def changed_lines(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    """Yield what differs between two versions of arguments, value by value."""
    # Of arguments that are all gone, only what they were is left to tell.
    was, now = (dict(leaves(version)) if version else {} for version in (before, after))
    for pointer in dict.fromkeys([*was, *now]):
        old, new = was.get(pointer, _GONE), now.get(pointer, _GONE)
        if old == new and type(old) is type(new):
            continue
        name = ".".join(_name(key_of(part)) for part in pointer.split("/")[1:])
        if isinstance(old, str) and isinstance(new, str) and LINE_BREAK in old + new:
            yield f"~ {name}:"
            differing = difflib.unified_diff(old.split(LINE_BREAK), new.split(LINE_BREAK), n=1, lineterm="")
            yield from (f"{BAR} {line}" for line in [*differing][2:])
        elif new is _GONE:
            yield f"- {name}: {_said(old)}"
        elif old is _GONE:
            yield f"+ {name}: {_said(new)}"
        else:
            yield f"~ {name}: {_said(old)} -> {_said(new)}"


def _named(name: str, value: Any) -> list[str]:
    """Return a value with its name before it, or over it."""
    match value:
        case str() if LINE_BREAK in value:
            inner = value.split(LINE_BREAK)
        case dict() | list() if not _fits_its_line(value):
            inner = _object(value) if isinstance(value, dict) else _table(value) or _list(value)
        case _:
            return [f"{name}: {_said(value)}"]
    return [f"{name}:", *(f"{BAR} {line}" if line else BAR for line in inner)]


def _object(items: dict[str, Any]) -> list[str]:
    return [line for name, item in items.items() for line in _named(_name(name), item)]


def _list(items: list[Any]) -> list[str]:
    return [line for at, item in enumerate(items) for line in _named(f"[{at}]", item)]


def _table(items: list[Any]) -> list[str]:
    """Return objects with the same names as the rows of a table; nothing where they make none."""
    more = [item for item in items[-1:] if isinstance(item, str) and item.startswith(CLIPPED)]
    rows = items[: len(items) - len(more)]
    if len(rows) < 2 or not all(isinstance(row, dict) and row and row.keys() == rows[0].keys() for row in rows):
        return []
    cells = [[_name(name) for name in rows[0]], *([_said(row[name]) for name in rows[0]] for row in rows)]
    widths = [max(map(len, column)) for column in zip_longest(*cells, fillvalue="")]
    plain = all(LINE_BREAK not in cell and BAR not in cell for row in cells for cell in row)
    scalar = not any(isinstance(cell, dict | list) for row in rows for cell in row.values())
    if not plain or not scalar or len(widths) > _MOST_COLUMNS or sum(widths) + 3 * len(widths) > _WIDEST:
        return []
    lines = [f" {BAR} ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    return [*(line.rstrip() for line in lines), *more]


def _fits_its_line(value: dict[str, Any] | list[Any]) -> bool:
    text = json.dumps(value, ensure_ascii=False)
    return len(text) <= _SHORT and LINE_BREAK not in text


def _said(value: Any) -> str:
    """Return a value on one line; a string that could be taken for another value is quoted."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    quoted = not value or value[0] in "\"'{[" or value != value.strip() or _reads_as_other(value)
    return json.dumps(value, ensure_ascii=False) if quoted else value


def _reads_as_other(text: str) -> bool:
    if text in {"null", "true", "false"}:
        return True
    try:
        float(text)
    except ValueError:
        return False
    return True


def _name(name: str) -> str:
    """Return a name; one that could be taken for more than a name, or for a fact of the engine, is quoted."""
    plain = name != "" and name not in _FACTS and all(sign.isalnum() or sign in _IN_NAMES for sign in name)
    return name if plain else json.dumps(name, ensure_ascii=False)
