"""Which decisions are evidence, and which are not; kept in a form that a hundred thousand of them fit into."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from backstay.authority import principal
from backstay.canonical import canonical
from backstay.policies.learning.case import Case, Said
from backstay.policies.learning.parts import is_of_others, is_path, origin_of, origins_of, role_of

MOST_CASES = 200_000
"""At most this many decisions are looked at; more approvals are counted, and from twice as many nothing is learned."""
HASTE_S = 2.0
"""Nobody has read what they approve within this time."""
CORRECTED_S = 3600.0
"""Within this time, whoever rejects a call and then approves the very same one has corrected a slip."""
MANY = 20
"""Who decides so often without a rejection looks at nothing, and what is approved so often need not be asked."""
_AS_OFTEN = 0.25
"""A person who rejects less than this part of what others would have, of as many calls, does not look either."""
_LEAST_USUAL = 2
"""Where others would have rejected fewer, it can be chance that somebody rejected none."""
_SEVERAL = 2

_REASONS = (
    "not verified",
    "nobody proved who started the run",
    "who started the run decided",
    "a rule asked, not the default",
    "the tool only reads and reaches out, so only exactly the same arguments can be remembered",
    "the tool is described otherwise now",
    "people had changed the arguments",
    "arguments came from what others wrote",
    "a program made the arguments, and nobody knows from what",
    "not all of the arguments were shown as they are",
    "approved within 2 seconds",
    "approved by who approves nearly everything, while others do not",
)
(
    _UNVERIFIED,
    _UNSTARTED,
    _OWN,
    _BY_RULE,
    _READS,
    _STALE,
    _EDITED,
    _OTHERS,
    _COMPUTED,
    _UNSEEN,
    _HASTY,
    _ALL_ALIKE,
) = _REASONS


class Spot(NamedTuple):
    """Hold what calls have in common that go to the same place with the same settings, whatever their texts are."""

    tool: str
    fixed: tuple[tuple[str, str], ...]
    """The names of targets and settings with their values, as canonical JSON, in order."""
    numbers: tuple[str, ...]
    """The names of its numbers, in order."""

    @property
    def values(self) -> dict[str, Any]:
        """Return the targets and settings."""
        return {name: json.loads(text) for name, text in self.fixed}


class DecisionRecord(NamedTuple):
    """Hold one decision; cases from which nothing is learned are left out."""

    spot: Spot
    numbers: tuple[float, ...]
    texts: frozenset[str]
    unseen: frozenset[str]
    incomplete: bool
    origins: tuple[tuple[str, ...], ...]
    """Where each of the spot's values came from: kinds and tools, in the words of the policy's `from`."""
    by: str
    said: Said
    run: str
    at: float
    same: str
    """What the very same call has in common."""
    against: str
    """Why it is not evidence; empty where it is."""
    edited: frozenset[str]
    seconds: float
    by_default: bool


class Evidence(NamedTuple):
    """Hold all decisions that were looked at, each with whether it counts."""

    kept: list[DecisionRecord]
    left_out: int
    """How many were too many to look at."""
    blind: bool = False
    """Whether a rejection may be among these, so that no line can be proposed."""

    @property
    def counted(self) -> list[DecisionRecord]:
        """Return the approvals from which lines are learned."""
        return [case for case in self.kept if not case.against and case.said == "approve"]

    @property
    def refused(self) -> list[DecisionRecord]:
        """Return the decisions that no line may go against: rejections that stood, and changes of where a call goes."""
        return [case for case in self.kept if is_refusal(case)]

    @property
    def reasons(self) -> Counter[str]:
        """Return how many approvals are not evidence, by why."""
        return Counter(case.against for case in self.kept if case.against and case.said == "approve")


class Gathering:
    """Take decisions one by one, and keep of each what can be learned from."""

    def __init__(self) -> None:
        """Begin with none."""
        self._seen: dict[tuple[str, str, Said, str], DecisionRecord] = {}
        self._known: dict[Any, Any] = {}
        self._left_out = 0
        self._blind = False

    def add(self, case: Case) -> None:
        """Take one decision; one that comes again counts once."""
        if len(self._seen) >= (MOST_CASES if case.said == "approve" else 2 * MOST_CASES):
            self._left_out += 1
            self._blind = self._blind or case.said != "approve"
            return
        kept = _kept(case, self._known)
        # The same person says the same of the same call in the same run: the run tried again, or was reset.
        self._seen[case.run, kept.by, kept.said, kept.same] = kept

    def evidence(self) -> Evidence:
        """Return all of them, each with whether it counts; a case that somebody has corrected is left out."""
        kept = _without_slips([*self._seen.values()])
        undiscerning = _undiscerning(kept)
        found = [
            case._replace(against=_ALL_ALIKE) if not case.against and case.by in undiscerning else case for case in kept
        ]
        return Evidence(found, self._left_out, self._blind)


def gather(cases: Iterable[Case]) -> Evidence:
    """Return what can be learned from decisions."""
    gathering = Gathering()
    for case in cases:
        gathering.add(case)
    return gathering.evidence()


def _kept(case: Case, known: dict[Any, Any]) -> DecisionRecord:
    fixed: dict[str, str] = {}
    numbers: dict[str, float] = {}
    texts: set[str] = set()
    nowhere = False
    for name, value in sorted(case.arguments.items()):
        role = role_of(name, value)
        if name in case.unseen:
            nowhere = nowhere or role != "text"
            texts.add(name)
            continue
        match role:
            case "number":
                numbers[name] = value
            case "text":
                texts.add(name)
            case _:
                fixed[name] = canonical(value)
        nowhere = nowhere or not is_path(name)
    spot = Spot(case.tool, tuple(fixed.items()), tuple(numbers))
    origins = tuple(origins_of(case.arguments[name], case.sources.get(name, ())) for name in fixed)
    same = case.args_digest or canonical([case.tool, {**case.arguments}])
    return DecisionRecord(
        # Equal ones are kept once.
        spot=known.setdefault(spot, spot),
        numbers=tuple(numbers.values()),
        texts=known.setdefault(frozenset(texts), frozenset(texts)),
        unseen=case.unseen,
        incomplete=case.incomplete,
        origins=known.setdefault(origins, origins),
        by=known.setdefault(case.by, principal(case.by)),
        said=case.said,
        run=case.run,
        at=case.decided_at,
        same=f"{case.tool} {same}",
        against=_against(case, nowhere=nowhere or case.incomplete),
        edited=case.edited,
        seconds=case.seconds,
        by_default=case.by_default,
    )


def _against(case: Case, *, nowhere: bool) -> str:
    """Return why nothing is learned from an approval; a rejection counts against a line in any case."""
    by, starters = principal(case.by), {principal(name) for name in case.starters}
    sources = [source for told in case.sources.values() for source in told]
    checks = (
        (not case.verified, _UNVERIFIED),
        (not starters, _UNSTARTED),
        (by in starters, _OWN),
        (not case.by_default, _BY_RULE),
        (case.reads, _READS),
        (not case.current, _STALE),
        (case.was_edited, _EDITED),
        (any(map(is_of_others, sources)), _OTHERS),
        (not all(map(origin_of, sources)), _COMPUTED),
        (nowhere or not _is_pattern(case.tool), _UNSEEN),
        (case.seconds <= HASTE_S, _HASTY),
    )
    return next((why for holds, why in checks if holds), "")


def is_refusal(case: DecisionRecord) -> bool:
    """Return whether a person rejected a call, or gave it another place, setting or amount before letting it go."""
    return case.said == "reject" or (case.said == "modify" and not case.edited <= case.texts)


def _without_slips(kept: list[DecisionRecord]) -> list[DecisionRecord]:
    """Return the decisions without the rejections that the same person withdrew soon after, of the very same call."""
    approved: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    rejected = {(case.by, case.same) for case in kept if case.said == "reject"}
    for case in kept:
        if case.said == "approve" and (case.by, case.same) in rejected and not case.against:
            approved[case.by, case.same].append(case.at)
    return [
        case
        for case in kept
        if case.said != "reject"
        or not any(0 <= at - case.at <= CORRECTED_S for at in approved.get((case.by, case.same), ()))
    ]


def _undiscerning(kept: list[DecisionRecord]) -> frozenset[str]:
    """Return who approves whatever comes, or nearly so, while others do reject; alone, nobody can be told so."""
    every = Counter(case.by for case in kept)
    against = Counter(case.by for case in kept if case.said != "approve")
    found: set[str] = set()
    for by, count in every.items():
        others, rejected = len(kept) - count, against.total() - against[by]
        usual = count * rejected / others if others else 0.0
        # Where several people do look, somebody new need not be believed yet: it may be one more name of another.
        untried = not against[by] and (len(against) >= _SEVERAL or (count >= MANY and rejected > 0))
        if untried or (usual >= _LEAST_USUAL and against[by] < _AS_OFTEN * usual):
            found.add(by)
    return frozenset(found)


def _is_pattern(tool: str) -> bool:
    """Return whether a line can name this tool and no other one."""
    return tool.isascii() and tool.isprintable() and 0 < len(tool) <= 200 and not set(tool) & set("*? ()[]{}!,;\"'")
