"""An index of all that was said in a run: which marks stand in which source."""

from array import array
from bisect import bisect_left
from typing import Any

from backstay.provenance.contacts import Contacts, has_records
from backstay.provenance.echo import Echo
from backstay.provenance.initials import Initials
from backstay.provenance.listed import Listed
from backstay.provenance.records import Records
from backstay.provenance.source import is_others, source_of
from backstay.provenance.words import BORDER, marks

SMALL = 2000
"""So many marks of one text are kept together with those of others, and of a larger text by themselves."""
AT_ONCE = 2_000_000
"""A text with more characters is taken apart in pieces of so many, and kept as sorted hashes of eight bytes, so that a
large answer does not take a multiple of its size."""
MOST_CODES = 5
"""How many places are named for one part of a value."""
MOST_PLACES = 16
"""For a mark that stands in more sources than these, the first ones are remembered."""
SHORT_PIECE = 4
"""A list that begins with so short a text is also read as one text."""
_OVERLAP = 200
NOBODY: frozenset[int] = frozenset()
MOST_WAITING = 2_000_000
"""So many characters of answers wait at most until a call needs to know what they list."""
MOST_LISTED = 100_000
"""In an answer with more characters no identifiers and no contacts are recognised."""


MOST_ASKED = 4000
"""So much is remembered of the arguments of the calls that one source answers."""


class Index:
    """Find the sources of a mark; sources are only ever added."""

    def __init__(self, *, whole: bool = False) -> None:
        """Begin with no source; with `whole`, the sources will be all that a model was told, in that order."""
        self._whole = whole
        self.codes: list[str] = []
        """The code of each source, in the order in which they appeared."""
        self.speakers: list[tuple[str, str, str]] = []
        """Who speaks in each source: its kind, its tool and whose words these are."""
        self.size = 0
        """About how many bytes it takes in memory."""
        self._numbers: dict[str, int] = {}
        self._places: dict[str, tuple[int, ...]] = {}
        self._by_text: list[tuple[int, set[str]]] = []
        self._large: list[tuple[int, array[int]]] = []
        self._listed = Listed()
        self._contacts = Contacts()
        self._records = Records()
        self.initials = Initials()
        """What others spelled by the first letters of words."""
        self._waiting: list[tuple[str, Any]] = []
        self._waits = 0
        """How many characters the answers have that nobody needed to take apart so far."""
        self.asked: dict[int, str] = {}
        """By source: the arguments of the calls that it answers, each between borders and without what is no word."""
        self.first = BORDER
        """The arguments of the calls that a model made before it was told anything that others wrote, as in `asked`."""
        self.others = False
        """Whether anything that others wrote was read."""

    def add_answer(self, code: str, payload: Any, echo: Echo | None = None) -> None:
        """Add the answer of a tool, without what it only repeats of the arguments of its call."""
        text = texts_in(payload)
        if self._whole and echo is not None and not self.others and len(self.first) < MOST_ASKED:
            self.first += f"{echo.said}{BORDER}"
        # What others wrote is theirs wherever else it stood.
        self.add(code, text, None if is_others(code) else echo)
        if echo is not None:
            number = self._numbers[code]
            self.asked[number] = f"{self.asked.get(number, BORDER)}{echo.said}{BORDER}"[-MOST_ASKED:]
            self.size += len(self.asked[number])
        if len(text) > MOST_LISTED:
            self._contacts.skip(code)
            self._records.skip(code)
        elif is_others(code) or has_records(code):
            self._waiting.append((code, payload))
            self._waits += len(text)
        if self._waits > MOST_WAITING:
            self._take_apart()

    @property
    def listed(self) -> Listed:
        """Return the identifiers that tools listed."""
        self._take_apart()
        return self._listed

    @property
    def contacts(self) -> Contacts:
        """Return whom own records give which address."""
        self._take_apart()
        return self._contacts

    @property
    def records(self) -> Records:
        """Return the records that answers hold, whoever writes these."""
        self._take_apart()
        return self._records

    def _take_apart(self) -> None:
        """Take apart the answers that wait for it.

        Several threads may look values up at once. Each sees to it that all is taken apart before it goes on, and no
        harm comes of an answer that two of them took apart.
        """
        waiting = self._waiting
        taken = tuple(waiting)
        for code, payload in taken:
            self._records.add(code, payload)
            if is_others(code):
                self._listed.add(self._numbers[code], code, payload)
            else:
                self._contacts.add(code, payload)
        if taken and self._waiting is waiting:
            self._waiting, self._waits = waiting[len(taken) :], 0

    def add(self, code: str, text: str, echo: Echo | None = None) -> None:
        """Add a text that stood in a source; a source may be given several texts."""
        self.others = self.others or is_others(code)
        number = self._numbers.setdefault(code, len(self.codes))
        if number == len(self.codes):
            self.codes.append(code)
            source = source_of(code)
            self.speakers.append((source.kind, source.tool or "", source.content or ""))
        if is_others(code):
            self.initials.add(number, text)
            # About one word in five characters.
            self.size += len(text) // 5
        if len(text) > AT_ONCE:
            self._add_large(number, text, echo)
            return
        found = marks(text)
        if echo is not None:
            echo.strip(found)
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
            if echo is not None:
                echo.strip(found)
            hashes += sorted(map(hash, found))
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
        return frozenset(found) if found else NOBODY

    def first_of(self, found: frozenset[int]) -> tuple[str, ...]:
        """Return the codes of the first of some sources, whoever vouches for what stands there among them.

        Of a tool that has said it many times, the first answer is named: a long run must not need ever more for it.
        """
        first: dict[tuple[str, str, str], str] = {}
        for number in sorted(found):
            first.setdefault(self.speakers[number], self.codes[number])
        own = [code for code in first.values() if not is_others(code)][: MOST_CODES - 1]
        theirs = [code for code in first.values() if is_others(code)][: MOST_CODES - len(own)]
        return (*own, *theirs)

    def _find_large(self, value: int) -> list[int]:
        found: list[int] = []
        for number, hashes in self._large:
            at = bisect_left(hashes, value)
            if at < len(hashes) and hashes[at] == value:
                found.append(number)
        return found


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
