"""Remember the records in answers, to know which one a task or a call names.

A task that says "the design review" means the one record that is called so, and the identifier of that goes where the
task says. What else a record holds, others may have written: of the message that a call answers, who wrote it counts,
for an answer by the identifier alone goes there, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.contacts import NAMES
from backstay.provenance.rows import lists_things, only_text, parsed
from backstay.provenance.source import is_computed, source_of
from backstay.provenance.targets import address_in, words_of
from backstay.provenance.words import differ_in_one, name_words, remembered_of_names, run_of, words

MOST = 5000
"""At most this many records are remembered; in a run that has read more, none counts as named."""
MOST_WORDS = 16
"""A longer title is prose."""
LEAST_SAID = 2
"""A task names a record by this many words of its title in a row, which are at least half of them."""
LEAST_LETTERS = 6
LONGEST_TITLE = 200
"""Of a longer title only the first words are kept."""
MOST_CALLED = 20
"""A record with more names than these is not known by any."""
LEAST_QUOTED = 3
"""A title of this many words that is in the task as a whole is quoted: others that share words are not meant."""
_TITLES, _OWN, _MESSAGES, _SENDERS, _ANSWERED, _ANSWERING, _GENERIC = (
    frozenset[str](names.split()) for names in data_beside(__file__).values()
)


class _Field(NamedTuple):
    """Hold what a field may be by its name."""

    own: frozenset[str] | None
    """Of what it is the identifier, as words; None where it is none."""
    names_message: bool
    is_title: bool
    is_sender: bool
    is_name: bool


class Record(NamedTuple):
    """Hold one record: what it is called, its identifiers, and who wrote it if it is a message."""

    tool: str
    called: tuple[str, ...]
    own: Mapping[str, frozenset[str]]
    """By identifier: what it is the identifier of, as the words of the field's name."""
    messages: frozenset[str]
    """Its identifiers if it is a message."""
    senders: frozenset[str]

    @property
    def titles(self) -> list[list[str]]:
        """Return what it is called, as words."""
        return [words(title)[: MOST_WORDS + 1] for title in self.called]

    def is_kind(self, kind: frozenset[str]) -> bool:
        """Return whether its tool, or a field with its identifier, is named for a kind of things."""
        return not kind.isdisjoint(_kinds(self.tool)) or any(of & kind for of in self.own.values())

    def is_(self, key: str, kind: frozenset[str]) -> bool:
        """Return whether something is its identifier as a thing of a kind."""
        of = self.own.get(key)
        return of is not None and (not of or bool(of & kind))


class _Entity:
    """Hold somebody or something by its name, with its identifiers by the names of their fields."""

    def __init__(self, name: frozenset[str], item: dict[Any, Any]) -> None:
        """Keep the fields of a record that may be identifiers; they are taken apart once somebody asks for one."""
        self.name = name
        self._item = {str(field): value for field, value in item.items() if isinstance(value, str | int)}

    @cached_property
    def fields(self) -> dict[str, str]:
        """Return the values of its fields, as they are compared."""
        return {field: _key(str(value)) for field, value in self._item.items()}

    def is_rival(self, other: "_Entity", key: str) -> bool:
        """Return whether it has another value in a field in which another one has a value."""
        return key not in self.fields.values() and any(
            self.fields.get(field, key) != key for field, value in other.fields.items() if value == key
        )


class SourceRecords:
    """Hold the records of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._count = 0
        self._records: dict[str, list[Record]] = {}
        self._by_key: dict[tuple[str, str], list[Record]] = {}
        self._named: dict[str, list[_Entity]] = {}
        """By provider, as all of these."""
        self._skipped: set[str] = set()
        """The providers of which not all is known, so that no record of theirs is the only one."""

    def add(self, _: int, code: str, payload: Any) -> None:
        """Add the records of an answer of one source."""
        tool = source_of(code).tool or ""
        if is_computed(code) or tool.startswith("engine."):
            return
        text = only_text(payload) if lists_things(tool) else None
        waiting: list[Any] = [payload if text is None else parsed(text)]
        while waiting and self._count < MOST:
            item = waiting.pop()
            match item:
                case dict():
                    # A string that looks like a listing may be that of one message.
                    self._add(tool, item, may_be_message=text is None)
                    waiting += item.values()
                case list() | tuple():
                    waiting += item
                case _:
                    pass

    def _add(self, tool: str, item: dict[Any, Any], *, may_be_message: bool) -> None:
        provider = tool.partition(".")[0]
        fields = [(_field(str(name)), value) for name, value in item.items()]
        if record := _record(tool, fields, may_be_message=may_be_message):
            self._count += 1
            self._records.setdefault(provider, []).append(record)
            for key in record.own:
                self._by_key.setdefault((provider, key), []).append(record)
        named = self._named.setdefault(provider, [])
        called = [
            word
            for field, value in fields
            if field.is_name and isinstance(value, str) and not address_in(value)
            for word in words(value)
        ]
        if called and len(called) <= MOST_WORDS and len(named) < MOST:
            named.append(_Entity(frozenset(word for word in called if len(word) > 1), item))

    def skip(self, code: str) -> None:
        """Take no record of a provider for the only one, of which an answer was too large to take apart."""
        self._skipped.add((source_of(code).tool or "").partition(".")[0])

    def may_be_named(self, tool: str, name: str, identifier: str, said: Callable[[str], bool]) -> bool:
        """Return whether the task names a record with an identifier; others may be named alike.

        `said` tells whether the task has two words in a row. Two kinds of things may have the same identifier, so the
        tool that listed the record must share a word with the argument or, where that is only called `id`, its tool.
        """
        kind, key = _kind(tool, name), _key(identifier)
        fitting = self._fitting(tool, kind, key)
        if not any(record.tool != tool and record.is_kind(kind) for record in fitting):
            return False
        things = [record for record in fitting if record.is_kind(kind)]
        return bool(_pairs(things, said) or _called_by(things, said, kind))

    def is_named(self, tool: str, name: str, identifier: str, said: Callable[[str], bool]) -> bool:
        """Return whether a value is the identifier of the one record of a tool's provider that the task names."""
        if not self.may_be_named(tool, name, identifier, said):
            return False
        kind, key = _kind(tool, name), _key(identifier)
        fitting = [record for record in self._fitting(tool, kind, key) if record.is_kind(kind)]
        things = [record for record in self._of(tool) if record.is_kind(kind)]
        pairs = _pairs(fitting, said)
        meant = (_meant(things, said, pairs) if pairs else []) or _called(things, _called_by(fitting, said, kind))
        return bool(meant) and all(record.is_(key, kind) for record in meant)

    def _fitting(self, tool: str, kind: frozenset[str], key: str) -> list[Record]:
        """Return the records of which something is the identifier as things of a kind."""
        held = self._by_key.get((tool.partition(".")[0], key), ()) if self._of(tool) else ()
        return [record for record in held if record.is_(key, kind)]

    def is_one_of_several(self, tool: str, value: str, said: Callable[[str], bool]) -> bool:
        """Return whether a value is that of somebody whose name, as far as the task says it, others have as well.

        Nor does a name settle it that only looks like one that the task says.
        """
        key, provider = _key(value), tool.partition(".")[0]
        named = self._named.get(provider, [])
        holding = {
            (somebody.name, *sorted(field for field, held in somebody.fields.items() if held == key)): somebody
            for somebody in named
            if key in somebody.fields.values()
        }
        if holding and (len(named) >= MOST or provider in self._skipped or len(holding) > MOST_CALLED):
            # Nobody knows who else is called so.
            return True
        return bool(holding) and all(_is_shared(somebody, key, named, said) for somebody in holding.values())

    def wrote(self, tool: str, address: str, identifier: str) -> bool:
        """Return whether an address is that of who wrote the message which an identifier of a provider stands for."""
        wanted, key = _key(identifier), run_of(address)
        found = [record for record in self._of(tool) if wanted in record.messages]
        return bool(found) and all(record.senders == frozenset({key}) for record in found)

    def _of(self, tool: str) -> list[Record]:
        """Return the records of the provider of a tool; none where not all is known."""
        provider = tool.partition(".")[0]
        return self._records.get(provider, []) if self._count < MOST and provider not in self._skipped else []


@remembered_of_names(1024)
def _field(name: str) -> _Field:
    last, lowered = (name_words(name) or ("",))[-1], name.lower()
    own = words_of(name) - _OWN if last in _OWN else None
    return _Field(own, lowered in _MESSAGES, last in _TITLES, lowered in _SENDERS, last in NAMES)


@remembered_of_names(1024)
def _kinds(tool: str) -> frozenset[str]:
    """Return the words in the name of a tool that answers records."""
    return words_of(tool.partition(".")[2])


def _kind(tool: str, name: str) -> frozenset[str]:
    """Return the words for what an argument of a tool takes."""
    return words_of(name) - _OWN or _kinds(tool) - _GENERIC


def _is_shared(somebody: _Entity, key: str, named: Sequence[_Entity], said: Callable[[str], bool]) -> bool:
    rivals = [other for other in named if other.is_rival(somebody, key)]
    if meant := {word for word in somebody.name if said(word)}:
        return any(meant <= other.name for other in rivals)
    return any(
        differ_in_one(word, own) for other in rivals for word in other.name if said(word) for own in somebody.name
    )


def answers(tool: str) -> bool:
    """Return whether a tool is named as one that answers a message."""
    return not _ANSWERING.isdisjoint(name_words(tool.partition(".")[2]))


def names_a_message(name: str) -> bool:
    """Return whether an argument says which message a call answers."""
    return not _ANSWERED.isdisjoint(name_words(name))


def _record(tool: str, fields: Sequence[tuple[_Field, Any]], *, may_be_message: bool) -> Record | None:
    """Return a record where something identifies it."""
    titles: list[str] = []
    own: dict[str, frozenset[str]] = {}
    messages: set[str] = set()
    senders: list[Any] = []
    for field, value in fields:
        if field.own is not None and isinstance(value, str | int) and not isinstance(value, bool):
            own[key := _key(str(value))] = field.own
            messages.update([key] if may_be_message and field.names_message else ())
        elif field.is_title and isinstance(value, str):
            titles.append(value if len(value) <= LONGEST_TITLE else " ".join(words(value)[: MOST_WORDS + 1]))
        elif field.is_sender:
            senders.append(value)
    written_by = (
        frozenset(address for value in senders for address in _addresses(value)) if messages else frozenset[str]()
    )
    return Record(tool, tuple(titles), own, frozenset(messages), written_by) if own else None


def _addresses(value: Any) -> Iterator[str]:
    """Yield the addresses that are a field, or an entry of a list."""
    for item in value if isinstance(value, list) else [value]:
        for leaf in item.values() if isinstance(item, dict) else [item]:
            if isinstance(leaf, str) and (address := address_in(leaf)):
                yield run_of(address)


def _pairs(records: Sequence[Record], said: Callable[[str], bool]) -> set[tuple[str, str]]:
    """Return each two words in a row that the task says of some records."""
    return {pair for record in records for _, row in _rows(record, said) for pair in pairwise(row)}


def _meant(records: Sequence[Record], said: Callable[[str], bool], pairs: set[tuple[str, str]]) -> list[Record]:
    """Return the records that the task may mean where it says some pairs of words of one.

    These are all whose titles share two words in a row with that; where it quotes whole titles, these only.
    """
    rivals = [
        (record, len(title) == len(row) >= LEAST_QUOTED)
        for record in records
        if any(not pairs.isdisjoint(pairwise(title)) for title in record.titles)
        for title, row in _rows(record, said)
        if not pairs.isdisjoint(pairwise(row))
    ]
    quoted = [record for record, whole in rivals if whole]
    return quoted or [record for record, _ in rivals]


def _called_by(records: Sequence[Record], said: Callable[[str], bool], kind: frozenset[str]) -> set[str]:
    """Return the titles of one word by which the task names records, together with their kind.

    With "my home address" it means the address that is called Home.
    """
    titles = {title[0] for record in records for title in record.titles if len(title) == 1}
    return {title for title in titles if any(said(title + of) or said(of + title) for of in kind)}


def _called(records: Sequence[Record], called: set[str]) -> list[Record]:
    """Return the records that the task may mean by some words: all that have one of them in a title."""
    return [record for record in records if not called.isdisjoint(word for title in record.titles for word in title)]


def _rows(record: Record, said: Callable[[str], bool]) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield each title that the task names, and the words of it that it has in a row."""
    for title in record.titles:
        row = _row(title, said) if LEAST_SAID <= len(title) <= MOST_WORDS else []
        # The ending of a file need not be said.
        if len(row) >= LEAST_SAID and 2 * len(row) >= len(title) - 1 and sum(map(len, row)) >= LEAST_LETTERS:
            yield title, row


def _row(title: Sequence[str], said: Callable[[str], bool]) -> Sequence[str]:
    """Return the most words of a title that the task has in a row."""
    row = longest = [title[0]]
    for before, after in pairwise(title):
        row = [*row, after] if said(before + after) else [after]
        longest = max(longest, row, key=len)
    return longest


def _key(value: str) -> str:
    return " ".join(words(value))
