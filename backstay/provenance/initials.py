"""Find what a text spells by the first letters of its words, as in "Bravo Oscar Bravo" or in an acrostic."""

from backstay.data_files import data_beside
from backstay.provenance.words import words

LEAST = 7
"""Of fewer letters, a row of initials stands in long texts by chance."""
MOST = 20_000_000
"""So many initials of a run are remembered."""
MOST_WAITING = 2_000_000
"""So many characters wait at most until a value is looked up."""
_SIGNS, _DIGITS = (names.split() for names in data_beside(__file__).values())
_TEN = frozenset("0123456789")
_SAYS = dict.fromkeys(_SIGNS, "") | {word: str(digit) for digit, word in enumerate(_DIGITS)}


class Initials:
    """Hold the initials of what others wrote."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_source: list[tuple[int, str]] = []
        self._size = 0
        self._waiting: list[tuple[int, str]] = []
        self._waits = 0

    def add(self, number: int, text: str) -> None:
        """Add a text of one source, which is read when a value is looked up or many texts wait."""
        if self._size < MOST:
            self._waiting.append((number, text))
            self._waits += len(text)
        if self._waits > MOST_WAITING:
            self._read()

    def _read(self) -> None:
        # Several threads may look values up at once, and no harm comes of a text that two of them read.
        waiting = self._waiting
        read = tuple(waiting)
        for number, text in read:
            self._add(number, text)
        if self._waiting is waiting:
            self._waiting, self._waits = waiting[len(read) :], 0

    def _add(self, number: int, text: str) -> None:
        # A number says all of its digits.
        said = "".join([_SAYS[word] if word in _SAYS else word if word[0] in _TEN else word[0] for word in words(text)])
        self._by_source.append((number, said))
        self._size += len(said)

    def find(self, run: str) -> frozenset[int]:
        """Return the sources that spell a run of letters and digits."""
        if len(run) < LEAST:
            return frozenset()
        if self._waiting:
            self._read()
        return frozenset(number for number, said in tuple(self._by_source) if run in said)
