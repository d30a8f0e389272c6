"""Judge the parts that a value was put together from."""

from dataclasses import dataclass

from backstay.provenance.source import MODEL, is_computed, is_others, vouched
from backstay.provenance.targets import Shape

LEAST_PIECE = 4
"""A word with fewer letters says nothing about where a value came from, unless it is the whole value."""
LEAST_PHRASE = 6
"""How many letters words in a row must have together, so that others' words make a path, URL or command theirs."""
LEAST_RUN = 5
"""So many words in a row say where a part of a text came from."""
LEAST_TELLING = 9
"""A shorter word without a digit is too common to say where it came from."""
_DESCRIBING = frozenset({"!engine.search_tools", "operator"})
"""What servers say of their tools holds common words, and is told of for targets only."""


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


def told_codes(parts: list[Part], shape: Shape) -> tuple[str, ...]:
    """Return the places that people are told of: of a target, and of what stood there whole or in a long run."""
    known = [part for part in parts if set(part.codes) - {MODEL, *_DESCRIBING} and _says(part, parts, shape)]
    codes = (code for part in known for code in part.codes)
    return tuple(dict.fromkeys(code for code in codes if shape != "other" or code not in _DESCRIBING))


def _says(part: Part, parts: list[Part], shape: Shape) -> bool:
    """Return whether a part is so long or so particular that where it stood says something."""
    whole, digits = len(parts) == 1, any(map(str.isdigit, "".join(part.words)))
    if any(map(is_computed, part.codes)):
        return True
    if shape == "atom" or (shape == "place" and (whole or digits or len(part.words) > 1)):
        return True
    if whole and (len(part.words) > 1 or digits or part.letters >= LEAST_TELLING):
        return part.letters >= LEAST_PIECE
    return len(part.words) >= LEAST_RUN
