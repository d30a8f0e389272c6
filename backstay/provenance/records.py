"""Remember the records in answers, to know which one a task or a call names and who belongs to it.

A task that says "the design review" means the one record that is called so: its identifier and the people who take
part in it go where the task says. A call that answers a message goes to those who exchanged that message.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.rows import lists_things, only_text, parsed
from backstay.provenance.source import is_computed, source_of
from backstay.provenance.targets import address_in, words_of
from backstay.provenance.words import name_words, squeezed, words

MOST = 5000
"""So many records are remembered; in a run that has read more, none counts as named."""
MOST_WORDS = 16
"""A longer title is a text."""
LEAST_SAID = 2
"""A task names a record by so many words of its title in a row, which are at least half of them."""
LEAST_LETTERS = 6
LEAST_QUOTED = 3
"""A title of so many words that stands in the task as a whole is quoted: others that share words are not meant."""
_TITLES, _OWN, _TAKING_PART, _EXCHANGED, _ANSWERED, _GENERIC = (
    frozenset[str](names.split()) for names in data_beside(__file__).values()
)


class Record(NamedTuple):
    """Hold one record: what it is called, its identifiers, and the addresses of those who belong to it."""

    provider: str
    tool: str
    kinds: frozenset[str]
    """The words in the name of the tool that answered it."""
    titles: tuple[tuple[str, ...], ...]
    own: frozenset[str]
    taking_part: frozenset[str]
    exchanging: frozenset[str]


class Records:
    """Hold the records of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._records: list[Record] = []
        self._skipped: set[str] = set()
        """The providers of which not all is known, so that no record of theirs is the only one."""

    def add(self, code: str, payload: Any) -> None:
        """Add the records of an answer."""
        tool = source_of(code).tool or ""
        if is_computed(code) or tool.startswith("engine."):
            return
        if lists_things(tool) and (text := only_text(payload)) is not None:
            payload = parsed(text)
        waiting: list[Any] = [payload]
        while waiting and len(self._records) < MOST:
            item = waiting.pop()
            match item:
                case dict():
                    record = _record(tool, item)
                    if record.own or record.taking_part:
                        self._records.append(record)
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
        things = [record for record in self._all() if record.provider == provider and record.kinds & kind]
        if not any(key in record.own and record.tool != tool for record in things):
            return False
        meant = _meant([record for record in things if record.own], said, lambda record: key in record.own)
        return bool(meant) and all(key in record.own for record in meant)

    def take_part(self, address: str, said: Callable[[str], bool]) -> bool:
        """Return whether somebody takes part in the one record that the task names."""
        key = squeezed(words(address))
        meetings = [record for record in self._all() if record.taking_part]
        if not any(key in record.taking_part for record in meetings):
            return False
        meant = _meant(meetings, said, lambda record: key in record.taking_part)
        return len({(record.own, record.taking_part) for record in meant}) == 1 and key in meant[0].taking_part

    def exchanged(self, tool: str, address: str, identifier: str) -> bool:
        """Return whether somebody exchanged the message that an identifier of a tool's provider stands for."""
        provider, wanted, key = tool.partition(".")[0], _key(identifier), squeezed(words(address))
        found = [record for record in self._all() if record.provider == provider and wanted in record.own]
        return bool(found) and all(key in record.exchanging for record in found)

    def _all(self) -> Iterator[Record]:
        """Yield the records of providers of which all is known."""
        if len(self._records) < MOST:
            yield from (record for record in tuple(self._records) if record.provider not in self._skipped)


def answers_a_message(name: str) -> bool:
    """Return whether an argument says which message a call answers."""
    return not _ANSWERED.isdisjoint(name_words(name))


def _record(tool: str, item: dict[Any, Any]) -> Record:
    titles: list[tuple[str, ...]] = []
    own: set[str] = set()
    taking_part: set[str] = set()
    exchanging: set[str] = set()
    for field, value in item.items():
        name = str(field)
        last = (name_words(name) or [""])[-1]
        if last in _OWN and isinstance(value, str | int) and not isinstance(value, bool):
            own.add(_key(str(value)))
        elif last in _TITLES and isinstance(value, str):
            titles.append(tuple(words(value)[: MOST_WORDS + 1]))
        elif last in _TAKING_PART:
            taking_part.update(_addresses(value))
        elif name.lower() in _EXCHANGED:
            exchanging.update(_addresses(value))
    provider, _, called = tool.partition(".")
    people = frozenset(taking_part), frozenset(exchanging)
    return Record(provider, tool, words_of(called), tuple(titles), frozenset(own), *people)


def _addresses(value: Any) -> Iterator[str]:
    """Yield the addresses that are a field, or an entry of a list."""
    for item in value if isinstance(value, list) else [value]:
        for leaf in item.values() if isinstance(item, dict) else [item]:
            if isinstance(leaf, str) and (address := address_in(leaf)):
                yield squeezed(words(address))


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
