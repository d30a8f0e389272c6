"""Find what a string spells by the first letters of its words, as in "Bravo Oscar Bravo" or in an acrostic."""

from collections.abc import Iterator

from backstay.data_files import data_beside
from backstay.provenance.words import words

LEAST = 7
"""Of fewer letters, a row of initials is in long texts by chance."""
MOST = 20_000_000
"""At most this many initials of a run are remembered."""
MOST_OF_ONE = 131_072
"""Of a longer text, the beginning and the end are read, this many characters each: a model is shown far less."""
LONG = 20_000
MOST_THREES = 200_000
"""At most this many different three letters in a row are remembered, to see fast what is not spelled anywhere."""
MOST_WAITING = 2_000_000
"""At most this many characters wait until a value is looked up."""
_SIGNS, _DIGITS = (names.split() for names in data_beside(__file__).values())
_SAYS = dict.fromkeys(_SIGNS, "") | {word: str(digit) for digit, word in enumerate(_DIGITS)}


class Initials:
    """Hold the initials of what others wrote."""

    def __init__(self) -> None:
        """Begin with none."""
        self._read: list[tuple[int, str]] = []
        """The initials of each text that was read, and whose it is."""
        self._letters = 0
        self._threes: set[tuple[str, ...]] = set()
        """All three letters in a row of this many texts that were read."""
        self._looked_through = 0
        self._waiting: list[tuple[int, str]] = []
        self._waits = 0

    def add(self, number: int, text: str) -> None:
        """Add a string of one source, which is read when a value is looked up or many texts wait."""
        if self._letters < MOST:
            text = text if len(text) <= 2 * MOST_OF_ONE else f"{text[:MOST_OF_ONE]}\n{text[-MOST_OF_ONE:]}"
            self._waiting.append((number, text))
            self._waits += len(text)
        if self._waits > MOST_WAITING:
            self._read_waiting()

    def _read_waiting(self) -> None:
        # Several threads may look values up at once, and no harm comes of a string that two of them read.
        waiting = self._waiting
        read = [(number, _initials(text)) for number, text in tuple(waiting)]
        if self._waiting is waiting:
            self._read += read
            self._letters += sum(len(said) for _, said in read)
            self._waiting, self._waits = waiting[len(read) :], 0

    def find(self, run: str) -> frozenset[int]:
        """Return the sources that spell a run of letters and digits."""
        if len(run) < LEAST:
            return frozenset()
        if self._waiting:
            self._read_waiting()
        return frozenset(number for number, said in self._read if run in said) if self._may_say(run) else frozenset()

    def _may_say(self, run: str) -> bool:
        """Return whether long texts may say a run; where they cannot, this is seen faster."""
        if self._letters < LONG:
            return True
        count = len(self._read)
        if self._looked_through < count and len(self._threes) < MOST_THREES:
            for _, said in self._read[self._looked_through : count]:
                self._threes.update(_threes(said))
            self._looked_through = count
        return len(self._threes) >= MOST_THREES or self._threes.issuperset(_threes(run))


def _threes(run: str) -> Iterator[tuple[str, ...]]:
    return zip(run, run[1:], run[2:], strict=False)


def _initials(text: str) -> str:
    in_order = words(text)
    # A number says all of its digits, and nothing but a digit comes before the colon.
    return "".join([word if word < ":" else word[0] for word in map(_SAYS.get, in_order, in_order)])
