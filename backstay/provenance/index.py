"""An index of all that was said in a run: which marks stand in which source."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from backstay.provenance.words import BORDER, marks

SMALL = 4000
"""So many marks of one text are kept one by one; those of a larger text are kept as sorted hashes of eight bytes."""
AT_ONCE = 2_000_000
"""Characters of a text that are taken apart at once, so that a large answer does not take a multiple of its size."""
MOST_PLACES = 16
"""For a mark that stands in more sources than these, the first ones are remembered."""
_NOWHERE: frozenset[int] = frozenset()


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
        self._large: list[tuple[int, array[int]]] = []

    def add(self, code: str, text: str) -> None:
        """Add a text that stood in a source; a source may be given several texts."""
        number = self._numbers.setdefault(code, len(self.codes))
        if number == len(self.codes):
            self.codes.append(code)
        for start in range(0, max(len(text), 1), AT_ONCE):
            # What is cut in two at the border is found in the overlap.
            self._add(number, marks(text[max(start - 200, 0) : start + AT_ONCE]))

    def _add(self, number: int, found: set[str]) -> None:
        if len(found) > SMALL:
            hashes = array("q", sorted(map(hash, found)))
            self._large.append((number, hashes))
            self.size += 8 * len(hashes)
            return
        places = self._places
        for mark in found:
            before = places.get(mark)
            if before is None:
                places[mark] = (number,)
            elif number not in before and len(before) < MOST_PLACES:
                places[mark] = (*before, number)
        self.size += 150 * len(found)

    def find(self, mark: str) -> frozenset[int]:
        """Return the numbers of the sources in which a mark stands."""
        found = self._places.get(mark)
        if not self._large:
            return _NOWHERE if found is None else frozenset(found)
        return frozenset((*(found or ()), *self._find_large(hash(mark))))

    def _find_large(self, value: int) -> Iterator[int]:
        for number, hashes in self._large:
            at = bisect_left(hashes, value)
            if at < len(hashes) and hashes[at] == value:
                yield number


def texts_in(value: Any) -> str:
    """Return every text, number and key of a JSON value, with a border between them."""
    found: list[str] = []
    waiting: list[Iterable[Any]] = [iter((value,))]
    while waiting:
        for item in waiting[-1]:
            match item:
                case str():
                    found.append(item)
                case bool() | None:
                    pass
                case int() | float():
                    found.append(repr(item))
                case dict():
                    waiting.append(iter([part for pair in item.items() for part in pair]))
                    break
                case list() | tuple():
                    waiting.append(iter(item))
                    break
                case _:
                    pass
        else:
            waiting.pop()
    return BORDER.join(found)
