"""Tell what an answer only repeats of the arguments of its own call: for that nobody's record vouches."""

from typing import Any

from backstay.canonical import canonical
from backstay.provenance.words import BORDER, coded_in, marks, numbers, spellings, squeezed, words
from backstay.stored_texts import holds_stored_text

LEAST = 4
"""A shorter run of letters is taken for a repetition only where it is a whole word of an argument."""
MOST = 20_000
"""An answer to a call with longer arguments is not compared with them, and vouches for nothing."""
UNKNOWN = "unknown"
"""Stands for arguments that are too long, or that are not all known."""


def kept_arguments(arguments: Any) -> Any:
    """Return what is kept of the arguments of a call, so that its answer can be compared with them."""
    return UNKNOWN if len(canonical(arguments)) > MOST or holds_stored_text(arguments) else arguments


class Echo:
    """Recognise the arguments of one call in its answer: whole, cut, nested, in another case or coding."""

    def __init__(self, arguments: Any) -> None:
        """Take the arguments apart."""
        self._marks: set[str] = set()
        runs: list[str] = []
        waiting = [arguments]
        while waiting:
            item = waiting.pop()
            match item:
                case dict():
                    waiting += [*item, *item.values()]
                case list() | tuple():
                    waiting += item
                case str() | int() | float() if not isinstance(item, bool):
                    runs += self._add(item)
                case _:
                    pass
        self._run = BORDER.join(runs)

    @property
    def said(self) -> str:
        """Return the arguments as they are compared, with a border between them."""
        return self._run

    def _add(self, leaf: str | float) -> list[str]:
        text = str(leaf)
        read = [text, *coded_in(text)]
        ways = numbers(leaf)
        for said in read:
            self._marks |= marks(said)
            ways += [words(said), *spellings(said)]
        return [squeezed(way) for way in ways]

    def strip(self, found: set[str]) -> None:
        """Take out of the marks of an answer those that stand in the arguments."""
        found -= self._marks
        if len(self._run) ** 2 > len(found):
            found -= {mark for mark in found if len(mark) >= LEAST and mark in self._run}
            return
        # For a large answer it is less work to name all that a short run holds.
        ends = range(LEAST, len(self._run) + 1)
        found.difference_update(self._run[at:end] for end in ends for at in range(end - LEAST + 1))
