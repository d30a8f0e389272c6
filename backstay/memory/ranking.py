"""Rank what matches a question: rare words tell more, and what a run says as a whole counts for each of its parts."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_OF_RUN = 0.6
"""How much the words of its run count for an item, beside its own."""
_LONG = 600
"""An item of this many different words counts half as much as a short one: it has something of everything."""
_MOST_OF_RUN = 4
"""Items of one run that are told at most."""


class Match(NamedTuple):
    """Name an item that has a word."""

    id: int
    run: str
    size: int
    """How many different words it has."""


def ranked(found: Mapping[str, Sequence[Match]], count: int, limit: int) -> list[int]:
    """Return the best items, best first, of those that have a word; the newer of two equal ones comes first.

    `count`: how many items the user has, by which it is judged how rare a word is.
    """
    of_item: dict[Match, float] = {}
    of_run: dict[str, float] = {}
    for matches in found.values():
        telling = math.log(1 + (count - len(matches) + 0.5) / (len(matches) + 0.5)) if matches else 0
        telling = max(telling, 0.01)
        for match in matches:
            of_item[match] = of_item.get(match, 0) + telling
        for run in {match.run for match in matches}:
            of_run[run] = of_run.get(run, 0) + telling
    scores = {match: own / (1 + match.size / _LONG) + _OF_RUN * of_run[match.run] for match, own in of_item.items()}
    best: list[int] = []
    told: dict[str, int] = {}
    for match in sorted(scores, key=lambda match: (-scores[match], -match.id)):
        told[match.run] = told.get(match.run, 0) + 1
        if told[match.run] <= _MOST_OF_RUN:
            best.append(match.id)
        if len(best) >= limit:
            break
    return best
