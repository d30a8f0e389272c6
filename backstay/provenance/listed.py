"""Remember the identifiers that tools list, so that other tools of the same provider may take them.

An identifier is the whole value of a field such as `id`, `name`, `user` or `channel`, or an element of a list of these.
What stands elsewhere in the same answer as well, such as in a text, is none: a text may tell a model which one to take.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any

from backstay.data_files import data_beside
from backstay.provenance.source import is_computed, source_of
from backstay.provenance.targets import is_moment
from backstay.provenance.words import BORDER, marks, words

LONGEST = 64
MOST_WORDS = 4
MOST = 2000
"""So many identifiers of one answer are remembered."""
_NAMES, _CONTAINERS = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_IDENTIFIER = re.compile(r"[#@]?\w[\w #+-]*(?:\.\d+)*", re.ASCII)


def is_identifier(value: str) -> bool:
    """Return whether a value can be an identifier: short, and no address, host, URL or path."""
    return len(value) <= LONGEST and bool(_IDENTIFIER.fullmatch(value)) and 0 < len(words(value)) <= MOST_WORDS


class Listed:
    """Hold which answers list which identifiers."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_value: dict[tuple[str, str], dict[int, str]] = {}

    def add(self, number: int, code: str, payload: Any) -> None:
        """Add what an answer of one source lists."""
        tool = source_of(code).tool or ""
        if is_computed(code) or tool.startswith("engine."):
            return
        for key in listed_in(payload):
            self._by_value.setdefault((tool.partition(".")[0], key), {})[number] = tool

    def by(self, tool: str, value: str) -> frozenset[int]:
        """Return the sources in which other tools of the provider of a tool list a value; none when none does."""
        found = self._by_value.get((tool.partition(".")[0], _key(value)), {})
        return frozenset(found) if any(other != tool for other in found.values()) else frozenset()


def listed_in(payload: Any) -> Iterator[str]:
    """Yield the identifiers of an answer that stand nowhere else in it, as their words."""
    listed: dict[str, list[str]] = {}
    rest: list[str] = []
    for name, value in _leaves(payload):
        if in_order := _identifier(name, value):
            listed[" ".join(in_order)] = in_order
        elif isinstance(value, str) and not is_moment(value):
            rest.append(value)
    if not listed:
        return
    said = marks(BORDER.join(rest))
    for key, in_order in islice(listed.items(), MOST):
        if not said.issuperset(_row(in_order)):
            yield key


def _identifier(name: str, value: Any) -> list[str]:
    """Return the words of an identifier; nothing where a leaf is none."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not _holds_identifiers(name):
        return []
    text = str(value)
    in_order = words(text) if len(text) <= LONGEST and _IDENTIFIER.fullmatch(text) else []
    return in_order if len(in_order) <= MOST_WORDS else []


@lru_cache(maxsize=1024)
def _holds_identifiers(name: str) -> bool:
    named = [word.lower() for word in _WORD.findall(name)]
    return bool(named) and named[-1] in _NAMES


def _leaves(payload: Any) -> Iterator[tuple[str, Any]]:
    waiting: list[tuple[str, Any]] = [("items", payload)]
    while waiting:
        name, item = waiting.pop()
        match item:
            case dict():
                waiting += [(str(key), value) for key, value in item.items()]
                # Objects by id: what names an object in a list of objects is its key here.
                waiting += [
                    ("id", str(key))
                    for key, value in item.items()
                    if isinstance(value, dict) and _names_an_object(str(key))
                ]
            case list() | tuple():
                within = name.lower() in _CONTAINERS
                waiting += [("names" if within and isinstance(value, str | int) else name, value) for value in item]
            case _:
                yield name, item


def _names_an_object(key: str) -> bool:
    """Return whether a key can be the name of an object, and not that of a field."""
    return key != key.lower() or any(map(str.isdigit, key))


def _row(in_order: list[str]) -> set[str]:
    """Return the marks by which words would be found in a text."""
    return {first + second for first, second in pairwise(in_order)} or set(in_order)


def _key(value: str) -> str:
    return " ".join(words(value))
