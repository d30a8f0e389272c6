"""Find what a text spells by the first letters of its words, as in "Bravo Oscar Bravo" or in an acrostic."""

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from backstay.data_files import data_beside
from backstay.provenance.words import words

LEAST = 7
"""Of fewer letters, a row of initials stands in long texts by chance."""
MOST = 20_000_000
"""So many initials of a run are remembered."""
MOST_OF_ONE = 131_072
"""Of a longer text, the beginning and the end are read, each so many characters: a model is shown far less of it."""
LONG = 100_000
MOST_THREES = 200_000
"""So many different three letters in a row are remembered, to see fast what is not spelled anywhere."""
MOST_WAITING = 2_000_000
"""So many characters wait at most until a value is looked up."""
_SIGNS, _DIGITS = (names.split() for names in data_beside(__file__).values())
_TEN = frozenset("0123456789")
_SAYS = dict.fromkeys(_SIGNS, "") | {word: str(digit) for digit, word in enumerate(_DIGITS)}


class _Read(NamedTuple):
    """Hold the initials of all texts behind each other, where each begins, and whose it is."""

    said: str
    begins: tuple[int, ...]
    numbers: tuple[int, ...]


class Initials:
    """Hold the initials of what others wrote."""

    def __init__(self) -> None:
        """Begin with none."""
        self._read = _Read("", (), ())
        self._threes: set[tuple[str, ...]] = set()
        """All three letters in a row of what was read, up to where this was looked through."""
        self._upto = 0
        self._waiting: list[tuple[int, str]] = []
        self._waits = 0

    def add(self, number: int, text: str) -> None:
        """Add a text of one source, which is read when a value is looked up or many texts wait."""
        if len(self._read.said) < MOST:
            text = text if len(text) <= 2 * MOST_OF_ONE else f"{text[:MOST_OF_ONE]}\n{text[-MOST_OF_ONE:]}"
            self._waiting.append((number, text))
            self._waits += len(text)
        if self._waits > MOST_WAITING:
            self._read_waiting()

    def _read_waiting(self) -> _Read:
        """Return what was read, with what waited for it."""
        # Several threads may look values up at once, and no harm comes of a text that two of them read.
        waiting, read = self._waiting, self._read
        taken = tuple(waiting)
        said, begins, at = [read.said], list(read.begins), len(read.said)
        for _, text in taken:
            said.append(_initials(text))
            begins.append(at)
            at += len(said[-1])
        read = _Read("".join(said), tuple(begins), (*read.numbers, *(number for number, _ in taken)))
        if self._waiting is waiting:
            self._read, self._waiting, self._waits = read, waiting[len(taken) :], 0
        return read

    def find(self, run: str) -> frozenset[int]:
        """Return the sources that spell a run of letters and digits."""
        if len(run) < LEAST:
            return frozenset()
        read = self._read_waiting() if self._waiting else self._read
        if not self._may_say(run, read):
            return frozenset()
        found: set[int] = set()
        at = read.said.find(run)
        while at >= 0:
            place = bisect_right(read.begins, at) - 1
            found.add(read.numbers[place])
            # One place of a source is enough.
            following = read.begins[place + 1] if place + 1 < len(read.begins) else len(read.said)
            at = read.said.find(run, following)
        return frozenset(found)

    def _may_say(self, run: str, read: _Read) -> bool:
        """Return whether a long text may say a run; where it cannot, this is seen faster."""
        if len(read.said) < LONG:
            return True
        if self._upto < len(read.said) and len(self._threes) < MOST_THREES:
            self._threes.update(_threes(read.said[self._upto :]))
            self._upto = len(read.said)
        return len(self._threes) >= MOST_THREES or self._threes.issuperset(_threes(run))


def _threes(run: str) -> Iterator[tuple[str, ...]]:
    return zip(run, run[1:], run[2:], strict=False)


def _initials(text: str) -> str:
    # A number says all of its digits. What ends a text joins no two of them.
    said = [_SAYS[word] if word in _SAYS else word if word[0] in _TEN else word[0] for word in words(text)]
    return f"{''.join(said)}\n"
