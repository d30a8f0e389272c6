"""Look the arguments of a call up in the index of its run."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, NamedTuple

from backstay.provenance.arguments import bounded, collapsed, looked_at, name_at, shape_at
from backstay.provenance.composition import MOST_WORDS, Composition, without_references
from backstay.provenance.index import MOST_CODES, MOST_PLACES, NOBODY
from backstay.provenance.installs import installed_by, reads_files
from backstay.provenance.listed import LONGEST, ListedIdentifiers, is_identifier
from backstay.provenance.part import (
    LEAST_PIECE,
    ValuePart,
    comes_from_others,
    is_dictated,
    reaches,
    stood_whole,
    told_partly,
)
from backstay.provenance.quiet import is_short_number
from backstay.provenance.records import answers, names_a_message
from backstay.provenance.source import (
    BY_MODEL,
    MODEL,
    MOST_LEAVES,
    ArgumentSources,
    Parts,
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
from backstay.provenance.words import BORDER, run_of, spellings, squeezed, words

MOST_TARGETS = 100
"""At most this many targets of a call are looked at closely, and of further ones somebody must vouch for every part."""
LONGEST_PAGE = 2000


class _Doubt(NamedTuple):
    """Hold why nobody vouches for a value that others need not have written as a whole."""

    why: str
    codes: tuple[str, ...] = ()
    """The places where others wrote what it is about."""


@dataclass
class Lookup(Composition):
    """Look the arguments of calls up in one index."""

    only: Collection[str] = ("",)
    """Pointers: of what is at and below them it is looked up where it came from."""

    def sources_of(self, arguments: dict[str, Any], *, tool: str = "", egress: bool = False) -> ArgumentSources:
        """Return where each argument of a call of a tool came from; with `egress`, what leaves unsent as well."""
        by: dict[str, Parts] = {}
        foreign, reaching, whole = dict[str, None](), dict[str, None](), dict[str, None]()
        partly: dict[str, tuple[str, ...]] = {}
        doubts: dict[str, str] = {}
        targets = names = 0
        for pointer, value, key in looked_at(arguments, self.only):
            name = "" if key else name_at(pointer)
            shape = self._shape_of(pointer, name, value, tool=tool, arguments=arguments)
            targets += shape in {"atom", "place"}
            hurried = targets > MOST_TARGETS
            parts = self.parts_of(value, "other" if hurried or shape == "name" else shape)
            if shape == "name":
                names += 1
                parts, shape = self._dictated(value, parts, tool=tool, name=name, closely=names <= MOST_TARGETS)
            codes = self._codes(parts)
            by[pointer] = tuple(dict.fromkeys((*by[pointer], *codes))) if pointer in by else codes
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
        return ArgumentSources(
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
        """Return whether a string stands as a whole in a file that was read by its path, and others told it nowhere."""
        in_order = words(value)
        end, found = self._longest(in_order, 0) if in_order and path else (0, NOBODY)
        if not found or end < len(in_order) or len(found) >= MOST_PLACES:
            return False
        asked, read = self.index.asked, run_of(path)
        held = (number for number in found if f"{BORDER}{read}{BORDER}" in asked.get(number, ""))
        of_file = frozenset(
            number for number in held if reads_files(source_of(self.index.codes[number]).tool or "", like=tool)
        )
        return bool(of_file) and not self._told_elsewhere(value, in_order, found, of_file)

    def _is_foreign(
        self, value: Any, parts: list[ValuePart], shape: Shape, *, tool: str, name: str, hurried: bool
    ) -> bool:
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
        if not parts and self.index.others and (short := words(without_references(str(value)))):
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
        return not any(map(self._phrase, ([word], *spellings(word, self._found), *cuts)))

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
        return 2 * sum(part.letters for part in theirs) < len(run_of(name))

    def _doubt(
        self, value: Any, parts: list[ValuePart], shape: Shape, *, tool: str, arguments: dict[str, Any]
    ) -> _Doubt | None:
        """Return why nobody vouches for an address of a value, or for what a string leads to or gets installed."""
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
        """Return where others wrote a name that a string has, and for which nobody vouches."""
        parts = self.parts_of(name, "atom")
        if not comes_from_others(parts, shape) or self._joined_by_trusted(parts, "atom"):
            return ()
        return tuple(dict.fromkeys(code for part in parts if part.others for code in part.codes))

    def _earlier_versions(self, text: str, tool: str) -> frozenset[int]:
        """Return the sources in which a file stood that a string changes.

        These are answers of the same provider that hold at least half of the text, and were read as a file.
        """
        pairs = [before + after for before, after in pairwise(words(text)[:MOST_WORDS])]
        held = Counter(number for pair in pairs for number in self._found[pair])
        half = (number for number, count in held.items() if 2 * count >= len(pairs))
        return frozenset(
            number for number in half if reads_files(source_of(self.index.codes[number]).tool or "", like=tool)
        )

    def _stood_in(self, before: frozenset[int], name: str) -> bool:
        """Return whether what others wrote has a name as a whole in some sources, and in no other."""
        in_order = words(name)
        end, found = self._longest(in_order, 0) if before else (0, NOBODY)
        return bool(found) and end == len(in_order) and len(found) < MOST_PLACES and self._others(found) <= before

    def _doubt_of_records(self, value: Any, parts: list[ValuePart]) -> str:
        """Return why own records do not vouch for an address of a value."""
        own = self.index.own
        if not own or isinstance(value, bool):
            return ""
        text = str(value)
        for address in addresses_in(text) or [text]:
            found = parts if address == value else self.parts_of(address, "atom")
            vouching = {code for part in found for code in part.codes if vouched((code,))}
            # Where the task or a person says it, too, no record is needed.
            if not vouching or not vouching <= own or not is_address(address):
                continue
            contacts = self.index.contacts
            if vouching <= contacts.codes and (why := contacts.doubt(address, self._is_said)):
                return why
        return ""

    def _is_said(self, word: str) -> bool:
        return not self.index.told.isdisjoint(self._found[word])

    def _is_foreign_within(self, address: str) -> bool:
        parts = self.parts_of(address, "atom")
        if comes_from_others(parts, "atom"):
            return not self._joined_by_trusted(parts, "atom")
        # A value that is found nowhere may have been hidden in what others wrote.
        return self.index.others and not (parts and all(part.trusted for part in parts))

    def _is_listed(self, value: Any, tool: str, name: str) -> bool:
        """Return whether another tool of the provider listed a value as an identifier, and nobody else told it."""
        text = str(value)
        in_order = words(text) if len(text) <= LONGEST and self.index.may_list(tool) else []
        found = self._longest(in_order, 0)[1] if in_order else NOBODY
        if not found or len(found) >= MOST_PLACES or not (takes_identifiers(name, text) and is_identifier(text)):
            return False
        listing = self.index.listed(tool, self._holding(in_order))
        listed = listing.by(tool, text, words_of(name) if takes_fields(name) else frozenset())
        if listed and is_of_a_person(name) and self._is_mistakable(tool, text):
            return False
        return bool(listed) and not self._told_elsewhere(text, in_order, found, listed, tool)

    def _is_mistakable(self, tool: str, name: str) -> bool:
        """Return whether somebody else is called so, or almost."""
        if self.index.listed(tool).is_alike(tool, name, self._is_said):
            return True
        return self.index.records(tool).is_one_of_several(tool, name, self._is_said)

    def _belongs(self, value: Any, tool: str, name: str, arguments: dict[str, Any]) -> bool:
        """Return whether a value is the model's own word, or that of a record that the task or the call names."""
        text = str(value)
        in_order = words(text)
        if in_order and f"{BORDER}{run_of(text)}{BORDER}" in self.index.first:
            return True
        if not name or not self.index.may_list(tool):
            return False
        if takes_identifiers(name, text) and is_identifier(text):
            held = self.index.records(tool, self._holding(in_order))
            # Only of one that the task names it matters whether it names others as well.
            may_be = held.may_be_named(tool, name, text, self._is_said)
            return may_be and self.index.records(tool).is_named(tool, name, text, self._is_said)
        if "@" not in text or not is_address(text):
            return False
        if not answers(tool) or not self._is_answered(text, tool, arguments):
            return False
        found, fields = self._longest(in_order, 0)[1], self.index.listed("", self._holding(in_order)).with_address(text)
        # Dictated, as in "bo at home dot example", its words do not follow each other.
        dictated = frozenset[int].intersection(*map(self._found.__getitem__, in_order))
        if not found or len(dictated) >= MOST_PLACES or self._others(dictated) - fields:
            return False
        return not self._told_elsewhere(text, in_order, found, fields)

    def _is_answered(self, address: str, tool: str, arguments: dict[str, Any]) -> bool:
        """Return whether an address wrote the message that a call answers, and the call may name that message."""
        for name, value in arguments.items():
            if not names_a_message(name) or not isinstance(value, str | int):
                continue
            if self.index.records(tool).wrote(tool, address, str(value)):
                shape = shape_of(name, str(value))
                parts = self.parts_of(value, shape)
                return not self._is_foreign(value, parts, shape, tool=tool, name=name, hurried=False)
        return False

    def _dictated(
        self, value: str, parts: list[ValuePart], *, tool: str, name: str, closely: bool
    ) -> tuple[list[ValuePart], Shape]:
        """Return the parts of what a call acts on, and whether others wrote it in text: then its shape is `name`.

        A value that is found nowhere as it is, is looked at closely. A field of the provider may say it.
        """
        trusted = sum(part.letters for part in parts if part.trusted)
        if not self.index.others or 3 * trusted > len(run_of(value)):
            return parts, "other"
        looked = self.parts_of(value, "name") if closely and not is_dictated(parts, value) else parts
        if not is_dictated(looked, value):
            return parts, "other"
        in_order = words(value)
        if not self.index.may_list(tool) or not ListedIdentifiers.may_have(in_order, words_of(name)):
            return looked, "name"
        found = self._longest(in_order, 0)[1]
        if not found or len(found) >= MOST_PLACES:
            return looked, "name"
        listed = self.index.listed(tool, self._holding(in_order)).in_fields(tool, value, words_of(name))
        in_field = listed and not self._told_elsewhere(value, in_order, found, listed, tool)
        return (parts, "other") if in_field else (looked, "name")

    def _told_elsewhere(
        self, text: str, in_order: list[str], found: frozenset[int], listed: frozenset[int], tool: str = ""
    ) -> bool:
        """Return whether what others wrote names an identifier elsewhere: as it is, spelled otherwise or in two.

        As it is, it may also be in other fields of the provider of a tool.
        """
        run = squeezed(in_order)
        listing = self.index.listed("" if is_short_number(" ".join(in_order)) else tool, self._holding(in_order))
        theirs = self._others(found | self._found[run]) - listed - listing.fields_with(tool, text)
        if theirs - listing.quiet_about(text, theirs):
            return True
        # Nobody lists what he has spelled otherwise, but a short word turned round may be another one.
        is_short = len(run) < LEAST_PIECE
        for way in spellings(text, self._found):
            if way != in_order and self._phrase(way):
                other = " ".join(way)
                may = (
                    listed | self.index.listed(tool, self._holding(way)).fields_with(tool, other)
                    if is_short
                    else NOBODY
                )
                if self._others(self._longest(way, 0)[1]) - may:
                    return True
        least = LEAST_PIECE - 1
        cuts = ((self._found[run[:at]], self._found[run[at:]]) for at in range(least, len(run) - least + 1))
        return any(self._others(first) - listed and self._others(second) - listed for first, second in cuts)

    def _others(self, found: frozenset[int]) -> frozenset[int]:
        return frozenset(number for number in found if is_others(self.index.codes[number]))

    def _joined_by_trusted(self, parts: list[ValuePart], shape: Shape) -> bool:
        """Return whether trusted places hold all parts of an address, and each border between two of them."""
        if shape != "atom" or len(parts) < 2 or not all(part.trusted and part.letters >= LEAST_PIECE for part in parts):
            return False
        borders = (self._found[before.words[-1] + after.words[0]] for before, after in pairwise(parts))
        return all(found - self._others(found) for found in borders)

    def _codes(self, parts: list[ValuePart]) -> Parts:
        codes = dict.fromkeys(part.codes or (MODEL,) for part in parts)
        return tuple(codes) or BY_MODEL
