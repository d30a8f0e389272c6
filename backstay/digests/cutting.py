"""Cut a long text to its head, its tail and what matches the task, so that it fills the room that it has."""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from backstay.data_files import data_beside

_TAIL, _MATCHES = 0.3, 0.25
"""The shares of the room that the tail and the matching lines may take; the head takes what is left."""
_MARK = 80
"""Bytes that the line takes which says what is left out."""
_LOOKED_AT = 500_000
"""Characters in the middle of a string in which matching lines are looked for."""
_LONGEST_MATCH = 400
_MOST_MATCHES = 200
_NEAR = 8
"""Within this part of its share an end is moved to the end of a line."""
_TRIES = 8
_FULL = 0.9
"""From this part of the room on it is well used."""
_TELLING = frozenset[str](data_beside(__file__)["telling"].split())


class Gap(NamedTuple):
    """Say what is left out between two pieces of a string: where it begins, and how long it is, in characters."""

    start: int
    length: int
    lines: int


def cut_text(text: str, room: int, wanted: AbstractSet[str] = frozenset()) -> list[str | Gap]:
    """Return pieces of a string, at most `room` bytes of UTF-8 together, and what is left out between them."""
    characters = room * len(text) // max(size_of_text(text), 1)
    fitting: list[str | Gap] = []
    for _ in range(_TRIES):
        pieces = _cut(text, characters, wanted)
        taken = sum(size_of_text(piece) if isinstance(piece, str) else _MARK for piece in pieces)
        fitting = pieces if taken <= room or not fitting else fitting
        if room * _FULL <= taken <= room:
            break
        # Its characters are not equally long everywhere.
        characters = min(characters * room // (taken + 1), len(text) - 1)
    return fitting


def size_of_text(text: str) -> int:
    """Return the bytes of UTF-8 that a string has."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def _cut(text: str, room: int, wanted: AbstractSet[str]) -> list[str | Gap]:
    if len(text) <= room:
        return [text]
    tail = int(room * _TAIL)
    tail_at = _after_line(text, len(text) - tail, tail // _NEAR)
    least = int(room * (1 - _TAIL - _MATCHES))
    matches = _matches(text, least, tail_at, wanted | _TELLING, int(room * _MATCHES))
    room -= len(text) - tail_at + _MARK
    while matches and matches[0][0] < room - _cost(matches):
        # The head reaches it, and takes its room as well.
        matches = matches[1:]
    head = max(room - _cost(matches), 0)
    head_to = _before_line(text, head, head // _NEAR)
    shown = [(0, head_to), *((max(begin, head_to), end) for begin, end in matches if end > head_to)]
    return _pieces(text, [*shown, (tail_at, len(text))])


def _cost(matches: list[tuple[int, int]]) -> int:
    return sum(end - begin + _MARK for begin, end in matches)


def _pieces(text: str, shown: Iterable[tuple[int, int]]) -> list[str | Gap]:
    pieces: list[str | Gap] = []
    reached = 0
    for begin, end in shown:
        if begin > reached:
            pieces.append(Gap(reached, begin - reached, text.count("\n", reached, begin)))
        if end > begin:
            pieces.append(text[begin:end])
        reached = max(end, reached)
    return pieces


def _matches(text: str, start: int, end: int, wanted: AbstractSet[str], room: int) -> list[tuple[int, int]]:
    """Return where lines stand that hold wanted words, the rarest first as long as there is room, in order."""
    if room < _MARK or end <= start or not wanted:
        return []
    middle = text[start : min(end, start + _LOOKED_AT)]
    lowered = middle.lower()
    # Of a few letters of other scripts, the small form is longer.
    lowered = lowered if len(lowered) == len(middle) else middle
    found: dict[tuple[int, int], set[str]] = {}
    for word in wanted:
        at = -1
        for _ in range(_MOST_MATCHES):
            if (at := lowered.find(word, at + 1)) < 0:
                break
            place = (lowered.rfind("\n", 0, at) + 1, _end_of_line(lowered, at))
            found.setdefault((start + place[0], start + place[1]), set()).add(word)
            at = place[1]
    counted = Counter(word for words in found.values() for word in words)
    best = sorted(found, key=lambda place: (-sum(1 / counted[word] for word in found[place]), place))
    kept: list[tuple[int, int]] = []
    for begin, to in best[:_MOST_MATCHES]:
        cost = min(to - begin, _LONGEST_MATCH) + _MARK
        if cost <= room:
            room -= cost
            kept.append((begin, min(to, begin + _LONGEST_MATCH)))
    return sorted(kept)


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _before_line(text: str, at: int, within: int) -> int:
    found = text.rfind("\n", max(at - within, 0), at)
    return at if found < 0 else found + 1


def _after_line(text: str, at: int, within: int) -> int:
    found = text.find("\n", at, at + within)
    return at if found < 0 else found + 1
