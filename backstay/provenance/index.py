"""An index of all text of a run: which marks are in which source."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from typing import Any

from backstay.provenance.contacts import Contacts, has_records
from backstay.provenance.echo import Echo
from backstay.provenance.initials import Initials
from backstay.provenance.installs import reads_files
from backstay.provenance.listed import ListedIdentifiers
from backstay.provenance.records import MOST as MOST_RECORDS
from backstay.provenance.records import SourceRecords
from backstay.provenance.rows import only_text
from backstay.provenance.source import is_others, source_of
from backstay.provenance.words import BORDER, marks

SMALL = 2000
"""This many marks of one text are kept together with those of others, and of a larger text by themselves."""
AT_ONCE = 2_000_000
"""A string with more characters is taken apart in pieces of this many, and kept as sorted hashes of eight bytes, so
that a large answer does not take a multiple of its size."""
MOST_CODES = 5
"""How many places are named for one part of a value."""
MOST_PLACES = 16
"""For a mark that is in more sources than these, the first ones are remembered."""
SHORT_PIECE = 4
"""A list that begins with so short a string is also read as one text."""
_OVERLAP = 200
_PART_BITS = 50
_FIRST_PART = -(1 << 63 - _PART_BITS)
_LEASTS = tuple(part << _PART_BITS for part in range(_FIRST_PART, 1 - _FIRST_PART))
"""Where each part of sorted hashes begins, so that one of them is found in few steps."""
NOBODY: frozenset[int] = frozenset()
MOST_WAITING = 2_000_000
"""At most this many characters of answers wait until a call needs to know what they list."""
MOST_LISTED = 100_000
"""In an answer with more characters no identifiers and no contacts are recognised."""


MOST_FIRST = 1000
"""For this many sets of sources it is remembered which of them are named, which never changes."""
MOST_ASKED = 4000
"""So much is remembered of the arguments of the calls that one source answers."""
_Unread = dict[str, dict[int, tuple[Any, ...]]]


class MarkIndex:
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
        self._first: dict[frozenset[int], tuple[str, ...]] = {}
        self._frequent: set[str] = set()
        self._by_text: list[tuple[int, set[str]]] = []
        self._large: list[tuple[int, array[int], array[int]]] = []
        self._listed = ListedIdentifiers()
        self._contacts = Contacts()
        self._records = SourceRecords()
        self.initials = Initials()
        """What others spelled by the first letters of words."""
        self._waiting: list[tuple[str, Any]] = []
        """The own records of which nobody needed to know so far whom they name."""
        self._unread: dict[ListedIdentifiers | SourceRecords, _Unread] = {self._listed: {}, self._records: {}}
        """By provider and source: the answers of which nobody needed to know so far what they list."""
        self.own: set[str] = set()
        """The sources that may hold records of the operator."""
        self.told: set[int] = set()
        """The sources in which the task or a person speaks."""
        self._opaque: dict[str, set[int]] = {}
        """By provider: the sources that may list what is not found in them as it is."""
        self._things, self._waits = 0, 0
        """How many records the answers hold at most, and how many characters those have that wait."""
        self._said: set[tuple[int, ...]] = set()
        self.asked: dict[int, str] = {}
        """By file that was read: the arguments of these calls, each between borders and without what is not a word."""
        self.first = BORDER
        """The arguments of the calls that a model made before it was told anything that others wrote, as in `asked`."""
        self.others = False
        """Whether anything that others wrote was read."""

    def add_answer(self, code: str, payload: Any, echo: Echo | None = None, *, recalled: bool = False) -> None:
        """Add the answer of a tool, without what it only repeats of the arguments of its call.

        `recalled`: an earlier run made the call, and what it had read before is not known here.
        """
        said, things = _said_in(payload)
        text = BORDER.join(said)
        if self._whole and not recalled and echo is not None and not self.others and len(self.first) < MOST_ASKED:
            self.first += f"{echo.said}{BORDER}"
        # Text that others wrote is theirs wherever else it was.
        self.add(code, text, None if is_others(code) else echo)
        number = self._numbers[code]
        tool = self.speakers[number][1]
        if echo is not None and reads_files(tool, like=tool):
            self.asked[number] = f"{self.asked.get(number, BORDER)}{echo.said}{BORDER}"[-MOST_ASKED:]
            self.size += len(self.asked[number])
        if self._is_known(number, hash(text), len(said), things):
            return
        if len(text) > MOST_LISTED:
            self._contacts.skip(code)
            self._records.skip(code)
        elif is_others(code) or has_records(code):
            # Each value of such an answer is found in it by its words.
            clear = is_others(code) and text.count(BORDER) == len(said) - 1 and only_text(payload) is None
            self._things += things + text.count("{")
            self._hold(number, payload, clear=clear)
            self._waits += len(text)
        if self._waits > MOST_WAITING:
            _ = (self.contacts, self.records(), self.listed())
            self._waits = 0

    def _is_known(self, *said: int) -> bool:
        """Return whether a source said this before, and remember it: a long run may read the same thousands of times.

        `said` is the number of the source, the hash of the text, and for an answer what else tells its shape.
        """
        known = said in self._said
        self._said.add(said)
        return known

    def _hold(self, number: int, payload: Any, *, clear: bool) -> None:
        """Keep an answer until somebody needs to know what it holds."""
        code, provider = self.codes[number], self.speakers[number][1].partition(".")[0]
        readers: list[ListedIdentifiers | SourceRecords] = [self._records]
        if is_others(code):
            readers.append(self._listed)
        else:
            self.own.add(code)
            self._waiting.append((code, payload))
        if self._things >= MOST_RECORDS:
            # The first of these records are remembered, whatever is looked up first.
            self.records()
            self._records.add(number, code, payload)
            self._unread[readers.pop(0)].setdefault(provider, {})
        for reader in readers:
            held = self._unread[reader].setdefault(provider, {})
            held[number] = (*held.get(number, ()), payload)
        if not clear:
            self._opaque.setdefault(provider, set()).add(number)

    def may_list(self, tool: str) -> bool:
        """Return whether the provider of a tool gave an answer that may list something."""
        return bool(tool) and tool.partition(".")[0] in self._unread[self._records]

    def listed(self, tool: str = "", among: frozenset[int] | None = None) -> ListedIdentifiers:
        """Return what tools listed: in all answers, or those of the provider of a tool, or those of some sources."""
        self._read(self._listed, tool, among)
        return self._listed

    def records(self, tool: str = "", among: frozenset[int] | None = None) -> SourceRecords:
        """Return the records that answers hold, whoever writes these; of which answers, as for `listed`."""
        self._read(self._records, tool, among)
        return self._records

    @property
    def contacts(self) -> Contacts:
        """Return whom own records give which address."""
        waiting = self._waiting
        taken = tuple(waiting)
        for code, payload in taken:
            self._contacts.add(code, payload)
        if taken and self._waiting is waiting:
            self._waiting = waiting[len(taken) :]
        return self._contacts

    # Several threads may look values up at once. Each sees to it that all it needs is taken apart before it goes on,
    # and no harm comes of an answer that two of them took apart.

    def _read(self, reader: ListedIdentifiers | SourceRecords, tool: str, among: frozenset[int] | None) -> None:
        unread = self._unread[reader]
        for provider in (tool.partition(".")[0],) if tool else tuple(unread):
            if held := unread.get(provider):
                opaque = self._opaque.get(provider, NOBODY)
                numbers = tuple(held) if among is None else (held.keys() & among) | (held.keys() & opaque)
                self._read_of(held, numbers, reader)

    def _read_of(
        self, held: dict[int, tuple[Any, ...]], numbers: Iterable[int], reader: ListedIdentifiers | SourceRecords
    ) -> None:
        for number in numbers:
            answers = held.get(number, ())
            for payload in answers:
                reader.add(number, self.codes[number], payload)
            if answers and held.get(number) is answers:
                held.pop(number, None)

    def add(self, code: str, text: str, echo: Echo | None = None) -> None:
        """Add a string that was in a source; a source may be given several texts."""
        self.others = self.others or is_others(code)
        number = self._numbers.setdefault(code, len(self.codes))
        if number == len(self.codes):
            self.codes.append(code)
            source = source_of(code)
            self.speakers.append((source.kind, source.tool or "", source.content or ""))
            self.told.update((number,) if code in {"task", "person"} else ())
        if echo is None and self._is_known(number, hash(text)):
            return
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
        if len(found) > SMALL:
            self.size += 100 * len(found)
            self._by_text.append((number, found))
            return
        places, here = self._places, (number,)
        new = found.difference(places)
        self.size += 100 * len(new)
        # Most marks are new, or stand already in enough sources, so that one more is not remembered.
        for mark in (found - new) - self._frequent:
            before = places[mark]
            if number not in before:
                places[mark] = before + here
                if len(before) + 1 >= MOST_PLACES:
                    self._frequent.add(mark)
        places.update(dict.fromkeys(new, here))

    def _add_large(self, number: int, text: str, echo: Echo | None) -> None:
        hashes: list[int] = []
        for start in range(0, len(text), AT_ONCE):
            # A word that is cut in two at the border of a piece is found in the overlap.
            found = marks(text[max(start - _OVERLAP, 0) : start + AT_ONCE])
            if echo is not None:
                echo.strip(found)
            hashes += sorted(map(hash, found))
        # Sorting what is sorted in pieces only merges them.
        hashes.sort()
        begins = array("q", [bisect_left(hashes, least) for least in _LEASTS])
        self._large.append((number, array("q", hashes), begins))
        self.size += 8 * (len(hashes) + len(begins))

    def find(self, mark: str) -> frozenset[int]:
        """Return the numbers of the sources in which a mark stands."""
        found = self._places.get(mark, ())
        for number, text in self._by_text:
            if mark in text:
                found = (*found, number)
        if self._large:
            value = hash(mark)
            part = (value >> _PART_BITS) - _FIRST_PART
            for number, hashes, begins in self._large:
                end = begins[part + 1]
                at = bisect_left(hashes, value, begins[part], end)
                if at < end and hashes[at] == value:
                    found = (*found, number)
        return frozenset(found) if found else NOBODY

    def first_found(self, marks: list[str]) -> str | None:
        """Return the first of some marks that stands anywhere; of many marks, this is faster than to find each."""
        first = None
        for known in (self._places, *(text for _, text in self._by_text)):
            if (mark := next(filter(known.__contains__, marks), None)) is not None:
                first, marks = mark, marks[: marks.index(mark)]
        for mark in marks if self._large else ():
            value = hash(mark)
            part = (value >> _PART_BITS) - _FIRST_PART
            for _, hashes, begins in self._large:
                end = begins[part + 1]
                at = bisect_left(hashes, value, begins[part], end)
                if at < end and hashes[at] == value:
                    return mark
        return first

    def first_of(self, found: frozenset[int]) -> tuple[str, ...]:
        """Return the codes of the first of some sources, whoever vouches for what is there among them.

        Of a tool that has said it many times, the first answer is named: a long run must not need ever more for it.
        """
        if (named := self._first.get(found)) is not None:
            return named
        first: dict[tuple[str, str, str], str] = {}
        for number in sorted(found):
            first.setdefault(self.speakers[number], self.codes[number])
        own = [code for (_, _, content), code in first.items() if content != "others"][: MOST_CODES - 1]
        theirs = [code for (_, _, content), code in first.items() if content == "others"][: MOST_CODES - len(own)]
        if len(self._first) >= MOST_FIRST:
            self._first.clear()
        self._first[found] = named = (*own, *theirs)
        return named


def texts_in(value: Any) -> str:
    """Return every text and number of a JSON value and every name of its fields, with a border between them."""
    return BORDER.join(_said_in(value)[0])


def _said_in(value: Any) -> tuple[list[str], int]:
    """Return what a value says, and how many things with fields it holds."""
    found: list[str] = []
    names: dict[Any, Any] = {}
    waiting = [value]
    things = 0
    while waiting:
        item = waiting.pop()
        # By type and not by pattern: an answer may have hundreds of thousands of values.
        kind = type(item)
        if kind is str:
            found.append(item)
        elif kind is int or kind is float:
            found.append(repr(item))
        elif kind is dict:
            things += 1
            names.update(item)
            waiting.extend(item.values())
        elif kind is list or kind is tuple:
            waiting.extend(item)
            if len(item) > 2 and type(item[0]) is str and len(item[0]) <= SHORT_PIECE:
                # A value that was cut into pieces, as in ["DE", "89", "37"].
                found.append("".join(piece for piece in item if type(piece) is str))
    return [*map(str, names), *found], things
