"""Look at all leaves of a payload at once, to find known secrets that are spread over several of them."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from backstay.canonical import with_texts
from backstay.redaction.folding import BARRIER
from backstay.redaction.known_secrets import KnownSecrets

Split = Callable[[str], list[tuple[str, bool]]]
"""Cuts a string into parts that are handles or masks already, and parts that are not."""


_NUMBERS = frozenset((int, float))


class Leaves(NamedTuple):
    """The leaves of a JSON value, in the order in which they are written."""

    texts: list[str]
    numbers: list[float]
    names: list[str]
    """The keys of its objects."""


def leaves_of(payload: Any) -> Leaves:
    """Return the texts, numbers and keys in a JSON value."""
    found = Leaves([], [], [])
    waiting = [payload]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is str:
            found.texts.append(value)
        elif kind is dict:
            found.names.extend(value)
            waiting.extend(reversed(value.values()))
        elif kind is list and _NUMBERS.issuperset(map(type, value)):
            found.numbers.extend(value)
        elif kind is list:
            waiting.extend(reversed(value))
        elif kind is int or kind is float:
            found.numbers.append(value)
    return found


def may_hold(payload: Any, known: KnownSecrets) -> bool:
    """Return whether there may be a known secret in a payload; False is certain."""
    if isinstance(payload, str):
        return known.occur_in(payload)
    leaves = leaves_of(payload)
    return any(known.occur_in(" ".join(some)) for some in (leaves.texts, leaves.names, map(repr, leaves.numbers)))


def mask_spread(payload: Any, known: KnownSecrets, split: Split, mask: str) -> Any:
    """Return a payload with a mask for each leaf that has only a part of a known secret, such as one letter."""
    leaves = leaves_of(payload)
    texts = _spread([_searched(text, split) for text in leaves.texts], known)
    numbers = _spread([*map(repr, leaves.numbers)], known)
    if not texts and not numbers:
        return payload
    return _masked(payload, iter(_marks(texts, leaves.texts)), iter(_marks(numbers, leaves.numbers)), mask)


def mask_known(payload: Any, known: KnownSecrets, split: Split, mask: str) -> Any:
    """Return a payload with a mask for each known secret in it, in keys too, and everything else as it is."""

    def masked(text: str) -> str:
        return "".join(part if is_done else _masked_text(part, known, mask) for part, is_done in split(text))

    return with_texts(mask_spread(payload, known, split, mask), masked, names=True)


def _masked_text(text: str, known: KnownSecrets, mask: str) -> str:
    parts: list[str] = []
    at = 0
    for start, end in known.places_in(text):
        if start >= at:
            parts += (text[at:start], mask)
        at = max(at, end)
    return "".join((*parts, text[at:]))


def _searched(text: str, split: Split) -> str:
    return "".join(BARRIER if is_done else part for part, is_done in split(text))


def _spread(texts: list[str], known: KnownSecrets) -> set[int]:
    """Return the numbers of the texts that together hold a known secret none of them holds alone."""
    joined = " ".join(texts)
    ends = [*accumulate(len(text) + 1 for text in texts)]
    spread: set[int] = set()
    for start, end in known.places_in(joined):
        first, last = bisect_right(ends, start), bisect_right(ends, end - 1)
        spread |= set(range(first, last + 1)) if last > first else set()
    return spread


def _marks(spread: set[int], leaves: list[Any]) -> list[bool]:
    return [number in spread for number in range(len(leaves))]


def _masked(value: Any, texts: Iterator[bool], numbers: Iterator[bool], mask: str) -> Any:
    match value:
        case bool() | None:
            return value
        case str():
            return mask if next(texts) else value
        case int() | float():
            return mask if next(numbers) else value
        case dict():
            return {key: _masked(item, texts, numbers, mask) for key, item in value.items()}
        case _:
            return [_masked(item, texts, numbers, mask) for item in value]
