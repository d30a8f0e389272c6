"""Look the arguments of a call up in the index of its run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from backstay.provenance.index import Index
from backstay.provenance.source import (
    BY_MODEL,
    MODEL,
    MOST_LEAVES,
    Parts,
    Sources,
    is_computed,
    is_others,
    leaves,
    pointer_to,
    source_of,
    vouched,
)
from backstay.provenance.targets import Shape, hosts_in, is_address_of_a_page, shape_of
from backstay.provenance.words import coded_in, numbers, spellings, words

LEAST_PIECE = 4
"""A word with fewer letters says nothing about where a value came from, unless it is the whole value."""
LEAST_PHRASE = 6
"""How many letters words in a row must have together, so that others' words make a path, URL or command theirs."""
MOST_WORDS = 20_000
"""Of a longer text the rest is not looked up, and counts as the model's."""
SHORT = 40
"""Targets of so many words are also looked up with their words joined, cut apart and spelled in other ways."""
MOST_TARGETS = 100
"""So many targets of a call are looked at closely, and of further ones somebody must vouch for every part."""
LONGEST_PAGE = 2000
MOST_CODES = 5
"""How many places are named for one part of a value."""


@dataclass(frozen=True)
class Part:
    """Hold one part of a value: its words in a row, and the codes of the places where they stand in a row."""

    words: tuple[str, ...]
    codes: tuple[str, ...]
    """Empty where nothing is known of it."""

    @property
    def letters(self) -> int:
        """Return how many letters and digits it has."""
        return sum(map(len, self.words))

    @property
    def trusted(self) -> bool:
        """Return whether somebody vouches for it."""
        return vouched(self.codes)

    @property
    def others(self) -> bool:
        """Return whether it stands in what others wrote."""
        return any(map(is_others, self.codes))


@dataclass
class Lookup:
    """Look values up in one index."""

    index: Index
    computed: tuple[str, ...] = ()
    """What a value counts as that stands nowhere: the model's own words, unless a program computed it."""
    _found: dict[str, frozenset[int]] = field(default_factory=dict)

    def sources_of(self, arguments: dict[str, Any], *, egress: bool = False) -> Sources:
        """Return where each argument came from; with `egress`, also what would leave that nobody sent out."""
        by: dict[str, Parts] = {}
        foreign: list[str] = []
        reaching: list[str] = []
        told = list(leaves(arguments))
        pages = [at for at, value in told if egress and is_address_of_a_page(_name(at), str(value)[:LONGEST_PAGE])]
        targets = 0
        for pointer, value in told:
            shape = shape_of(_name(pointer), value if isinstance(value, str) else str(value))
            targets += shape != "other"
            hurried = targets > MOST_TARGETS
            parts = self.parts_of(value, "other" if hurried else shape)
            by[pointer] = self._codes(parts)
            if shape != "other" and self._is_foreign(value, parts, shape, hurried=hurried):
                foreign.append(pointer)
            if egress and reaches(parts, page=pointer in pages):
                reaching.append(pointer)
        shown, more = _bounded(_collapsed(arguments, by), {*foreign, *reaching})
        return Sources(by=shown, foreign=tuple(foreign[:MOST_LEAVES]), reaching=tuple(reaching[:4]), more=more)

    def _is_foreign(self, value: Any, parts: list[Part], shape: Shape, *, hurried: bool) -> bool:
        """Return whether what others wrote says where a call goes; after very many targets, whether nobody vouches."""
        if hurried:
            return not all(part.trusted for part in parts)
        if comes_from_others(parts, shape):
            return True
        # The host of a URL is one thing, as an address is.
        hosts = hosts_in(value) if isinstance(value, str) else []
        return any(comes_from_others(self.parts_of(host, "atom"), "atom") for host in hosts)

    def parts_of(self, value: Any, shape: Shape) -> list[Part]:
        """Return what a value was put together from, in order; what says nothing is left out."""
        if value is None or isinstance(value, bool):
            return []
        for written in numbers(value):
            if (codes := self._phrase(written)) is not None:
                return [Part(tuple(written), codes)]
        text = value if isinstance(value, str) else repr(value)
        if not isinstance(value, str):
            return [Part(tuple(words(text)), self.computed)]
        plain = unquote(text) if "%" in text else text
        in_order = words(plain)[:MOST_WORDS]
        # What says where a call goes is looked at closely.
        closely = shape != "other" and len(in_order) <= SHORT
        parts = list(self._parts(in_order, closely=closely))
        if closely and (len(parts) != 1 or not parts[0].codes):
            parts = self._spelled(plain, parts)
        for coded in coded_in(plain):
            parts.extend(
                part for part in self._parts(words(coded), closely=False) if part.codes and part.codes != self.computed
            )
        return parts

    def _spelled(self, text: str, parts: list[Part]) -> list[Part]:
        """Return the parts, or the value as one part when it stands somewhere in another spelling."""
        in_order = words(text)
        if sum(map(len, in_order)) < LEAST_PHRASE:
            return parts
        for spelling in spellings(text):
            if (codes := self._phrase(spelling)) is not None:
                return [Part(tuple(in_order), codes)]
        return parts

    def _parts(self, in_order: list[str], *, closely: bool) -> Iterator[Part]:
        at = 0
        while at < len(in_order):
            end, found = self._longest(in_order, at)
            if closely and end < len(in_order) and (end - at < 2 or not found):
                # Written in one in its source, as account numbers are.
                end, found = self._joined(in_order, at, end, found)
            if found and (end - at > 1 or len(in_order[at]) >= LEAST_PIECE or len(in_order) == 1):
                yield Part(tuple(in_order[at:end]), self._named(found))
            elif not found and len(in_order[at]) >= LEAST_PIECE:
                yield from self._cut(in_order[at]) if closely else (Part((in_order[at],), self.computed),)
            at = max(end, at + 1)

    def _longest(self, in_order: list[str], at: int) -> tuple[int, frozenset[int]]:
        """Return the end of the longest row of words from here that stands in one source, and these sources."""
        found = self._find(in_order[at])
        end = at + 1
        while found and end < len(in_order):
            further = self._find(in_order[end - 1] + in_order[end])
            further = further & found if end > at + 1 else further
            if not further:
                break
            found, end = further, end + 1
        return end, found

    def _joined(self, in_order: list[str], at: int, end: int, found: frozenset[int]) -> tuple[int, frozenset[int]]:
        for last in range(min(len(in_order), at + SHORT), at + 1, -1):
            if joined := self._find("".join(in_order[at:last])):
                return last, joined
        return end, found

    def _cut(self, word: str) -> Iterator[Part]:
        """Yield the pieces of a word that stands nowhere as one, such as an account number that was written apart."""
        at = missing = 0
        pieces: list[tuple[int, int, frozenset[int]]] = []
        while at < len(word):
            for end in range(min(len(word), at + 64), at + 1, -1):
                if end - at >= min(LEAST_PIECE, len(word) - at) and (found := self._find(word[at:end])):
                    same = found & pieces[-1][2] if pieces and pieces[-1][1] == at else _NOBODY
                    if same:
                        pieces[-1] = (pieces[-1][0], end, same)
                    else:
                        pieces.append((at, end, found))
                    at = end
                    break
            else:
                at, missing = at + 1, missing + 1
        if missing * 2 > len(word) or not pieces:
            yield Part((word,), self.computed)
            return
        for start, end, found in pieces:
            yield Part((word[start:end],), self._named(found))
        if missing:
            yield Part((word,), self.computed)

    def _phrase(self, in_order: list[str]) -> tuple[str, ...] | None:
        """Return where words stand in a row, all of them, or None."""
        if not in_order:
            return None
        end, found = self._longest(in_order, 0)
        return self._named(found) if found and end == len(in_order) else None

    def _find(self, mark: str) -> frozenset[int]:
        if (found := self._found.get(mark)) is None:
            found = self.index.find(mark)
            self._found[mark] = found
        return found

    def _named(self, found: frozenset[int]) -> tuple[str, ...]:
        """Return the codes of the first places, whoever vouches for the value among them."""
        # Of a tool that has said it many times, the first answer is named: a long run must not need ever more for it.
        first: dict[tuple[str, ...], str] = {}
        for number in sorted(found):
            code = self.index.codes[number]
            source = source_of(code)
            first.setdefault((source.kind, source.tool or "", source.content or ""), code)
        codes = list(first.values())
        own = [code for code in codes if not is_others(code)][: MOST_CODES - 1]
        theirs = [code for code in codes if is_others(code)][: MOST_CODES - len(own)]
        return (*own, *theirs)

    def _codes(self, parts: list[Part]) -> Parts:
        codes = dict.fromkeys(part.codes or (MODEL,) for part in parts)
        return tuple(codes) or BY_MODEL


_NOBODY: frozenset[int] = frozenset()


def comes_from_others(parts: list[Part], shape: Shape) -> bool:
    """Return whether what others wrote says where a call goes, and nobody else vouches for it."""
    theirs = [part for part in parts if part.others and not part.trusted]
    if any(_weighs(part, shape) for part in theirs):
        return True
    if shape == "atom" and len(parts) > 1 and any(part.others for part in parts):
        # An address is one thing: nobody vouches for what was put together from pieces that others hold.
        return not all(part.trusted and not part.others for part in parts)
    return bool(theirs) and 2 * sum(part.letters for part in theirs) >= sum(part.letters for part in parts)


def _weighs(part: Part, shape: Shape) -> bool:
    if shape == "atom":
        return True
    if any(map(is_computed, part.codes)):
        return True
    if len(part.words) > 1:
        return part.letters >= LEAST_PHRASE
    return part.letters >= LEAST_PIECE and any(map(str.isdigit, "".join(part.words)))


def reaches(parts: list[Part], *, page: bool) -> bool:
    """Return whether the address of a page does not come from the task, a person or the operator.

    Of other arguments, whether they hold words of an answer, or what a program computed.
    """
    if page:
        return not all(_sent_by(part) for part in parts)
    return any(set(part.codes) - {MODEL} and not _sent_by(part) for part in parts)


def _sent_by(part: Part) -> bool:
    return any(code in {"task", "person", "operator"} for code in part.codes)


def _name(pointer: str) -> str:
    """Return the name of the argument that a pointer leads to; elements of a list bear the name of the list."""
    names = [name for name in pointer.split("/") if name and not name.isdecimal()]
    return names[-1] if names else ""


def _collapsed(value: Any, by: dict[str, Parts], pointer: str = "") -> dict[str, Parts]:
    """Say once for all that is below a pointer what holds for all of it."""
    inside = _inside(value)
    if not inside:
        return {pointer: by.get(pointer, BY_MODEL)}
    found: dict[str, Parts] = {}
    for step, item in inside:
        found |= _collapsed(item, by, pointer_to(pointer, step))
    kinds = set(found.values())
    return {pointer: kinds.pop()} if len(kinds) == 1 else found


def _inside(value: Any) -> list[tuple[Any, Any]]:
    match value:
        case dict() if "$ref" not in value:
            return list(value.items())
        case list():
            return list(enumerate(value))
        case _:
            return []


def _bounded(by: dict[str, Parts], first: set[str]) -> tuple[dict[str, Parts], int]:
    """Keep the sources of so many arguments, those that matter most among them, and count the others."""
    if len(by) <= MOST_LEAVES:
        return by, 0
    kept = sorted(by, key=lambda at: not any(other == at or other.startswith(f"{at}/") for other in first))
    chosen = set(kept[:MOST_LEAVES])
    return {at: parts for at, parts in by.items() if at in chosen}, len(by) - len(chosen)
