"""Remember the identifiers that tools list, so that other tools of the same provider may take them.

An identifier is the whole value of a field such as `id`, `name`, `user` or `channel`, or an element of a list of these.
What stands elsewhere in the same answer as well, such as in a string, is none: text may tell a model which one to take.
The whole values of other fields are remembered with the words of their names: `stage` may take what a `stage` was.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.quiet import Numbers, is_short_number
from backstay.provenance.rows import Leaf, is_table, leaves_of_rows, lists_things, may_answer_a_table, only_text, parsed
from backstay.provenance.source import is_computed, source_of
from backstay.provenance.targets import address_in, holds_texts, is_domain, is_moment, words_of
from backstay.provenance.words import BORDER, differ_in_one, marks, name_words, run_of, squeezed, words

LONGEST = 64
MOST_WORDS = 4
MOST_OF_A_FIELD = 6
"""A field of more words is prose, in which anything may be told."""
MOST = 2000
"""At most this many identifiers of one answer are remembered, and as many other fields."""
_NAMES, _CONTAINERS, _USERS = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_DOTTED = re.compile(r"[a-z]\w*\.([a-z]\w+)", re.ASCII)
"""The name of a user such as `p.olm`. With the last label of a host, it could be that."""
_CODE = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{1,16}")
LEAST_CODES = 2
_FIELDS = frozenset({"field", "column", "attribute"})
_IDENTIFIER = re.compile(r"[#@]?\w[\w #+-]*(?:\.\d+)*|gid:/(?:/[\w-]+){2,3}|urn(?::[\w-]+){2,3}", re.ASCII)


def is_identifier(value: str) -> bool:
    """Return whether a value can be an identifier: short, and no address, host, URL or path."""
    fits = _IDENTIFIER.fullmatch(value) or _is_dotted(value) if len(value) <= LONGEST else False
    return bool(fits) and 0 < len(words(value)) <= MOST_WORDS


def _is_dotted(value: str) -> bool:
    found = _DOTTED.fullmatch(value)
    return found is not None and not is_domain(found[1])


class _FieldName(str):
    """Hold the name of a field, which is not a value of one."""

    __slots__ = ()


class ListedIdentifiers:
    """Hold which answers list which identifiers, and which other fields they have."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_value: dict[tuple[str, str], dict[int, str]] = {}
        self._fields: dict[tuple[str, str], dict[int, tuple[str, frozenset[str]]]] = {}
        """By provider and value: the answers that have it in a field, by which tool, and the words of its name."""
        self._addresses: dict[str, set[int]] = {}
        self._names: dict[tuple[str, str], set[int]] = {}
        """By provider and name of a field: the answers that have such a field, and tell its name in no text."""
        self._numbers: dict[int, tuple[Numbers, ...]] = {}
        """By source: the short numbers that are in its answers."""

    def add(self, number: int, code: str, payload: Any) -> None:
        """Add what an answer of one source lists."""
        tool = source_of(code).tool or ""
        if is_computed(code) or tool.startswith("engine."):
            return
        provider = tool.partition(".")[0]
        found = fields_in(_leaves_of(tool, payload))
        for key in found.identifiers:
            self._by_value.setdefault((provider, key), {})[number] = tool
        for key, named in found.others.items():
            self._fields.setdefault((provider, key), {})[number] = tool, named
        for key in found.names:
            self._names.setdefault((provider, key), set()).add(number)
        for key in found.addresses:
            self._addresses.setdefault(key, set()).add(number)
        self._numbers[number] = (*self._numbers.get(number, ()), found.numbers)

    def by(self, tool: str, value: str, named: frozenset[str]) -> frozenset[int]:
        """Return the sources in which other tools of the provider of a tool list a value; none when none does.

        They do as an identifier, or in a field that is called as the argument is; `named` are the words of its name.
        A field that only shares a word with it may be text about it.
        """
        key, wanted = (tool.partition(".")[0], _key(value)), _singular(named)
        fields = self._fields.get(key, {})
        alike = {number: other for number, (other, of_field) in fields.items() if _singular(of_field) == wanted}
        found = alike | self._by_value.get(key, {})
        return frozenset(found) if any(other != tool for other in found.values()) else frozenset()

    def in_fields(self, tool: str, value: str, named: frozenset[str]) -> frozenset[int]:
        """Return the sources of the provider of a tool that have a value as an identifier, or in a field of its name.

        `named` are the words of the argument's name. Of `field`, a value may also be the name of a field.
        """
        provider, key = tool.partition(".")[0], _key(value)
        fields = self._fields.get((provider, key), {})
        alike = [number for number, (_, of_field) in fields.items() if of_field & named]
        names = () if _FIELDS.isdisjoint(named) else self._names.get((provider, key), ())
        return frozenset((*self._by_value.get((provider, key), ()), *alike, *names))

    @staticmethod
    def may_have(in_order: list[str], named: frozenset[str]) -> bool:
        """Return whether this many words can be a value in a field, or of `field` the name of one."""
        return len(in_order) <= MOST_OF_A_FIELD or not _FIELDS.isdisjoint(named)

    def fields_with(self, tool: str, value: str) -> frozenset[int]:
        """Return the sources of the provider of a tool that have a value as a whole field and tell it in no text."""
        key = tool.partition(".")[0], _key(value)
        return frozenset((*self._by_value.get(key, ()), *self._fields.get(key, ())))

    def is_alike(self, tool: str, value: str, said: Callable[[str], bool]) -> bool:
        """Return whether a value only looks like another identifier of a tool's provider, which the task says."""
        provider, own = tool.partition(".")[0], run_of(value)
        if said(own):
            return False
        others = [squeezed(key.split()) for of, key in tuple(self._by_value) if of == provider and len(key) <= LONGEST]
        return any(differ_in_one(own, other) and said(other) for other in others)

    def quiet_about(self, value: str, among: Iterable[int]) -> frozenset[int]:
        """Return the sources among some that have a short number and tell it in no text; none for another value."""
        key = _key(value)
        if not is_short_number(key):
            return frozenset()
        held = ((number, self._numbers.get(number, ())) for number in among)
        return frozenset(number for number, found in held if found and all(key in numbers.quiet for numbers in found))

    def with_address(self, address: str) -> frozenset[int]:
        """Return the sources that have an address as a field and tell it in no text."""
        return frozenset(self._addresses.get(_key(address), ()))


class Fields(NamedTuple):
    """Hold the short values that an answer has as whole fields, as their words."""

    identifiers: list[str]
    others: dict[str, frozenset[str]]
    """By value: the words of the names of the fields that hold it."""
    addresses: list[str]
    """Those that no text of the answer tells, as their words."""
    names: list[str]
    """The names of its fields that it tells nowhere else, as their words."""
    numbers: Numbers


def fields_in(leaves: Iterable[Leaf]) -> Fields:
    """Return the values that stand nowhere else in an answer than in fields of their own."""
    listed, fields, rest, addresses, names, numbers = _sorted(leaves)
    if not listed and not fields and not addresses:
        return Fields([], {}, [], [], numbers)
    said = marks(BORDER.join(rest))
    told = {" ".join(row[at:end]) for row, _ in fields.values() if len(row) > 1 for at, end in _slices(len(row))}
    others = {
        key: named
        for key, (row, named) in islice(fields.items(), MOST)
        if key not in told and not said.issuperset(_row(row))
    }
    untold = [key for key, row in _keyed(addresses) if key not in told and not said.issuperset(_row(row))]
    free = [key for key in names if not {key} & (told | fields.keys() | listed.keys())]
    free = [key for key in free if not said.issuperset(_row(names[key]))][:MOST]
    # A thing may be named after another one, and so tell a model to take that.
    after = {" ".join(row[at:end]) for row in listed.values() for at, end in _slices(len(row))}
    told |= fields.keys() | {key for key in after if any(map(str.isdigit, key))}
    said |= marks(BORDER.join(addresses))
    rows = islice(listed.items(), MOST)
    identifiers = [key for key, row in rows if key not in told and not _is_said(_row(row), said, numbers)]
    return Fields(identifiers, others, untold[:MOST], free, numbers)


def _is_said(row: set[str], said: set[str], numbers: Numbers) -> bool:
    """Return whether texts say all of a row, and tell the numbers in it."""
    return said.issuperset(row) and not (any(map(is_short_number, row)) and numbers.quiet & row)


class _Leaves(NamedTuple):
    """Hold the leaves of an answer by what they are."""

    listed: dict[str, list[str]]
    fields: dict[str, tuple[list[str], frozenset[str]]]
    rest: list[str]
    addresses: list[str]
    names: dict[str, list[str]]
    numbers: Numbers


def _sorted(leaves: Iterable[Leaf]) -> _Leaves:
    listed, fields, rest, addresses, names, numbers = found = _Leaves({}, {}, [], [], {}, Numbers())
    for name, value in leaves:
        if isinstance(value, _FieldName):
            names[_key(value)] = words(value)
            continue
        if in_order := _identifier(name, value):
            listed[" ".join(in_order)] = in_order
            continue
        is_text = isinstance(value, str) and not is_moment(value)
        numbers.add(name, value, is_text=is_text)
        if not is_text:
            continue
        if address_in(value):
            # A person who is called Ana may have an address with that name in it.
            addresses.append(value)
        elif in_order := [] if holds_texts(name) else _short(value):
            key = " ".join(in_order)
            fields[key] = in_order, fields.get(key, ((), frozenset[str]()))[1] | words_of(name)
        else:
            rest.append(value)
    return found


def _keyed(values: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the key of each value, and its words."""
    for value in values:
        in_order = words(address_in(value))
        yield " ".join(in_order), in_order


@lru_cache(maxsize=16)
def _slices(length: int) -> tuple[tuple[int, int], ...]:
    """Return where the parts of a row of words begin and end, without the whole row."""
    ends = ((at, end) for at in range(length) for end in range(at + 1, length + 1))
    return tuple(pair for pair in ends if pair != (0, length))


def _leaves_of(tool: str, payload: Any) -> Iterator[Leaf]:
    """Return the fields of an answer, and those of the rows of one that is a listing in text."""
    text = only_text(payload) if (lists := lists_things(tool)) or may_answer_a_table(tool) else None
    if text is not None and not lists and not is_table(text):
        text = None
    if text is None:
        return _leaves(payload)
    if (read := parsed(text)) is not None:
        return _leaves(read)
    return leaves_of_rows(text)


def _identifier(name: str, value: Any) -> list[str]:
    """Return the words of an identifier; nothing where a leaf is none."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not _holds_identifiers(name):
        return []
    text = str(value)
    fits = _IDENTIFIER.fullmatch(text) or (name.lower() in _USERS and _is_dotted(text))
    in_order = words(text) if len(text) <= LONGEST and fits else []
    return in_order if len(in_order) <= MOST_WORDS else []


def _short(value: str) -> list[str]:
    """Return the words of a value that is no longer than what an argument takes by name; nothing of a string."""
    in_order = words(value) if len(value) <= LONGEST else []
    return in_order if len(in_order) <= MOST_OF_A_FIELD else []


@lru_cache(maxsize=1024)
def _holds_identifiers(name: str) -> bool:
    return not _NAMES.isdisjoint(name_words(name)[-1:])


def _leaves(payload: Any) -> Iterator[Leaf]:
    names: dict[Any, Any] = {}
    waiting: list[tuple[str, Any]] = [("items", payload)]
    while waiting:
        name, item = waiting.pop()
        match item:
            case dict():
                waiting += [(str(key), value) for key, value in item.items()]
                names.update(item)
                # Things by name: a field that names a thing in a list of things is its key here.
                waiting += [("id", str(key)) for key, value in item.items() if _names_a_thing(str(key), of=value)]
            case list() | tuple():
                within = name.lower() in _CONTAINERS or _are_codes(name, item)
                waiting += [("names" if within and isinstance(value, str | int) else name, value) for value in item]
            case _:
                yield name, item
    yield from (("", _FieldName(name)) for name in names if isinstance(name, str) and len(name) <= LONGEST)


def _are_codes(name: str, listed: Sequence[Any]) -> bool:
    """Return whether all of a list are short codes, such as the seats that are free."""
    if len(listed) < LEAST_CODES or holds_texts(name):
        return False
    return all(isinstance(value, str) and _CODE.fullmatch(value) for value in listed)


def _names_a_thing(key: str, *, of: Any) -> bool:
    """Return whether a key can be the name of a thing, and not that of a field; a value needs a key like a title."""
    if isinstance(of, dict):
        return key != key.lower() or any(map(str.isdigit, key))
    return " " in key and key[:1].isupper()


def _row(in_order: list[str]) -> set[str]:
    """Return the marks by which words would be found in a string."""
    return {first + second for first, second in pairwise(in_order)} or set(in_order)


def _singular(named: frozenset[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in named)


def _key(value: str) -> str:
    return " ".join(words(value))
