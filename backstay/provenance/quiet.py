"""Find the short numbers in an answer that tell nobody which thing to take.

A file whose identifier is 11 is not named by `11:30`, `June 11`, a size of 11 or the eleventh line of a numbered list.
"""

import re
from functools import cached_property
from typing import Any

from backstay.data_files import data_beside
from backstay.provenance.targets import is_quantity, without_moments
from backstay.provenance.words import BORDER, marks, may_be_coded

MOST_DIGITS = 4
_SHORT_NUMBER = re.compile(rf"(?<![^\W_])\d{{1,{MOST_DIGITS}}}(?![^\W_])")
_DIGIT = re.compile(r"\d")
_NUMBERED = re.compile(r"^([^\S\n]{0,20})(\d{1,3})([.)][^\S\n]+\S)", re.MULTILINE)
_HEADED = re.compile(r"^([^\S\n]{0,20}([A-Za-z]{3,20})[^\S\n])(\d{1,3})([.:)])", re.MULTILINE)
"""Headings such as `Activity 3:`."""
(_THINGS,) = (frozenset[str](names.split()) for names in data_beside(__file__).values())


def is_short_number(value: str) -> bool:
    """Return whether a value is a number that also is in texts that are about something else."""
    return _SHORT_NUMBER.fullmatch(value) is not None


class Numbers:
    """Collect the short numbers of one answer."""

    def __init__(self) -> None:
        """Begin with none."""
        self._fields: list[tuple[str, Any, bool]] = []

    def add(self, name: str, value: Any, *, is_text: bool) -> None:
        """Add a field; a string and every name tell their numbers, and a moment or an amount does not."""
        self._fields.append((name, value, is_text))

    @cached_property
    def quiet(self) -> frozenset[str]:
        """Return those that are not told.

        Codes in a string tell their numbers, and so do two digits beside each other.
        """
        seen: set[str] = set()
        telling: list[str] = []
        for name, value, is_text in self._fields:
            if _tells(name):
                telling.append(name)
            if isinstance(value, bool) or not isinstance(value, str | int | float):
                continue
            text = value if isinstance(value, str) else repr(value)
            if _tells(text):
                seen.update(_SHORT_NUMBER.findall(text))
                if is_text or not (isinstance(value, str) or is_quantity(name)):
                    telling.append(_without_headings(_without_numbering(without_moments(text))))
        return frozenset(seen - marks(BORDER.join(telling)) if seen else ())


def _tells(text: str) -> bool:
    """Return whether a string may tell a number: it has a digit, or a long run that may be coded."""
    return _DIGIT.search(text) is not None or may_be_coded(text)


def _without_numbering(text: str) -> str:
    """Return a string without the numbers of lines that count up from one."""
    if "\n" not in text:
        return text
    # The first line is kept: a list of one line may tell its number.
    following = 0

    def blank(found: re.Match[str]) -> str:
        nonlocal following
        number = int(found[2])
        counts_up = number == following
        following = number + 1 if counts_up or number == 1 else following
        return f"{found[1]} {found[3]}" if counts_up else found[0]

    return _NUMBERED.sub(blank, text)


def _without_headings(text: str) -> str:
    """Return a string without the numbers of headings that count up from one, unless they are called as a thing is."""
    if "\n" not in text:
        return text
    following: dict[str, int] = {}

    def blank(found: re.Match[str]) -> str:
        kind, number = found[2].lower(), int(found[3])
        counts_up = number == following.get(kind, 1) and not {kind, kind.removesuffix("s")} & _THINGS
        following[kind] = number + 1 if counts_up else 0
        return f"{found[1]} {found[4]}" if counts_up and number > 1 else found[0]

    return _HEADED.sub(blank, text)
