"""Say what a value was put together from: the parts of it that are in an index, and where they stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from operator import add
from typing import Any
from urllib.parse import unquote

from backstay.provenance.index import MOST_PLACES, NOBODY, MarkIndex
from backstay.provenance.part import LEAST_PHRASE, LEAST_PIECE, ValuePart
from backstay.provenance.source import vouched
from backstay.provenance.targets import Shape
from backstay.provenance.words import coded_in, numbers, spellings, squeezed, words

MOST_WORDS = 20_000
"""Of a longer text the rest is not looked up, and counts as the model's."""
SHORT = 40
"""Targets of at most this many words are also looked up with the words joined, cut apart and spelled otherwise."""
_REFERENCE = re.compile(r"\$\{(?:steps|input)\.[^{}]{1,200}\}")
"""A reference of a plan says nothing itself; its value is looked at once it is known."""


def without_references(text: str) -> str:
    """Return a string without what it refers to."""
    return _REFERENCE.sub(" ", text) if "${" in text else text


class _MarkSources(dict[str, frozenset[int]]):
    """Remember in which sources the marks stand that were looked for."""

    def __init__(self, index: MarkIndex) -> None:
        """Begin with none."""
        super().__init__()
        self._find = index.find

    def __missing__(self, mark: str) -> frozenset[int]:
        self[mark] = found = self._find(mark)
        return found


@dataclass
class Composition:
    """Find in one index what values were put together from."""

    index: MarkIndex
    computed: tuple[str, ...] = ()
    """What a value counts as that stands nowhere: the model's own words, unless a program computed it."""
    _read: dict[tuple[str, bool], list[ValuePart]] = field(default_factory=dict)
    """Texts that were taken apart, and whether closely."""
    _pieces: dict[str, list[ValuePart]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin to look values up."""
        self._found = _MarkSources(self.index)

    def parts_of(self, value: Any, shape: Shape) -> list[ValuePart]:
        """Return what a value was put together from, in order; parts that say nothing are left out."""
        if value is None or isinstance(value, bool):
            return []
        # An argument that says where a call goes is looked at closely.
        closely = shape != "other"
        if not isinstance(value, str):
            return self._as_number(value) or [ValuePart(tuple(words(repr(value))), self.computed)]
        if (known := self._read.get((value, closely))) is None:
            self._read[value, closely] = known = self._as_number(value) or self._parts_of(value, closely=closely)
        return known

    def _as_number(self, value: Any) -> list[ValuePart]:
        """Return a number as one part if it stands somewhere, however it is written; nothing for another value."""
        for written in numbers(value):
            if (codes := self._phrase(written)) is not None:
                return [ValuePart(tuple(written), codes)]
        return []

    def _parts_of(self, value: str, *, closely: bool) -> list[ValuePart]:
        text = without_references(value)
        plain = unquote(text) if "%" in text else text
        in_order = words(plain)[:MOST_WORDS]
        closely = closely and len(in_order) <= SHORT
        parts = list(self._parts(in_order, closely=closely))
        if closely and (len(parts) != 1 or not parts[0].codes):
            parts = self._spelled(plain, in_order, parts)
        for coded in coded_in(plain):
            parts.extend(
                part for part in self._parts(words(coded), closely=False) if part.codes and part.codes != self.computed
            )
        return parts

    def _spelled(self, text: str, in_order: list[str], parts: list[ValuePart]) -> list[ValuePart]:
        """Return the parts, or the value as one part when it stands somewhere in another spelling."""
        if sum(map(len, in_order)) < LEAST_PHRASE:
            return parts
        if (codes := self._spelling(text, in_order)) is not None:
            return [ValuePart(tuple(in_order), codes)]
        # Of a command, one word may be spelled otherwise and the rest not.
        several = text.split()
        for token in several if len(several) > 1 else ():
            own = words(token)
            if sum(map(len, own)) >= LEAST_PHRASE and self._phrase(own) is None:
                codes = self._spelling(token, own)
                parts = parts if codes is None else [*parts, ValuePart(tuple(own), codes)]
        return parts

    def _spelling(self, text: str, in_order: list[str]) -> tuple[str, ...] | None:
        """Return where a value is in another spelling, or None."""
        for spelling in chain([[squeezed(in_order)]], spellings(text, self._found)):
            if (codes := self._phrase(spelling)) is not None:
                return codes
        found = self.index.initials.find(squeezed(in_order)) if self.index.others else NOBODY
        return self.index.first_of(found) if found else None

    def _parts(self, in_order: list[str], *, closely: bool) -> Iterator[ValuePart]:
        at = 0
        while at < len(in_order):
            end, found = self._longest(in_order, at)
            if closely and end < len(in_order) and (end - at < 2 or not found):
                # Written in one in its source, as account numbers are.
                end, found = self._joined(in_order, at, end, found)
            if found and (end - at > 1 or len(in_order[at]) >= LEAST_PIECE or len(in_order) == 1):
                yield ValuePart(tuple(in_order[at:end]), self.index.first_of(found))
            elif found and closely and not vouched(self.index.first_of(found)):
                # A short word that nobody vouches for belongs to those who wrote it.
                yield ValuePart(tuple(in_order[at:end]), self.index.first_of(found))
            elif not found and len(in_order[at]) >= LEAST_PIECE:
                yield from self._cut(in_order[at]) if closely else (ValuePart((in_order[at],), self.computed),)
            at = max(end, at + 1)

    def _longest(self, in_order: list[str], at: int) -> tuple[int, frozenset[int]]:
        """Return the end of the longest row of words from here that is in one source, and these sources."""
        known = self._found
        found = known[in_order[at]]
        if not found:
            return at + 1, found
        for end in range(at + 1, len(in_order)):
            further = known[in_order[end - 1] + in_order[end]]
            if end > at + 1:
                further = further & found
            if not further:
                return end, found
            found = further
        return len(in_order), found

    def _joined(self, in_order: list[str], at: int, end: int, found: frozenset[int]) -> tuple[int, frozenset[int]]:
        lasts = range(min(len(in_order), at + SHORT), at + 1, -1)
        joined = ["".join(in_order[at:last]) for last in lasts]
        first = self.index.first_found(joined)
        return (end, found) if first is None else (lasts[joined.index(first)], self._found[first])

    def _cut(self, word: str) -> list[ValuePart]:
        """Return the pieces of a word that stands nowhere as one, such as an account number that was written apart."""
        if (known := self._pieces.get(word)) is None:
            self._pieces[word] = known = list(self._pieces_of(word))
        return known

    def _pieces_of(self, word: str) -> Iterator[ValuePart]:
        at = missing = 0
        pieces: list[tuple[int, int, frozenset[int]]] = []
        length, first_found = len(word), self.index.first_found
        while at < length:
            least = max(min(LEAST_PIECE, length - at), 2)
            piece = first_found([word[at:end] for end in range(min(length, at + 64), at + least - 1, -1)])
            if piece is None:
                at, missing = at + 1, missing + 1
                continue
            found, end = self._found[piece], at + len(piece)
            if pieces and pieces[-1][1] == at and (same := found & pieces[-1][2]):
                pieces[-1] = (pieces[-1][0], end, same)
            else:
                pieces.append((at, end, found))
            at = end
        if missing * 2 > len(word) or not pieces:
            yield ValuePart((word,), self.computed)
            return
        for start, end, found in pieces:
            yield ValuePart((word[start:end],), self.index.first_of(found))
        if missing:
            yield ValuePart((word,), self.computed)

    def _holding(self, in_order: list[str]) -> frozenset[int] | None:
        """Return the sources in which words may be in a row; None where these are too many to be known."""
        rows = list(map(add, in_order, in_order[1:])) or in_order
        known = [found for found in map(self._found.__getitem__, rows) if len(found) < MOST_PLACES]
        return frozenset.intersection(*known) if known else None

    def _phrase(self, in_order: list[str]) -> tuple[str, ...] | None:
        """Return where words are in a row, all of them, or None."""
        if not in_order or not self._found[in_order[0]]:
            return None
        end, found = self._longest(in_order, 0)
        return self.index.first_of(found) if found and end == len(in_order) else None
