"""Name what is unsafe in how people decide; it is told, and changes nothing by itself."""

from collections import Counter, defaultdict
from typing import Literal, NamedTuple

from backstay.policies.learning.evidence import HASTE_S, MANY, DecisionRecord, Evidence

_LEAST = 3
_PART = 0.1

Kind = Literal["hasty", "edited", "undo_fails", "never_rejects", "never_rejected"]


class Pattern(NamedTuple):
    """Hold one unsafe pattern: of whom or of which tool, how often, and of how many."""

    kind: Kind
    about: str
    times: int
    of: int
    arguments: tuple[str, ...] = ()


def patterns_of(evidence: Evidence, undos: dict[str, tuple[int, int]]) -> tuple[Pattern, ...]:
    """Return the unsafe patterns of decisions, the most frequent of each kind first."""
    verified = [case for case in evidence.kept if case.said != "approve" or case.against != "not verified"]
    by_person: defaultdict[str, list[DecisionRecord]] = defaultdict(list)
    by_tool: defaultdict[str, list[DecisionRecord]] = defaultdict(list)
    for case in verified:
        by_person[case.by].append(case)
        by_tool[case.spot.tool].append(case)
    found = [
        *(_hasty(by, cases) for by, cases in by_person.items()),
        *(_edited(tool, cases) for tool, cases in by_tool.items()),
        *(Pattern("undo_fails", tool, failed, tried) for tool, (tried, failed) in undos.items() if failed),
        *(_always("never_rejects", by, cases) for by, cases in by_person.items()),
        *(_always("never_rejected", tool, cases) for tool, cases in by_tool.items()),
    ]
    kept = [pattern for pattern in found if pattern is not None]
    return tuple(sorted(kept, key=lambda pattern: (pattern.kind, -pattern.times, pattern.about)))


def _hasty(by: str, cases: list[DecisionRecord]) -> Pattern | None:
    approved = [case for case in cases if case.said == "approve"]
    hasty = sum(case.seconds <= HASTE_S for case in approved)
    return Pattern("hasty", by, hasty, len(approved)) if hasty >= _LEAST else None


def _edited(tool: str, cases: list[DecisionRecord]) -> Pattern | None:
    edits = [case for case in cases if case.said == "modify"]
    if len(edits) < _LEAST or len(edits) < _PART * len(cases):
        return None
    names = Counter(name for case in edits for name in sorted(case.edited))
    return Pattern("edited", tool, len(edits), len(cases), tuple(name for name, _ in names.most_common(3)))


def _always(kind: Kind, about: str, cases: list[DecisionRecord]) -> Pattern | None:
    every = all(case.said == "approve" for case in cases)
    return Pattern(kind, about, len(cases), len(cases)) if every and len(cases) >= MANY else None
