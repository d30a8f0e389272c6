"""Fold what is long of a request, and say in the words of a page what the store knows of it."""

from collections.abc import Sequence
from typing import NamedTuple

from backstay.approvals.layout import argument_parts
from backstay.approvals.view import ArgumentView, RequestView
from backstay.shown import CLIPPED
from gateways.web.words import moment
from store.notices.requests import RequestRow

_FOLDED, _FOLDED_LINES = 1500, 30
"""Longer values are folded: one of this many characters, or lines."""
_BEGINS, _BEGINS_LINES = 600, 8
"""How much of a folded value is seen."""


class FoldedArgument(NamedTuple):
    """Hold one argument: its name, and its value as lines."""

    name: str
    lines: list[str]
    """What is seen at once."""
    more: list[str]
    """All of it, where that is so long that it is folded."""
    size: int
    """How many characters it has."""

    @classmethod
    def of(cls, argument: ArgumentView) -> "FoldedArgument":
        """Return an argument as a page lays it out."""
        name, lines = argument_parts(argument.name, argument.value)
        size = sum(map(len, lines)) + len(lines) - 1
        folded = size > _FOLDED or len(lines) > _FOLDED_LINES
        return cls(name, _beginning(lines) if folded else lines, lines if folded else [], size)


def is_folded(view: RequestView) -> bool:
    """Return whether some of a request is folded."""
    calls = (*view.calls, *([] if view.program is None else [view.program]))
    return any(FoldedArgument.of(argument).more for call in calls for argument in call.arguments)


def _beginning(lines: Sequence[str]) -> list[str]:
    first = list(lines[:_BEGINS_LINES])
    if sum(map(len, first)) > _BEGINS:
        first = [line[:_BEGINS] + (CLIPPED if len(line) > _BEGINS else "") for line in first[:1]]
    return first


def reminders(row: RequestRow | None) -> str:
    """Return how often people were reminded of a request, and when they last were; empty where they were not."""
    if row is None or row.reminded_at is None:
        return ""
    at = moment(row.reminded_at)
    return f"reminded once, at {at}" if row.reminded == 1 else f"reminded {row.reminded} times, last at {at}"
