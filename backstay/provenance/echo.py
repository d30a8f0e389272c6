"""Tell what an answer only repeats of the arguments of its own call: for that nobody's record vouches."""

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from backstay.canonical import canonical
from backstay.provenance.words import (
    BORDER,
    coded_in,
    marks,
    numbers,
    remembered_of_names,
    run_of,
    spellings,
    squeezed,
)
from backstay.stored_texts import holds_stored_text

LEAST = 4
"""A shorter run of letters is taken for a repetition only where it is a whole word of an argument."""
MOST = 20_000
"""An answer to a call with longer arguments is not compared with them, and vouches for nothing."""
USUAL = 10**15
"""Of smaller numbers it is remembered how they may be written."""
UNKNOWN = "unknown"
"""Stands for arguments that are too long, or that are not all known."""


def kept_arguments(arguments: Any) -> Any:
    """Return what is kept of the arguments of a call, so that its answer can be compared with them."""
    return UNKNOWN if len(canonical(arguments)) > MOST or holds_stored_text(arguments) else arguments


class Echo:
    """Recognise the arguments of one call in its answer: whole, cut, nested, in another case or coding."""

    def __init__(self, arguments: Any) -> None:
        """Collect the arguments; they are taken apart once they are compared."""
        self._leaves: list[str | float] = []
        waiting = [arguments]
        while waiting:
            item = waiting.pop()
            match item:
                case dict():
                    waiting += [*item, *item.values()]
                case list() | tuple():
                    waiting += item
                case str() | int() | float() if not isinstance(item, bool):
                    self._leaves.append(item)
                case _:
                    pass

    @cached_property
    def _runs(self) -> list[str]:
        """Return each way in which an argument may be written."""
        return [run for leaf in self._leaves for run in _written(leaf)]

    @property
    def said(self) -> str:
        """Return the arguments as they are compared, with a border between them."""
        return BORDER.join(self._runs)

    def strip(self, found: set[str]) -> None:
        """Take out of the marks of an answer those that are in the arguments."""
        found.difference_update(*(_marks_of(str(leaf)) for leaf in self._leaves))
        if sum(len(run) ** 2 for run in self._runs) > len(found):
            said = self.said
            begins = {said[at : at + LEAST] for at in range(len(said) - LEAST + 1)} if len(found) > len(said) else None
            may = found if begins is None else [mark for mark in found if mark[:LEAST] in begins]
            found.difference_update([mark for mark in may if len(mark) >= LEAST and mark in said])
            return
        # For a large answer it is less work to name all that short runs hold.
        for run in self._runs:
            ends = range(LEAST, len(run) + 1)
            found.difference_update(run[at:end] for end in ends for at in range(end - LEAST + 1))


def _read(text: str) -> list[str]:
    return [text, *coded_in(text)]


@remembered_of_names(1024)
def _marks_of(text: str) -> frozenset[str]:
    return frozenset().union(*map(marks, _read(text)))


def _written(leaf: str | float) -> tuple[str, ...]:
    if isinstance(leaf, str):
        return _ways_of_text(leaf)
    # A float is not equal to itself, or is written otherwise than one that it equals.
    return _ways_of_number(leaf) if isinstance(leaf, int) and abs(leaf) < USUAL else _ways(leaf)


def _ways(leaf: str | float) -> tuple[str, ...]:
    said = ((run_of(text), *map(squeezed, spellings(text))) for text in _read(str(leaf)))
    return (*map(squeezed, numbers(leaf)), *chain.from_iterable(said))


_ways_of_number: Callable[[int], tuple[str, ...]] = lru_cache(maxsize=1024)(_ways)
_ways_of_text: Callable[[str], tuple[str, ...]] = remembered_of_names(1024)(_ways)
