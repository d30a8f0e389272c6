"""Judge the parts that a value was put together from."""

from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from backstay.provenance.source import MODEL, is_computed, is_others, vouched
from backstay.provenance.targets import Shape
from backstay.provenance.words import numbers, run_of

LEAST_PIECE = 4
"""A word with fewer letters says nothing about where a value came from, unless it is the whole value."""
LEAST_PHRASE = 6
"""How many letters words in a row must have together, so that others' words make a path, URL or command theirs."""
LONG_RUN = 6
"""This many words in a row are told of also as a part of a string that says nothing of where a call goes."""


class ValuePart(NamedTuple):
    """Hold one part of a value: its words in a row, and the codes of the places where they are in a row."""

    words: tuple[str, ...]
    codes: tuple[str, ...]
    """Empty where nothing is known of it."""

    @property
    def letters(self) -> int:
        """Return how many letters and digits it has."""
        return sum(map(len, self.words))

    @property
    def known(self) -> bool:
        """Return whether it stands anywhere but in the model's own words."""
        return bool(self.codes) and self.codes != (MODEL,)

    @property
    def in_a_row(self) -> bool:
        """Return whether it is more than one word."""
        return len(self.words) > 1

    @property
    def digits(self) -> bool:
        """Return whether it has a digit, so that it is not a common word."""
        return any(map(str.isdigit, "".join(self.words)))

    @property
    def trusted(self) -> bool:
        """Return whether somebody vouches for it."""
        return _is_trusted(self.codes)

    @property
    def others(self) -> bool:
        """Return whether it is in what others wrote."""
        return any(map(is_others, self.codes))


# Many parts are in the same few places.
_is_trusted = lru_cache(maxsize=1024)(vouched)


def comes_from_others(parts: list[ValuePart], shape: Shape) -> bool:
    """Return whether what others wrote says where a call goes, and nobody else vouches for it."""
    theirs = [part for part in parts if part.others and not part.trusted]
    if any(_weighs(part, shape) for part in theirs):
        return True
    if shape == "atom" and len(parts) > 1 and any(part.others for part in parts):
        # An address is one thing: nobody vouches for what was put together from pieces that others hold.
        return not all(part.trusted and not part.others for part in parts)
    return bool(theirs) and 2 * sum(part.letters for part in theirs) >= sum(part.letters for part in parts)


def is_dictated(parts: list[ValuePart], value: str) -> bool:
    """Return whether others wrote two thirds of a name or more, and nobody else vouches for these."""
    theirs = sum(part.letters for part in parts if part.others and not part.trusted)
    return theirs > 0 and 3 * theirs >= 2 * len(run_of(value))


def stood_whole(parts: list[ValuePart], value: Any, shape: Shape) -> bool:
    """Return whether a value stood somewhere as a whole, and not only as a word that anybody uses."""
    if len(parts) != 1 or not parts[0].known:
        return False
    (part,) = parts
    if shape == "other" and (part.letters < LEAST_PIECE or not (part.in_a_row or part.digits)):
        return False
    return part.letters >= len(run_of(unquote(str(value)))) or list(part.words) in numbers(value)


def told_partly(parts: list[ValuePart], shape: Shape, *, foreign: bool) -> tuple[str, ...]:
    """Return where the parts of a value stood that say something of it; common words do only where policy may mind."""
    telling = [part for part in parts if part.known]
    if shape == "other":
        telling = [part for part in telling if len(part.words) >= LONG_RUN]
    elif not foreign:
        half = sum(part.letters for part in parts) / 2
        telling = [part for part in telling if part.in_a_row or part.digits or part.letters >= half]
    return tuple(dict.fromkeys(code for part in telling for code in part.codes))


def _weighs(part: ValuePart, shape: Shape) -> bool:
    if shape == "atom":
        return True
    if any(map(is_computed, part.codes)):
        return True
    if part.in_a_row:
        return part.letters >= LEAST_PHRASE
    return part.letters >= LEAST_PIECE and part.digits


def reaches(parts: list[ValuePart], *, page: bool) -> bool:
    """Return whether the address of a page does not come from the task, a person or the operator.

    Of other arguments, whether they hold words of an answer, or what a program computed.
    """
    if page:
        return not all(_sent_by(part) for part in parts)
    return any(set(part.codes) - {MODEL} and not _sent_by(part) for part in parts)


def _sent_by(part: ValuePart) -> bool:
    return any(code in {"task", "person", "operator"} for code in part.codes)
