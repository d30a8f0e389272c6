"""Look the arguments of a call up in the index of its run."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, NamedTuple
from urllib.parse import unquote

from backstay.provenance.arguments import bounded, collapsed, looked_at, name_at, shape_at
from backstay.provenance.index import MOST_CODES, MOST_PLACES, NOBODY, Index
from backstay.provenance.installs import installed_by, reads_files
from backstay.provenance.listed import is_identifier
from backstay.provenance.part import (
    LEAST_PHRASE,
    LEAST_PIECE,
    Part,
    comes_from_others,
    is_dictated,
    reaches,
    stood_whole,
    told_partly,
)
from backstay.provenance.records import answers, names_a_message
from backstay.provenance.source import (
    BY_MODEL,
    MODEL,
    MOST_LEAVES,
    Parts,
    Sources,
    is_others,
    source_of,
    vouched,
)
from backstay.provenance.targets import (
    MOST_WITHIN,
    Shape,
    addresses_in,
    file_named_in,
    hosts_in,
    is_address,
    is_address_of_a_page,
    is_identifier_name,
    is_number_of_a_parcel,
    is_of_a_person,
    is_of_ones_own_list,
    is_removed,
    links_in,
    shape_of,
    split_path,
    takes_fields,
    takes_identifiers,
    words_of,
)
from backstay.provenance.words import BORDER, coded_in, numbers, spellings, squeezed, words

MOST_WORDS = 20_000
"""Of a longer text the rest is not looked up, and counts as the model's."""
SHORT = 40
"""Targets of so many words are also looked up with their words joined, cut apart and spelled in other ways."""
MOST_TARGETS = 100
"""So many targets of a call are looked at closely, and of further ones somebody must vouch for every part."""
LONGEST_PAGE = 2000
_REFERENCE = re.compile(r"\$\{(?:steps|input)\.[^{}]{1,200}\}")
"""A reference of a plan says nothing itself; what it brings is looked at once it is known."""


class _Doubt(NamedTuple):
    """Hold why nobody vouches for a value that others need not have written as a whole."""

    why: str
    codes: tuple[str, ...] = ()
    """The places where others wrote what it is about."""


@dataclass
class Lookup:
    """Look values up in one index."""

    index: Index
    computed: tuple[str, ...] = ()
    """What a value counts as that stands nowhere: the model's own words, unless a program computed it."""
    _found: dict[str, frozenset[int]] = field(default_factory=dict)
    _names: dict[frozenset[int], tuple[str, ...]] = field(default_factory=dict)

    def sources_of(self, arguments: dict[str, Any], *, tool: str = "", egress: bool = False) -> Sources:
        """Return where each argument of a call of a tool came from; with `egress`, what leaves unsent as well."""
        by: dict[str, Parts] = {}
        foreign, reaching, whole = dict[str, None](), dict[str, None](), dict[str, None]()
        partly: dict[str, tuple[str, ...]] = {}
        doubts: dict[str, str] = {}
        targets = names = 0
        for pointer, value, key in looked_at(arguments):
            name = "" if key else name_at(pointer)
            shape = self._shape_of(pointer, name, value, tool=tool, arguments=arguments)
            targets += shape in {"atom", "place"}
            hurried = targets > MOST_TARGETS
            parts = self.parts_of(value, "other" if hurried or shape == "name" else shape)
            if shape == "name":
                names += 1
                parts, shape = self._dictated(value, parts, tool=tool, name=name, closely=names <= MOST_TARGETS)
            by[pointer] = tuple(dict.fromkeys((*by.get(pointer, ()), *self._codes(parts))))
            doubt = None
            if shape != "other" and self._is_foreign(value, parts, shape, tool=tool, name=name, hurried=hurried):
                if targets + names > MOST_TARGETS or not self._belongs(value, tool, name, arguments):
                    foreign[pointer] = None
            elif doubt := self._doubt(value, parts, shape, tool=tool, arguments=arguments):
                foreign[pointer], doubts[pointer] = None, doubt.why
            if stood_whole(parts, value, shape):
                whole[pointer] = None
            elif told := (doubt and doubt.codes) or told_partly(parts, shape, foreign=pointer in foreign):
                partly[pointer] = told[:MOST_CODES]
            if egress and reaches(parts, page=is_address_of_a_page(name, str(value)[:LONGEST_PAGE])):
                reaching[pointer] = None
        shown, more = bounded(collapsed(arguments, by), {*foreign, *reaching})
        return Sources(
            by=shown,
            foreign=tuple(foreign)[:MOST_LEAVES],
            reaching=tuple(reaching)[:4],
            more=more,
            whole=tuple(sorted(whole, key=lambda at: at not in foreign)[:MOST_LEAVES]),
            doubts=dict(islice(doubts.items(), MOST_LEAVES)),
            partly=dict(sorted(partly.items(), key=lambda item: item[0] not in foreign)[:MOST_LEAVES]),
        )

    def _shape_of(self, pointer: str, name: str, value: Any, *, tool: str, arguments: dict[str, Any]) -> Shape:
        """Return the shape of a leaf; what says where nothing goes in this very call is `other`."""
        shape = shape_at(pointer, name, value, arguments)
        if shape == "other" or not isinstance(value, str):
            return shape
        if shape == "name" and is_of_ones_own_list(tool, name):
            return "other"
        if is_number_of_a_parcel(name, value) and self._is_said("tracking"):
            return "other"
        return "other" if is_removed(name) and self._stood_in_file(value, tool, file_named_in(arguments)) else shape

    def _stood_in_file(self, value: str, tool: str, path: str) -> bool:
        """Return whether a text stands as a whole in a file that was read by its path, and others told it nowhere."""
        in_order = words(value)
        end, found = self._longest(in_order, 0) if in_order and path else (0, NOBODY)
        if not found or end < len(in_order) or len(found) >= MOST_PLACES:
            return False
        asked, read = self.index.asked, squeezed(words(path))
        held = (number for number in found if f"{BORDER}{read}{BORDER}" in asked.get(number, ""))
        of_file = frozenset(
            number for number in held if reads_files(source_of(self.index.codes[number]).tool or "", like=tool)
        )
        return bool(of_file) and not self._told_elsewhere(value, in_order, found, of_file)

    def _is_foreign(self, value: Any, parts: list[Part], shape: Shape, *, tool: str, name: str, hurried: bool) -> bool:
        """Return whether what others wrote says where a call goes; after very many targets, whether nobody vouches."""
        if shape == "name":
            return True
        if hurried:
            return not all(part.trusted for part in parts)
        if self._is_listed(value, tool, name):
            return False
        if comes_from_others(parts, shape) and not self._joined_by_trusted(parts, shape):
            return shape != "place" or not self._is_titled_after(value)
        exact = is_identifier_name(name) or (isinstance(value, str) and is_address(value.strip()))
        if self.index.others and exact and not all(part.trusted for part in parts):
            # Which thing is meant must stand somewhere as a whole.
            return True
        if not parts and self.index.others and (short := words(_REFERENCE.sub(" ", str(value)))):
            # Words too short to be looked up: nobody knows who said them.
            return not self._stands_nowhere(short)
        if not isinstance(value, str):
            return False
        # An address within a list is one thing, and so is the host of a URL.
        within = [*hosts_in(value), *(addresses_in(value) if shape == "atom" else ())]
        if len(within) >= MOST_WITHIN and not all(part.trusted for part in parts):
            return True
        return any(self._is_foreign_within(address) for address in dict.fromkeys(within) if address != value)

    def _stands_nowhere(self, in_order: list[str]) -> bool:
        """Return whether one short word of letters, such as the code of an airport, stands nowhere in any spelling."""
        word = squeezed(in_order)
        if len(in_order) != 1 or len(word) != LEAST_PIECE - 1 or not word.isalpha():
            return False
        cuts = ([*word], [word[:1], word[1:]], [word[:2], word[2:]])
        return not any(map(self._phrase, ([word], *spellings(word), *cuts)))

    def _is_titled_after(self, value: Any) -> bool:
        """Return whether a file is only named after what others wrote, in less than half of its own name."""
        if self.computed or not isinstance(value, str) or (path := split_path(value)) is None:
            return False
        folder, name = path
        above, own = self.parts_of(folder, "place"), self.parts_of(name, "place")
        if any(part.others and not part.trusted for part in above):
            return False
        theirs = [part for part in own if part.others and not part.trusted]
        if not theirs or any(part.digits for part in theirs):
            return False
        return 2 * sum(part.letters for part in theirs) < sum(map(len, words(name)))

    def _doubt(
        self, value: Any, parts: list[Part], shape: Shape, *, tool: str, arguments: dict[str, Any]
    ) -> _Doubt | None:
        """Return why nobody vouches for an address of a value, or for what a text leads to or gets installed."""
        if shape == "atom":
            why = self._doubt_of_records(value, parts)
            return _Doubt(why) if why else None
        if shape in {"place", "name"} or not isinstance(value, str) or not self.index.others:
            return None
        links = links_in(value)
        for link in links:
            # A host that stands nowhere is the model's own, as in a program that it writes.
            if codes := self._theirs(link, "place"):
                return _Doubt(f"it leads to {link}, for which nobody vouches", codes)
        names = installed_by(value, arguments.values())
        theirs = {name: codes for name in names if (codes := self._theirs(name, "atom"))}
        before = self._earlier_versions(value, tool) if theirs else NOBODY
        for name, codes in theirs.items():
            if not self._stood_in(before, name):
                return _Doubt(f"it installs {name}, for which nobody vouches", codes)
        if max(len(links), len(names)) >= MOST_WITHIN and not all(part.trusted for part in parts):
            return _Doubt(f"it leads to {MOST_WITHIN} places or more")
        return None

    def _theirs(self, name: str, shape: Shape) -> tuple[str, ...]:
        """Return where others wrote a name that a text has, and for which nobody vouches."""
        parts = self.parts_of(name, "atom")
        if not comes_from_others(parts, shape) or self._joined_by_trusted(parts, "atom"):
            return ()
        return tuple(dict.fromkeys(code for part in parts if part.others for code in part.codes))

    def _earlier_versions(self, text: str, tool: str) -> frozenset[int]:
        """Return the sources in which a file stood that a text changes.

        These are answers of the same provider that hold at least half of the text, and were read as a file.
        """
        pairs = [before + after for before, after in pairwise(words(text)[:MOST_WORDS])]
        held = Counter(number for pair in pairs for number in self._find(pair))
        half = (number for number, count in held.items() if 2 * count >= len(pairs))
        return frozenset(
            number for number in half if reads_files(source_of(self.index.codes[number]).tool or "", like=tool)
        )

    def _stood_in(self, before: frozenset[int], name: str) -> bool:
        """Return whether what others wrote has a name as a whole in some sources, and in no other."""
        in_order = words(name)
        end, found = self._longest(in_order, 0) if before else (0, NOBODY)
        return bool(found) and end == len(in_order) and len(found) < MOST_PLACES and self._others(found) <= before

    def _doubt_of_records(self, value: Any, parts: list[Part]) -> str:
        """Return why own records do not vouch for an address of a value."""
        if not (contacts := self.index.contacts).codes or isinstance(value, bool):
            return ""
        text = str(value)
        for address in addresses_in(text) or [text]:
            found = parts if address == value else self.parts_of(address, "atom")
            vouching = {code for part in found for code in part.codes if vouched((code,))}
            # Where the task or a person says it, too, no record is needed.
            if not vouching or not vouching <= contacts.codes or not is_address(address):
                continue
            if why := contacts.doubt(address, self._is_said):
                return why
        return ""

    def _is_said(self, word: str) -> bool:
        return any(self.index.codes[number] in {"task", "person"} for number in self._find(word))

    def _is_foreign_within(self, address: str) -> bool:
        parts = self.parts_of(address, "atom")
        if comes_from_others(parts, "atom"):
            return not self._joined_by_trusted(parts, "atom")
        # What stands nowhere may have been hidden in what others wrote.
        return self.index.others and not (parts and all(part.trusted for part in parts))

    def _is_listed(self, value: Any, tool: str, name: str) -> bool:
        """Return whether another tool of the provider listed a value as an identifier, and nobody else told it."""
        text = str(value)
        if not tool or not takes_identifiers(name, text) or not is_identifier(text):
            return False
        listed = self.index.listed.by(tool, text, words_of(name) if takes_fields(name) else frozenset())
        # Somebody else may be called so, or almost.
        others = (self.index.listed.is_alike, self.index.records.is_one_of_several)
        if listed and is_of_a_person(name) and any(check(tool, text, self._is_said) for check in others):
            return False
        in_order = words(text)
        found = self._longest(in_order, 0)[1] if listed else NOBODY
        if not listed or not found or len(found) >= MOST_PLACES:
            return False
        return not self._told_elsewhere(text, in_order, found, listed, tool)

    def _belongs(self, value: Any, tool: str, name: str, arguments: dict[str, Any]) -> bool:
        """Return whether a value is the model's own word, or that of a record that the task or the call names."""
        text, records = str(value), self.index.records
        in_order = words(text)
        if in_order and f"{BORDER}{squeezed(in_order)}{BORDER}" in self.index.first:
            return True
        if not tool or not name:
            return False
        if takes_identifiers(name, text) and is_identifier(text):
            return records.is_named(tool, name, text, self._is_said)
        if "@" not in text or not is_address(text):
            return False
        if not answers(tool) or not self._is_answered(text, tool, arguments):
            return False
        found, fields = self._longest(in_order, 0)[1], self.index.listed.with_address(text)
        # Dictated, as in "bo at home dot example", its words do not follow each other.
        dictated = frozenset[int].intersection(*map(self._find, in_order))
        if not found or len(dictated) >= MOST_PLACES or self._others(dictated) - fields:
            return False
        return not self._told_elsewhere(text, in_order, found, fields)

    def _is_answered(self, address: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Return whether an address wrote the message that a call answers, and the call may name that message."""
        for name, value in arguments.items():
            if not names_a_message(name) or not isinstance(value, str | int):
                continue
            if self.index.records.wrote(tool, address, str(value)):
                shape = shape_of(name, str(value))
                parts = self.parts_of(value, shape)
                return not self._is_foreign(value, parts, shape, tool=tool, name=name, hurried=False)
        return False

    def _dictated(
        self, value: str, parts: list[Part], *, tool: str, name: str, closely: bool
    ) -> tuple[list[Part], Shape]:
        """Return the parts of what a call acts on, and whether others wrote it in a text: then its shape is `name`.

        What stands nowhere as it is, is looked at closely. A field of the provider may say it.
        """
        trusted = sum(part.letters for part in parts if part.trusted)
        if not self.index.others or 3 * trusted > sum(map(len, words(value))):
            return parts, "other"
        looked = self.parts_of(value, "name") if closely and not is_dictated(parts, value) else parts
        if not is_dictated(looked, value):
            return parts, "other"
        listed = self.index.listed.in_fields(tool, value, words_of(name)) if tool else NOBODY
        in_order = words(value)
        found = self._longest(in_order, 0)[1] if listed else NOBODY
        if not found or len(found) >= MOST_PLACES:
            return looked, "name"
        in_field = not self._told_elsewhere(value, in_order, found, listed, tool)
        return (parts, "other") if in_field else (looked, "name")

    def _told_elsewhere(
        self, text: str, in_order: list[str], found: frozenset[int], listed: frozenset[int], tool: str = ""
    ) -> bool:
        """Return whether what others wrote names an identifier elsewhere: as it is, spelled otherwise or in two.

        As it is, it may also stand in other fields of the provider of a tool.
        """
        run = squeezed(in_order)
        fields = self.index.listed.fields_with(tool, text)
        quiet = self.index.listed.quiet_about(text)
        if any(self._others(way) - listed - fields - quiet for way in (found, self._find(run))):
            return True
        # Nobody lists what he has spelled otherwise, but a short word turned round may be another one.
        is_short = len(run) < LEAST_PIECE
        for way in spellings(text):
            if way != in_order and self._phrase(way):
                may = listed | self.index.listed.fields_with(tool, " ".join(way)) if is_short else NOBODY
                if self._others(self._longest(way, 0)[1]) - may:
                    return True
        least = LEAST_PIECE - 1
        cuts = ((self._find(run[:at]), self._find(run[at:])) for at in range(least, len(run) - least + 1))
        return any(self._others(first) - listed and self._others(second) - listed for first, second in cuts)

    def _others(self, found: frozenset[int]) -> frozenset[int]:
        return frozenset(number for number in found if is_others(self.index.codes[number]))

    def _joined_by_trusted(self, parts: list[Part], shape: Shape) -> bool:
        """Return whether trusted places hold all parts of an address, and each border between two of them."""
        if shape != "atom" or len(parts) < 2 or not all(part.trusted and part.letters >= LEAST_PIECE for part in parts):
            return False
        borders = (self._find(before.words[-1] + after.words[0]) for before, after in pairwise(parts))
        return all(found - self._others(found) for found in borders)

    def parts_of(self, value: Any, shape: Shape) -> list[Part]:
        """Return what a value was put together from, in order; what says nothing is left out."""
        if value is None or isinstance(value, bool):
            return []
        for written in numbers(value):
            if (codes := self._phrase(written)) is not None:
                return [Part(tuple(written), codes)]
        text = _REFERENCE.sub(" ", value) if isinstance(value, str) else repr(value)
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
        if (codes := self._spelling(text, in_order)) is not None:
            return [Part(tuple(in_order), codes)]
        # Of a command, one word may be spelled otherwise and the rest not.
        several = text.split()
        for token in several if len(several) > 1 else ():
            own = words(token)
            if sum(map(len, own)) >= LEAST_PHRASE and self._phrase(own) is None:
                codes = self._spelling(token, own)
                parts = parts if codes is None else [*parts, Part(tuple(own), codes)]
        return parts

    def _spelling(self, text: str, in_order: list[str]) -> tuple[str, ...] | None:
        """Return where a value stands in another spelling, or None."""
        for spelling in ([squeezed(in_order)], *spellings(text)):
            if (codes := self._phrase(spelling)) is not None:
                return codes
        found = self.index.initials.find(squeezed(in_order)) if self.index.others else NOBODY
        return self._named(found) if found else None

    def _parts(self, in_order: list[str], *, closely: bool) -> Iterator[Part]:
        at = 0
        while at < len(in_order):
            end, found = self._longest(in_order, at)
            if closely and end < len(in_order) and (end - at < 2 or not found):
                # Written in one in its source, as account numbers are.
                end, found = self._joined(in_order, at, end, found)
            if found and (end - at > 1 or len(in_order[at]) >= LEAST_PIECE or len(in_order) == 1):
                yield Part(tuple(in_order[at:end]), self._named(found))
            elif found and closely and not vouched(self._named(found)):
                # A short word that nobody vouches for belongs to those who wrote it.
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
            least = max(min(LEAST_PIECE, len(word) - at), 2)
            for end in range(min(len(word), at + 64), at + least - 1, -1):
                if found := self._find(word[at:end]):
                    same = found & pieces[-1][2] if pieces and pieces[-1][1] == at else NOBODY
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
        if (named := self._names.get(found)) is None:
            self._names[found] = named = self.index.first_of(found)
        return named

    def _codes(self, parts: list[Part]) -> Parts:
        codes = dict.fromkeys(part.codes or (MODEL,) for part in parts)
        return tuple(codes) or BY_MODEL
