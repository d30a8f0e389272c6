"""Shorten a JSON value to a part that still shows its structure."""

import json
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice
from typing import Any, TypeVar

from backstay.strict_json import clean_json, unique_key

_MORE = "…"
_LONGEST_NAME = 80
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[^\W\d_a-zA-Z]{2,}|[A-Z]{3,}")
Value = TypeVar("Value")


class Excerpt:
    """Shorten texts, lists, wide objects and deep nesting, and count what was shortened."""

    def __init__(
        self, text: int, items: int, *, widest: int = 40, deepest: int = 5, wanted: AbstractSet[str] = frozenset()
    ) -> None:
        """Keep at most the given numbers of characters of a string, items of a list, names of an object, and levels.

        Of an object with too many names, those that hold a wanted word are kept first.
        """
        self._wanted = wanted
        self._text = text
        self._items = items
        self._widest = widest
        self._deepest = deepest
        self.clipped = 0

    def of(self, value: Any, depth: int = 0) -> Any:
        """Return the shortened value."""
        match value:
            case str() if len(value) > self._text:
                self.clipped += 1
                return value[: self._text] + _MORE
            case dict() | list() if depth >= self._deepest:
                self.clipped += bool(value)
                return type(value)()
            case dict():
                self.clipped += len(value) > self._widest
                kept: dict[str, Any] = {}
                for name, item in islice(wanted_first(value, self._wanted, self._widest), self._widest):
                    short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + _MORE
                    kept[unique_key(short, kept)] = self.of(item, depth + 1)
                return kept
            case list():
                self.clipped += len(value) > self._items
                return [self.of(item, depth + 1) for item in representative(value, self._items)]
            case _:
                return value


def wanted_first(items: Mapping[str, Value], wanted: AbstractSet[str], room: int = 0) -> Iterable[tuple[str, Value]]:
    """Return the entries, and where there is no room for all of them, those first whose name holds a wanted word."""
    if not wanted or len(items) <= room:
        return items.items()
    return sorted(items.items(), key=lambda entry: wanted.isdisjoint(words_of(entry[0])))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a string or of a name, so that `unit_price`, `unitPrice` and "prices" have one in common."""
    return frozenset(word.casefold().rstrip("s") for word in _WORD.findall(text))


def representative(items: list[Any], count: int) -> list[Any]:
    """Return up to `count` items, evenly spread, the first and the last among them."""
    if count >= len(items):
        return items
    if count <= 1:
        return items[:count]
    last = len(items) - 1
    return [items[at * last // (count - 1)] for at in range(count)]


def read_json(text: str) -> Any:
    """Parse the JSON text of an object or a list; return None if it is no such text."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return clean_json(json.loads(text))
    except (ValueError, RecursionError):
        return None
