"""Groups of approvals that one line could cover, step by step: the very same places, a list, what is beside.

Where a call goes, and what it acts on, is the very same in a group, or has its folder, host or domain in common.
Numbers lie between the smallest and the greatest that was approved. Only texts may be any.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backstay.canonical import canonical
from backstay.errors import TaskInvalid
from backstay.policies.accepted import LONGEST_CONDITIONS
from backstay.policies.learning.evidence import DecisionRecord, Spot
from backstay.policies.learning.parts import Generalization, exactly, places_of
from backstay.policies.rule import Rule

LEAST_RUNS = 3
"""This many runs were let go before a line about the very same places is proposed."""
LEAST_BESIDE = 5
"""This many different values were approved before a line lets through what is beside them."""
LEAST_AS_HIGH, SHARE_AS_HIGH = 2, 5
"""At least two approvals, and one in five, were about an amount or more before a line lets that amount through.

People approve a wrong amount now and then, and a line must not let through all that lies below it.
"""
MOST_LISTED = 50
"""How many values one line lists."""


@dataclass(frozen=True)
class ApprovalGroup:
    """Hold approvals that agree in all that says where a call goes, with what else was approved of them."""

    tool: str
    values: dict[str, tuple[Any, ...]]
    """The targets and settings, each with the values that it had."""
    beside: dict[str, Generalization]
    """Of a target: what its values have in common, where that stands for them."""
    numbers: dict[str, tuple[float, ...]]
    """Every number that was approved."""
    origins: dict[str, frozenset[str]]
    texts: frozenset[str]
    runs: frozenset[str]
    people: frozenset[str]

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """Return between which numbers the calls lie; the greatest do not count, which few approvals reach."""
        found: dict[str, tuple[float, float]] = {}
        for name, numbers in self.numbers.items():
            ordered = sorted(numbers)
            as_high = max(LEAST_AS_HIGH, math.ceil(len(ordered) / SHARE_AS_HIGH))
            found[name] = (ordered[0], ordered[max(len(ordered) - as_high, 0)])
        return found

    @property
    def rule(self) -> Rule | None:
        """Return the line of a policy; None where it cannot be written as one."""
        when: dict[str, Any] = {}
        for name, values in self.values.items():
            place = self.beside.get(name)
            when[name] = exactly([*values]) if place is None else {place.operator: place.operand}
            if self.origins[name]:
                when[name]["from"] = sorted(self.origins[name])
        for name, (least, most) in self.bounds.items():
            when[name] = {"equals": least} if least == most else {"gte": least, "lte": most}
        only = tuple(sorted({*when, *self.texts}))
        if not only:
            # A line that names no argument lets every argument through.
            return None
        try:
            rule = Rule.admit({"tool": self.tool, "when": when or None, "only": only})
        except (TaskInvalid, ValueError):
            return None
        return rule if len(canonical([rule.when, rule.only])) <= LONGEST_CONDITIONS else None


def exact_groups(counted: Iterable[DecisionRecord]) -> Iterator[ApprovalGroup]:
    """Yield a group for all approvals of calls that go to the very same places."""
    found: defaultdict[Spot, list[DecisionRecord]] = defaultdict(list)
    for case in counted:
        found[case.spot].append(case)
    for spot, cases in found.items():
        yield _exact(spot, cases)


def _exact(spot: Spot, cases: Sequence[DecisionRecord]) -> ApprovalGroup:
    columns = (
        zip(spot.numbers, zip(*(case.numbers for case in cases), strict=True), strict=True) if spot.numbers else ()
    )
    values = spot.values
    origins = zip(values, zip(*(case.origins for case in cases), strict=True), strict=True) if values else ()
    return ApprovalGroup(
        tool=spot.tool,
        values={name: (value,) for name, value in values.items()},
        beside={},
        numbers=dict(columns),
        origins={name: frozenset(code for codes in told for code in codes) for name, told in origins},
        texts=frozenset().union(*(case.texts for case in cases)),
        runs=frozenset(case.run for case in cases),
        people=frozenset(case.by for case in cases),
    )


def beside_groups(groups: Sequence[ApprovalGroup]) -> Iterator[ApprovalGroup]:
    """Yield groups of what has a folder, a host or a domain in common, the narrowest of each target first."""
    alike: defaultdict[tuple[Any, ...], list[ApprovalGroup]] = defaultdict(list)
    for group in groups:
        for name, (value,) in group.values.items():
            for width, place in enumerate(places_of(value)):
                alike[width, group.tool, name, place, _rest(group, name)].append(group)
    for (_, _, name, place, _), found in sorted(alike.items(), key=lambda each: each[0][0]):
        joined = _joined(found, name)
        if len(joined.values[name]) >= LEAST_BESIDE:
            yield replace(joined, beside={name: place})


def listed_groups(groups: Sequence[ApprovalGroup]) -> Iterator[ApprovalGroup]:
    """Yield groups that differ in one value only as one that lists the values; others as they are."""
    left = [*groups]
    names = dict.fromkeys(name for group in groups for name in group.values)
    for name in names:
        alike: defaultdict[tuple[Any, ...], list[ApprovalGroup]] = defaultdict(list)
        others: list[ApprovalGroup] = []
        for group in left:
            whole = name in group.values and not group.beside
            key = (
                group.tool,
                _rest(group, name),
                tuple(group.bounds.items()),
                tuple(sorted(group.origins.items(), key=str)),
            )
            alike[key if whole else (id(group),)].append(group)
        left = others
        for found in alike.values():
            joins = len(found) > 1
            left += _in_lists(found, name) if joins else found
    yield from left


def _in_lists(found: list[ApprovalGroup], name: str) -> list[ApprovalGroup]:
    return [_joined(found[start : start + MOST_LISTED], name) for start in range(0, len(found), MOST_LISTED)]


def _rest(group: ApprovalGroup, name: str) -> tuple[Any, ...]:
    """Return what has to agree for groups to differ in one value only."""
    others = tuple((other, repr(values)) for other, values in group.values.items() if other != name)
    return (name in group.values, others, tuple(group.numbers))


def _joined(found: Sequence[ApprovalGroup], name: str) -> ApprovalGroup:
    first = found[0]
    return ApprovalGroup(
        tool=first.tool,
        values=first.values
        | {name: tuple({repr(value): value for group in found for value in group.values[name]}.values())},
        beside={},
        numbers={each: tuple(n for group in found for n in group.numbers[each]) for each in first.numbers},
        origins={at: frozenset().union(*(group.origins[at] for group in found)) for at in first.origins},
        texts=frozenset().union(*(group.texts for group in found)),
        runs=frozenset().union(*(group.runs for group in found)),
        people=frozenset().union(*(group.people for group in found)),
    )
