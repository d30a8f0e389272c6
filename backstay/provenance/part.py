"""Judge the parts that a value was put together from."""

from dataclasses import dataclass

from backstay.provenance.source import MODEL, is_computed, is_others, vouched
from backstay.provenance.targets import Shape

LEAST_PIECE = 4
"""A word with fewer letters says nothing about where a value came from, unless it is the whole value."""
LEAST_PHRASE = 6
"""How many letters words in a row must have together, so that others' words make a path, URL or command theirs."""


@dataclass(frozen=True)
class Part:
    """Hold one part of a value: its words in a row, and the codes of the places where they stand in a row."""

    words: tuple[str, ...]
    codes: tuple[str, ...]
    """Empty where nothing is known of it."""

    @property
    def letters(self) -> int:
        """Return how many letters and digits it has."""
        return sum(map(len, self.words))

    @property
    def trusted(self) -> bool:
        """Return whether somebody vouches for it."""
        return vouched(self.codes)

    @property
    def others(self) -> bool:
        """Return whether it stands in what others wrote."""
        return any(map(is_others, self.codes))


def comes_from_others(parts: list[Part], shape: Shape) -> bool:
    """Return whether what others wrote says where a call goes, and nobody else vouches for it."""
    theirs = [part for part in parts if part.others and not part.trusted]
    if any(_weighs(part, shape) for part in theirs):
        return True
    if shape == "atom" and len(parts) > 1 and any(part.others for part in parts):
        # An address is one thing: nobody vouches for what was put together from pieces that others hold.
        return not all(part.trusted and not part.others for part in parts)
    return bool(theirs) and 2 * sum(part.letters for part in theirs) >= sum(part.letters for part in parts)


def _weighs(part: Part, shape: Shape) -> bool:
    if shape == "atom":
        return True
    if any(map(is_computed, part.codes)):
        return True
    if len(part.words) > 1:
        return part.letters >= LEAST_PHRASE
    return part.letters >= LEAST_PIECE and any(map(str.isdigit, "".join(part.words)))


def reaches(parts: list[Part], *, page: bool) -> bool:
    """Return whether the address of a page does not come from the task, a person or the operator.

    Of other arguments, whether they hold words of an answer, or what a program computed.
    """
    if page:
        return not all(_sent_by(part) for part in parts)
    return any(set(part.codes) - {MODEL} and not _sent_by(part) for part in parts)


def _sent_by(part: Part) -> bool:
    return any(code in {"task", "person", "operator"} for code in part.codes)
