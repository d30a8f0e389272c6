"""Remember the records in answers, to know which one a task or a call names.

A task that says "the design review" means the one record that is called so, and the identifier of that goes where the
task says. What else a record holds, others may have written: of the message that a call answers, who wrote it counts,
for an answer by the identifier alone goes there, too.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.contacts import NAMES
from backstay.provenance.rows import lists_things, only_text, parsed
from backstay.provenance.source import is_computed, source_of
from backstay.provenance.targets import address_in, words_of
from backstay.provenance.words import differ_in_one, name_words, run_of, words

MOST = 5000
"""So many records are remembered; in a run that has read more, none counts as named."""
MOST_WORDS = 16
"""A longer title is a text."""
LEAST_SAID = 2
"""A task names a record by so many words of its title in a row, which are at least half of them."""
LEAST_LETTERS = 6
MOST_CALLED = 20
"""Who has more names than these is not known by any."""
LEAST_QUOTED = 3
"""A title of so many words that stands in the task as a whole is quoted: others that share words are not meant."""
_TITLES, _OWN, _MESSAGES, _SENDERS, _ANSWERED, _ANSWERING, _GENERIC = (
    frozenset[str](names.split()) for names in data_beside(__file__).values()
)


class Record(NamedTuple):
    """Hold one record: what it is called, its identifiers, and who wrote it if it is a message."""

    provider: str
    tool: str
    kinds: frozenset[str]
    """The words in the name of the tool that answered it."""
    titles: tuple[tuple[str, ...], ...]
    own: Mapping[str, frozenset[str]]
    """By identifier: what it is the identifier of, as the words of the field's name."""
    messages: frozenset[str]
    """Its identifiers if it is a message."""
    senders: frozenset[str]

    def is_kind(self, kind: frozenset[str]) -> bool:
        """Return whether its tool, or a field with its identifier, is named for a kind of things."""
        return bool(self.kinds & kind) or any(of & kind for of in self.own.values())

    def is_(self, key: str, kind: frozenset[str]) -> bool:
        """Return whether something is its identifier as a thing of a kind."""
        of = self.own.get(key)
        return of is not None and (not of or bool(of & kind))


class _Named(NamedTuple):
    """Hold somebody or something by its name, with its identifiers by the names of their fields."""

    name: frozenset[str]
    fields: dict[str, str]

    def is_rival(self, other: "_Named", key: str) -> bool:
        """Return whether it has another value in a field in which another one has a value."""
        return key not in self.fields.values() and any(
            self.fields.get(field, key) != key for field, value in other.fields.items() if value == key
        )


class Records:
    """Hold the records of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._records: list[Record] = []
        self._named: dict[str, list[_Named]] = {}
        self._skipped: set[str] = set()
        """The providers of which not all is known, so that no record of theirs is the only one."""

    def add(self, code: str, payload: Any) -> None:
        """Add the records of an answer."""
        tool = source_of(code).tool or ""
        if is_computed(code) or tool.startswith("engine."):
            return
        text = only_text(payload) if lists_things(tool) else None
        payload = payload if text is None else parsed(text)
        waiting: list[Any] = [payload]
        while waiting and len(self._records) < MOST:
            item = waiting.pop()
            match item:
                case dict():
                    record = _record(tool, item)
                    if text is not None:
                        # A text that looks like a listing may be that of one message.
                        record = record._replace(messages=frozenset())
                    if record.own:
                        self._records.append(record)
                    self._name(record.provider, item)
                    waiting += item.values()
                case list() | tuple():
                    waiting += item
                case _:
                    pass

    def skip(self, code: str) -> None:
        """Take no record of a provider for the only one, of which an answer was too large to take apart."""
        self._skipped.add((source_of(code).tool or "").partition(".")[0])

    def is_named(self, tool: str, name: str, identifier: str, said: Callable[[str], bool]) -> bool:
        """Return whether a value is the identifier of the one record of a tool's provider that the task names.

        `said` tells whether the task has two words in a row. Two kinds of things may have the same identifier, so the
        tool that listed the record must share a word with the argument or, where that is only called `id`, its tool.
        """
        provider, key = tool.partition(".")[0], _key(identifier)
        kind = words_of(name) - _OWN or words_of(tool.partition(".")[2]) - _GENERIC
        records = [record for record in self._all() if record.provider == provider]
        if not any(record.is_(key, kind) and record.tool != tool and record.is_kind(kind) for record in records):
            return False
        things = [record for record in records if record.is_kind(kind)]
        meant = _meant(things, said, lambda record: record.is_(key, kind)) or _called(things, said, kind, key)
        return bool(meant) and all(record.is_(key, kind) for record in meant)

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

    def _name(self, provider: str, item: dict[Any, Any]) -> None:
        named = self._named.setdefault(provider, [])
        called = [word for field, value in item.items() if _is_name(field, value) for word in words(value)]
        if called and len(called) <= MOST_WORDS and len(named) < MOST:
            fields = {str(field): _key(str(value)) for field, value in item.items() if isinstance(value, str | int)}
            named.append(_Named(frozenset(word for word in called if len(word) > 1), fields))

    def wrote(self, tool: str, address: str, identifier: str) -> bool:
        """Return whether an address is that of who wrote the message which an identifier of a provider stands for."""
        provider, wanted, key = tool.partition(".")[0], _key(identifier), run_of(address)
        found = [record for record in self._all() if record.provider == provider and wanted in record.messages]
        return bool(found) and all(record.senders == frozenset({key}) for record in found)

    def _all(self) -> Iterator[Record]:
        """Yield the records of providers of which all is known."""
        if len(self._records) < MOST:
            yield from (record for record in tuple(self._records) if record.provider not in self._skipped)


def _is_name(field: Any, value: Any) -> bool:
    return isinstance(value, str) and not NAMES.isdisjoint(name_words(str(field))[-1:]) and not address_in(value)


def _is_shared(somebody: _Named, key: str, named: Sequence[_Named], said: Callable[[str], bool]) -> bool:
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


def _record(tool: str, item: dict[Any, Any]) -> Record:
    titles: list[tuple[str, ...]] = []
    own: dict[str, frozenset[str]] = {}
    messages: set[str] = set()
    senders: set[str] = set()
    for field, value in item.items():
        name = str(field)
        last = (name_words(name) or ("",))[-1]
        if last in _OWN and isinstance(value, str | int) and not isinstance(value, bool):
            own[_key(str(value))] = words_of(name) - _OWN
            messages.update([_key(str(value))] if name.lower() in _MESSAGES else ())
        elif last in _TITLES and isinstance(value, str):
            titles.append(tuple(words(value)[: MOST_WORDS + 1]))
        elif name.lower() in _SENDERS:
            senders.update(_addresses(value))
    provider, _, called = tool.partition(".")
    return Record(provider, tool, words_of(called), tuple(titles), own, frozenset(messages), frozenset(senders))


def _addresses(value: Any) -> Iterator[str]:
    """Yield the addresses that are a field, or an entry of a list."""
    for item in value if isinstance(value, list) else [value]:
        for leaf in item.values() if isinstance(item, dict) else [item]:
            if isinstance(leaf, str) and (address := address_in(leaf)):
                yield run_of(address)


def _meant(records: Sequence[Record], said: Callable[[str], bool], fits: Callable[[Record], bool]) -> list[Record]:
    """Return the records that the task may mean where it names one that fits.

    These are all whose titles share two words in a row with what the task says of that one; where it quotes whole
    titles, these only.
    """
    named = [
        (record, row, len(title) == len(row) >= LEAST_QUOTED)
        for record in records
        for title, row in _rows(record, said)
    ]
    pairs = {pair for record, row, _ in named if fits(record) for pair in pairwise(row)}
    rivals = [(record, whole) for record, row, whole in named if not pairs.isdisjoint(pairwise(row))]
    quoted = [record for record, whole in rivals if whole]
    return quoted or [record for record, _ in rivals]


def _called(things: Sequence[Record], said: Callable[[str], bool], kind: frozenset[str], key: str) -> list[Record]:
    """Return the records that the task may mean where it names one by a title of one word and its kind.

    With "my home address" it means the address that is called Home, unless the title of another one has that word.
    """
    titles = {title for record in things if record.is_(key, kind) for title in record.titles if len(title) == 1}
    named = {title[0] for title in titles if any(said(title[0] + of) or said(of + title[0]) for of in kind)}
    return [record for record in things if not named.isdisjoint(word for title in record.titles for word in title)]


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
