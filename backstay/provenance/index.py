"""An index of all that was said in a run: which marks stand in which source."""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from backstay.provenance.contacts import Contacts
from backstay.provenance.echo import Echo
from backstay.provenance.listed import Listed, listed_in
from backstay.provenance.source import is_others
from backstay.provenance.words import BORDER, marks

SMALL = 2000
"""So many marks of one text are kept together with those of others, and of a larger text by themselves."""
AT_ONCE = 2_000_000
"""A text with more characters is taken apart in pieces of so many, and kept as sorted hashes of eight bytes, so that a
large answer does not take a multiple of its size."""
MOST_PLACES = 16
"""For a mark that stands in more sources than these, the first ones are remembered."""
SHORT_PIECE = 4
"""A list that begins with so short a text is also read as one text."""
_OVERLAP = 200
MOST_LISTED = 100_000
"""In an answer with more characters no identifiers and no contacts are recognised."""


class Index:
    """Find the sources of a mark; sources are only ever added."""

    def __init__(self) -> None:
        """Begin with no source."""
        self.codes: list[str] = []
        """The code of each source, in the order in which they appeared."""
        self.size = 0
        """About how many bytes it takes in memory."""
        self._numbers: dict[str, int] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        self._by_text: list[tuple[int, set[str]]] = []
        self._large: list[tuple[int, array[int]]] = []
        self.listed = Listed()
        """The identifiers that tools listed."""
        self.contacts = Contacts()
        """Whom own records give which address."""
        self.others = False
        """Whether anything that others wrote was read."""

    def add_answer(self, code: str, payload: Any, echo: Echo | None = None) -> None:
        """Add the answer of a tool, without what it only repeats of the arguments of its call."""
        text = texts_in(payload)
        # What others wrote is theirs wherever else it stood.
        self.add(code, text, None if is_others(code) else echo)
        if len(text) > MOST_LISTED:
            self.contacts.skip(code)
            return
        self.contacts.add(code, payload)
        if is_others(code):
            self.listed.add(self._numbers[code], code, listed_in(payload))

    def add(self, code: str, text: str, echo: Echo | None = None) -> None:
        """Add a text that stood in a source; a source may be given several texts."""
        self.others = self.others or is_others(code)
        number = self._numbers.setdefault(code, len(self.codes))
        if number == len(self.codes):
            self.codes.append(code)
        if len(text) > AT_ONCE:
            self._add_large(number, text, echo)
            return
        found = marks(text) if echo is None else echo.without(marks(text))
        self.size += 100 * len(found)
        if len(found) > SMALL:
            self._by_text.append((number, found))
            return
        places = self._places
        for mark in found:
            before = places.get(mark)
            if before is None:
                places[mark] = (number,)
            elif number not in before and len(before) < MOST_PLACES:
                places[mark] = (*before, number)

    def _add_large(self, number: int, text: str, echo: Echo | None) -> None:
        hashes: list[int] = []
        for start in range(0, len(text), AT_ONCE):
            # What is cut in two at the border of a piece is found in the overlap.
            found = marks(text[max(start - _OVERLAP, 0) : start + AT_ONCE])
            hashes += sorted(map(hash, found if echo is None else echo.without(found)))
        # Sorting what is sorted in pieces only merges them.
        hashes.sort()
        self._large.append((number, array("q", hashes)))
        self.size += 8 * len(hashes)

    def find(self, mark: str) -> frozenset[int]:
        """Return the numbers of the sources in which a mark stands."""
        found = self._places.get(mark, ())
        if self._by_text:
            found = (*found, *[number for number, text in self._by_text if mark in text])
        if self._large:
            found = (*found, *self._find_large(hash(mark)))
        return frozenset(found)

    def _find_large(self, value: int) -> Iterator[int]:
        for number, hashes in self._large:
            at = bisect_left(hashes, value)
            if at < len(hashes) and hashes[at] == value:
                yield number


def texts_in(value: Any) -> str:
    """Return every text and number of a JSON value and every name of its fields, with a border between them."""
    found: list[str] = []
    names: dict[Any, Any] = {}
    waiting = [value]
    while waiting:
        item = waiting.pop()
        # By type and not by pattern: an answer may have hundreds of thousands of values.
        kind = type(item)
        if kind is str:
            found.append(item)
        elif kind is int or kind is float:
            found.append(repr(item))
        elif kind is dict:
            names.update(item)
            waiting.extend(item.values())
        elif kind is list or kind is tuple:
            waiting.extend(item)
            if len(item) > 2 and type(item[0]) is str and len(item[0]) <= SHORT_PIECE:
                # A value that was cut into pieces, as in ["DE", "89", "37"].
                found.append("".join(piece for piece in item if type(piece) is str))
    return BORDER.join([*map(str, names), *found])
