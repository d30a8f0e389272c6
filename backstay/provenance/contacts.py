"""Remember whom the operator's own records give which address, and doubt an address that a name does not settle.

A task that says "Ana" means one person. Where two records are of that name, a model chose between them; and what is in
a text field of a record, such as a note, anybody may have written.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.source import is_computed, is_others, source_of
from backstay.provenance.targets import address_in, addresses_in, is_address
from backstay.provenance.words import name_words, run_of, words
from backstay.shown import one_line

MOST = 5000
"""At most this many records are remembered; in a run that has read more, none is doubted for its name."""
MOST_WORDS = 8
NAMES, _JOINING = (frozenset[str](names.split()) for names in data_beside(__file__).values())
_COUNTS = {2: "two", 3: "three", 4: "four"}
NO_FIELD = "no record has it as a field of its own"
IN_TEXT = "the text of another record holds it, too"


class Contact(NamedTuple):
    """Hold one record: whom it is about, and its addresses."""

    name: str
    words: frozenset[str]
    addresses: set[str]

    def is_rival(self, key: str) -> bool:
        """Return whether it has other addresses of the kind of one that it does not have."""
        return key not in self.addresses and any(address[0] == key[0] for address in tuple(self.addresses))


class Contacts:
    """Hold the records of a run."""

    def __init__(self) -> None:
        """Begin with none."""
        self.codes: set[str] = set()
        """The sources that have records."""
        self._skipped: set[str] = set()
        self._records: list[Contact] = []
        self._by_address: dict[str, list[Contact]] = {}
        self._by_word: dict[str, list[Contact]] = {}
        self._mentioned: dict[str, list[Contact]] = {}

    def add(self, code: str, payload: Any) -> None:
        """Add the records of an answer; one without names has none."""
        nameless = Contact("", frozenset(), set())
        before = len(self._records)
        waiting: list[tuple[Any, Contact]] = [(payload, nameless)]
        while waiting and len(self._records) < MOST:
            item, about = waiting.pop()
            match item:
                case dict():
                    about = self._record(item) or about
                    waiting += [(value, about) for value in item.values()]
                case list() | tuple():
                    waiting += [(value, about) for value in item]
                case str() | int() if not isinstance(item, bool):
                    self._hold(str(item), about)
                case _:
                    pass
        if code not in self._skipped and any(record.addresses for record in self._records[before:]):
            self.codes.add(code)

    def skip(self, code: str) -> None:
        """Doubt nothing of a source of which an answer was too large to take apart."""
        self._skipped.add(code)
        self.codes.discard(code)

    def _record(self, item: dict[Any, Any]) -> Contact | None:
        """Return a record where something says whom it is about."""
        name = " ".join(_named(item))
        found = frozenset(words(name)[:MOST_WORDS]) - _JOINING
        if not found:
            return None
        record = Contact(name, found, set())
        self._records.append(record)
        for word in found:
            self._by_word.setdefault(word, []).append(record)
        return record

    def _hold(self, text: str, about: Contact) -> None:
        if address := address_in(text):
            about.addresses.add(_key(address))
            self._by_address.setdefault(_key(address), []).append(about)
            return
        for address in addresses_in(text) if "@" in text else ():
            self._mentioned.setdefault(_key(address), []).append(about)

    def doubt(self, address: str, said: Callable[[str], bool]) -> str:
        """Return why the records do not settle an address, in words; `said` tells whether the task has a word."""
        key = _key(address)
        if len(self._records) >= MOST:
            return ""
        holding, mentioning = self._by_address.get(key, []), self._mentioned.get(key, [])
        if not holding:
            # The operator's own documents may say an address, and a contact's notes may not.
            documents = mentioning and not any(record.addresses for record in mentioning)
            return NO_FIELD if key.startswith("@") and not documents else ""
        if any(other.addresses and key not in other.addresses for other in mentioning):
            return IN_TEXT
        reasons = [self._ambiguous(record, key, said) for record in holding]
        return reasons[0] if all(reasons) else ""

    def _ambiguous(self, record: Contact, key: str, said: Callable[[str], bool]) -> str:
        """Return what the task says of a record and of others as well; empty where it says it of no other."""
        meant = {word for word in record.words if said(word)}
        alike = [self._by_word[word] for word in meant]
        rivals = [other for other in min(alike, key=len, default=[]) if meant <= other.words and other.is_rival(key)]
        if not rivals:
            return ""
        # A record that was read twice is one.
        count = 1 + len({(other.name, *sorted(other.addresses)) for other in rivals})
        shown = " ".join(part for part in record.name.split() if meant.intersection(words(part)))
        return f'{_COUNTS.get(count, count)} records match "{one_line(shown, 80)}"'


def has_records(code: str) -> bool:
    """Return whether the answers of a source may be the operator's own records."""
    return not is_others(code) and not is_computed(code) and source_of(code).kind == "tool"


def _named(item: dict[Any, Any]) -> Iterator[str]:
    for field, value in item.items():
        last = name_words(str(field))[-1:]
        if last and last[0] in NAMES and isinstance(value, str) and not is_address(value):
            yield value


def _key(address: str) -> str:
    """Return an address as it is compared, with its kind as the first sign."""
    return ("@" if "@" in address else "#") + run_of(address)
