"""Find what a text spells by the first letters of its words, as in "Bravo Oscar Bravo" or in an acrostic."""

from backstay.data_files import data_beside
from backstay.provenance.words import words

LEAST = 7
"""Of fewer letters, a row of initials stands in long texts by chance."""
MOST = 20_000_000
"""So many initials of a run are remembered."""
_SIGNS, _DIGITS = (names.split() for names in data_beside(__file__).values())
_SAYS = dict.fromkeys(_SIGNS, "") | {word: str(digit) for digit, word in enumerate(_DIGITS)}


class Initials:
    """Hold the initials of what others wrote."""

    def __init__(self) -> None:
        """Begin with none."""
        self._by_source: list[tuple[int, str]] = []
        self._size = 0

    def add(self, number: int, text: str) -> None:
        """Add a text of one source."""
        if self._size >= MOST:
            return
        said = "".join(_SAYS.get(word, word if word.isdecimal() else word[0]) for word in words(text))
        self._by_source.append((number, said))
        self._size += len(said)

    def find(self, run: str) -> frozenset[int]:
        """Return the sources that spell a run of letters and digits."""
        if len(run) < LEAST:
            return frozenset()
        return frozenset(number for number, said in tuple(self._by_source) if run in said)
