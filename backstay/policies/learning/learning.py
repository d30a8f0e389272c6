"""Propose the narrowest lines that cover repeated approvals and no rejection."""

from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from backstay.canonical import canonical, digest_of
from backstay.policies.learning.evidence import DecisionRecord, Evidence, is_refusal
from backstay.policies.learning.groups import (
    LEAST_RUNS,
    ApprovalGroup,
    beside_groups,
    exact_groups,
    listed_groups,
)
from backstay.policies.learning.matching import Matcher
from backstay.policies.learning.parts import Generalization, places_of
from backstay.policies.learning.patterns import Pattern, patterns_of
from backstay.policies.rule import Rule

HOLDS_S = 90 * 86_400.0
"""How long a line holds; then people are asked again, and it can be learned anew."""
_DISPUTED = 0.05
"""Where more of the decisions about what is beside a place were rejections, nothing is learned about the place."""
_MOST_COUNTER = 3
_MOST_LINES = 100
"""How many lines are proposed at once; nobody reads more."""
_MOST_COMPARED = 500
_LEAST_PEOPLE = 2
_Near = tuple[str, str, Generalization]
"""A tool, an argument, and what is beside the value of that."""


class Counter(NamedTuple):
    """Hold a call of the same tool that the line does not cover, because somebody rejected it."""

    by: str
    said: str
    """Where it went, as canonical JSON."""


@dataclass(frozen=True)
class ProposedLine:
    """Hold a line that is proposed, with what speaks for it and against it."""

    rule: Rule
    id: str
    runs: int
    people: tuple[str, ...]
    allowed: int
    """How many of the calls that people were asked about it would have let through."""
    asked: int
    """How many calls of the tool people were asked about."""
    changed: int
    """How many of those that it lets through somebody changed first, in a string."""
    counter: tuple[Counter, ...]


class LearningResult(NamedTuple):
    """Hold all that is learned from decisions."""

    proposed: tuple[ProposedLine, ...]
    patterns: tuple[Pattern, ...]
    evidence: Evidence
    more: int
    """How many lines are not told."""


def learn(evidence: Evidence, undos: dict[str, tuple[int, int]] | None = None) -> LearningResult:
    """Learn from decisions; `undos` says by tool how often its undo was tried, and how often that failed."""
    groups = [] if evidence.blind else _wide_and_narrow(evidence)
    rules = [(group, rule) for group in groups if (rule := group.rule) is not None]
    rules.sort(key=lambda each: -len(each[0].runs))
    proposed = _in_hindsight(rules[:_MOST_LINES], evidence)
    return LearningResult(proposed, patterns_of(evidence, undos or {}), evidence, max(len(rules) - _MOST_LINES, 0))


def _wide_and_narrow(evidence: Evidence) -> list[ApprovalGroup]:
    """Return the groups that lines are proposed for: what is beside many values, else the very same ones, as lists."""
    counted = evidence.counted
    # Where several people decide, one of them alone teaches nothing.
    people = min(len({case.by for case in counted}), _LEAST_PEOPLE)
    exact = [*exact_groups(counted)]
    enough = [
        group
        for group in (*beside_groups(exact), *exact)
        if len(group.runs) >= LEAST_RUNS and len(group.people) >= people
    ]
    refused = evidence.refused
    good = _unrefused(enough, refused)
    wide: list[ApprovalGroup] = []
    listed = {(group.tool, run) for group in good if not group.beside for run in group.runs}
    for group in good:
        # Where each of the values was approved often enough by itself, a list of them is narrower.
        open_ended = any((group.tool, run) not in listed for run in group.runs)
        if (
            group.beside
            and open_ended
            and not any(group.runs <= other.runs and group.tool == other.tool for other in wide)
        ):
            wide.append(group)
    within = {(group.tool, run) for group in wide for run in group.runs}
    rest = [group for group in good if not group.beside and not all((group.tool, run) in within for run in group.runs)]
    return [*wide, *listed_groups(_undisputed(rest, exact, refused))]


def _unrefused(groups: Sequence[ApprovalGroup], refused: Sequence[DecisionRecord]) -> list[ApprovalGroup]:
    """Return the groups whose lines let through nothing that somebody rejected."""
    ruled = [(group, rule) for group in groups if (rule := group.rule) is not None]
    matcher = Matcher([rule for _, rule in ruled])
    bad = {number for case in refused for number in matcher.matching(case)}
    return [group for number, (group, _) in enumerate(ruled) if number not in bad]


def _undisputed(
    groups: Sequence[ApprovalGroup], exact: Sequence[ApprovalGroup], refused: Sequence[DecisionRecord]
) -> list[ApprovalGroup]:
    """Return the groups about places beside which people reject next to nothing, either."""
    approved: Tally[_Near] = Tally(near for group in exact for near in _near(group) for _ in group.runs)
    near = list(approved)
    rules = [Rule.admit({"tool": tool, "when": {name: {place.operator: place.operand}}}) for tool, name, place in near]
    matcher = Matcher(rules)
    against = Tally(near[number] for case in refused for number in matcher.matching(case))
    return [
        group
        for group in groups
        if not any(against[each] > _DISPUTED * (against[each] + approved[each]) for each in _near(group))
    ]


def _near(group: ApprovalGroup) -> Iterator[_Near]:
    """Yield what is right beside the places that a group is about."""
    for name, (value, *_) in group.values.items():
        for place in islice(places_of(value), 1):
            yield group.tool, name, place


def _in_hindsight(rules: Sequence[tuple[ApprovalGroup, Rule]], evidence: Evidence) -> tuple[ProposedLine, ...]:
    """Return lines with what they would have decided; one that lets through what was rejected is none."""
    matcher = Matcher([rule for _, rule in rules])
    asked = Tally(case.spot.tool for case in evidence.kept)
    let: Tally[tuple[int, str]] = Tally()
    for case in evidence.kept:
        let.update((number, _weight(case)) for number in matcher.matching(case))
    refused: defaultdict[str, list[DecisionRecord]] = defaultdict(list)
    for case in evidence.refused:
        refused[case.spot.tool].append(case)
    found = [
        ProposedLine(
            rule=rule,
            id=digest_of([rule.tool, rule.when, sorted(rule.only)])[:12],
            runs=len(group.runs),
            people=tuple(sorted(group.people)),
            allowed=sum(let[number, weight] for weight in ("approve", "modify")),
            asked=asked[rule.tool],
            changed=let[number, "modify"],
            counter=_nearest(rule, refused[rule.tool]),
        )
        for number, (group, rule) in enumerate(rules)
        if not let[number, "against"]
    ]
    return tuple(sorted(found, key=lambda each: (-each.allowed, each.id)))


def _weight(case: DecisionRecord) -> str:
    return "against" if is_refusal(case) else case.said


def _nearest(rule: Rule, refused: Sequence[DecisionRecord]) -> tuple[Counter, ...]:
    """Return rejected calls that come closest to a line: those that meet most of its conditions."""
    latest = sorted(refused, key=lambda case: -case.at)[:_MOST_COMPARED]
    each = [rule.model_copy(update={"when": {path: said}, "only": ()}) for path, said in (rule.when or {}).items()]
    matcher = Matcher(each)
    told = dict.fromkeys(
        Counter(case.by, canonical(case.spot.values | dict(zip(case.spot.numbers, case.numbers, strict=True))))
        for case in sorted(latest, key=lambda case: -len(matcher.matching(case)))
    )
    return tuple(told)[:_MOST_COUNTER]
