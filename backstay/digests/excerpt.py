"""Shorten a JSON value to a part that still shows its structure."""

import json
from itertools import islice
from typing import Any

from backstay.strict_json import clean_json, unique_key

_MORE = "…"
_LONGEST_NAME = 80


class Excerpt:
    """Shorten texts, lists, wide objects and deep nesting, and count what was shortened."""

    def __init__(self, text: int, items: int, *, widest: int = 40, deepest: int = 5) -> None:
        """Keep at most so many characters of a text, items of a list, names of an object, and levels."""
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
                for name, item in islice(value.items(), self._widest):
                    short = name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME] + _MORE
                    kept[unique_key(short, kept)] = self.of(item, depth + 1)
                return kept
            case list():
                self.clipped += len(value) > self._items
                return [self.of(item, depth + 1) for item in representative(value, self._items)]
            case _:
                return value


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
