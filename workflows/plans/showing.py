"""Show a plan to the people who decide about it, within the room that one answer has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backstay.approvals import approvers
from backstay.approvals.approval import RequestedCall
from backstay.approvals.proposal import PlanLimits, PlanToggles, Proposal, ProposalPart, ProposedStep
from backstay.canonical import canonical
from backstay.plans.leaving_out import StepDependencies
from backstay.plans.plan_run import PlanRun
from backstay.shown import one_line
from backstay.task.plan import PlanStep
from backstay.tools.tool import BUILTIN, WorkspaceLimits
from workflows.consent.asked_calls import SHOWN_CHARACTERS, RuledCall, shown_call, shown_ruled

SIDE_EFFECTS = 40
"""How many of the estimated side effects are named."""
SHOWN_BYTES = 90_000
"""How much the request about a plan holds of its steps; alternatives share it. Every answer stays under 128 KiB."""
FALLS = 40
"""How many steps are named that fall away with another."""
LEAST_BYTES = 10_000
SHOWN_STEPS = 120
"""More steps do not fit into that, however short they are."""
LEAST_CHARACTERS = 200
"""Of the arguments of one step; when that is too much, fewer steps are shown."""


@dataclass(frozen=True)
class ShownPlan:
    """Hold a plan as it is kept, with all of its steps, and what of it fits into a request."""

    whole: Proposal
    proposal: Proposal
    calls: tuple[RequestedCall, ...]
    """The steps that people are asked about, of those that are shown."""


@dataclass(frozen=True)
class ShownSteps:
    """Turn steps into what people see of them."""

    steps: Sequence[PlanStep]
    ruled: Sequence[RuledCall]
    """The steps that may be made."""
    asked: frozenset[int]
    parts: Mapping[int, int]
    """The part that each step is decided with."""
    needs: StepDependencies
    falls: Mapping[int, tuple[int, ...]]
    """The steps that are not made either when this one is left out."""
    diffs: Mapping[int, str | None]
    most: int
    """How many characters of its arguments a step shows."""

    def proposed(self) -> tuple[ProposedStep, ...]:
        """Return the steps as the proposal holds them."""
        return tuple(self._proposed(item) for item in self.ruled)

    def calls(self) -> tuple[RequestedCall, ...]:
        """Return those that people are asked about as the request holds them."""
        asked = [item for item in self.ruled if item.index in self.asked]
        # A step that nobody is asked about leaves its room to the others.
        most = max(LEAST_CHARACTERS, min(2000, self.most * len(self.ruled) // max(1, len(asked))))
        return tuple(shown_ruled(item, most, self.diffs.get(item.index)) for item in asked)

    def _proposed(self, item: RuledCall) -> ProposedStep:
        step = _proposed(item, self.steps[item.index], self.diffs.get(item.index), self.most)
        falls = self.falls.get(item.index, ())
        related = {"falls": falls[:FALLS], "more_fall": len(falls) > FALLS, "depends_on": self.needs.of[item.index]}
        step = step.model_copy(update=related)
        part = self.parts.get(item.index)
        return step if part is None else step.model_copy(update={"needs_approval": True, "part": part})


def shown_plan(  # noqa: PLR0917  # called in one place, by what they are
    run: PlanRun,
    ruled: Sequence[RuledCall],
    asks: Sequence[RuledCall],
    parts: tuple[ProposalPart, ...],
    needs: StepDependencies,
    jail: WorkspaceLimits,
    diffs: Mapping[int, str | None],
    taken: int = 0,
) -> ShownPlan:
    """Return a plan as people see it; `taken` bytes of the request hold something else."""
    known = ShownSteps(
        steps=run.plan.steps,
        ruled=[item for item in ruled if item.ruling.verdict != "deny"],
        asked=frozenset(item.index for item in asks),
        # A step of two parts is marked with the one that is about it, and not about the whole plan.
        parts={index: part.part for part in reversed(parts) for index in part.steps},
        needs=needs,
        falls={item.index: tuple(sorted(needs.without([item.index], FALLS + 1))) for item in ruled},
        diffs=diffs,
        most=max(LEAST_CHARACTERS, min(2000, SHOWN_CHARACTERS // len(ruled))),
    )
    steps = known.proposed()
    whole = Proposal(
        plan_id=run.id,
        version=run.plan.version,
        hash=run.plan.hash,
        title=one_line(run.plan.title, 200),
        summary=one_line(run.plan.summary, 1000),
        steps=steps,
        estimated_side_effects=_side_effects(steps),
        parts=parts,
        toggles=_toggles(run.plan.steps, known.ruled, jail),
        alternatives=run.alternatives,
    )
    room = max(LEAST_BYTES, SHOWN_BYTES // (1 + len(run.alternatives)) - taken)
    shown, calls = _fitting(known, room)
    return ShownPlan(whole, whole.model_copy(update={"steps": shown, "more": len(steps) - len(shown)}), calls)


def _fitting(known: ShownSteps, room: int) -> tuple[tuple[ProposedStep, ...], tuple[RequestedCall, ...]]:
    """Return what fits into the room: first less of each step is shown, then fewer steps."""
    known = replace(known, ruled=known.ruled[:SHOWN_STEPS])
    while True:
        steps, calls = known.proposed(), known.calls()
        size = size_of([item.model_dump(mode="json") for item in (*steps, *calls)])
        if size <= room or len(steps) <= 1:
            return steps, calls
        if known.most > LEAST_CHARACTERS:
            known = replace(known, most=max(LEAST_CHARACTERS, known.most * room // size))
        elif any(len(diff or "") > known.most for diff in known.diffs.values()):
            known = replace(known, diffs={index: _cut(diff, known.most) for index, diff in known.diffs.items()})
        else:
            known = replace(known, ruled=known.ruled[: max(1, min(len(steps) - 1, len(steps) * room // size))])


def size_of(value: Any) -> int:
    """Return how many bytes a JSON value takes."""
    return len(canonical(value).encode("utf-8", "replace"))


def _cut(diff: str | None, most: int) -> str | None:
    if diff is None or len(diff) <= most:
        return diff
    return f"{diff[: most - 40]}\n... {len(diff) - most + 40} more characters"


def parts_of(asks: Sequence[RuledCall]) -> tuple[ProposalPart, ...]:
    """Return the parts of a plan: the steps that the same people decide, in order of their first step."""
    groups: dict[tuple[Any, ...], list[RuledCall]] = {}
    for item in asks:
        groups.setdefault(approvers.constraint(item.ruling), []).append(item)
    # The plan is one request, which is asked again as soon as one of its steps would be.
    soonest = min((item.ruling.timeout_s for item in asks if item.ruling.timeout_s is not None), default=None)
    return tuple(
        ProposalPart(
            part=number,
            steps=tuple(sorted({item.index for item in group})),
            approvers=group[0].ruling.approvers,
            quorum=group[0].ruling.quorum,
            no_self_approval=group[0].ruling.no_self_approval,
            verified=group[0].ruling.verified,
            escalate_to=group[0].ruling.escalated_after(soonest),
            rule="; ".join(dict.fromkeys(item.ruling.rule for item in group))[:500],
        )
        for number, group in enumerate(groups.values())
    )


def _proposed(item: RuledCall, step: PlanStep, diff: str | None, most: int) -> ProposedStep:
    call, shown = item.call, shown_call(item.call, item.index, most, diff, undo=item.undo)
    return ProposedStep(
        idx=item.index,
        action=shown.tool,
        arguments=shown.arguments,
        safety=shown.safety,
        summary=one_line(step.summary, 300),
        diff_preview=diff,
        side_effects=shown.side_effects,
        undoable=shown.undoable,
        undo_how=shown.undo_how,
        limits=call.limits,
        starts_process=call.tool.starts_process,
    )


def _side_effects(steps: Sequence[ProposedStep]) -> tuple[str, ...]:
    """Return what carrying out the plan changes, in the order of its steps."""
    found: list[str] = []
    for step in steps:
        if step.safety.level == 0:
            continue
        changed = _changed_file(step.diff_preview) if step.action.partition(".")[0] == "fs" else None
        found += [changed] if changed else step.side_effects or [step.action]
    named = list(dict.fromkeys(one_line(effect, 200) for effect in found))
    more = len(named) - SIDE_EFFECTS
    return tuple(named if more <= 0 else [*named[:SIDE_EFFECTS], f"and {more} more"])


def _changed_file(diff: str | None) -> str | None:
    """Return what a diff of the workspace changes; only its head says it, since the rest may hold anything."""
    first, second = [*(diff or "").split("\n"), ""][:2]
    if first.startswith("--- ") and second.startswith("+++ "):
        before, after = first[4:], second[4:]
        if after == "/dev/null":
            return f"{before.removeprefix('a/')} deleted"
        return f"{after.removeprefix('b/')} {'created' if before == '/dev/null' else 'modified'}"
    if first.startswith("rename from "):
        return f"{first.removeprefix('rename from ')} renamed to {second.removeprefix('rename to ')}"
    # A part that could not be looked at is told in brackets; all else says by itself what becomes of which file.
    return None if first.startswith("(") else first


def _toggles(planned: Sequence[PlanStep], ruled: Sequence[RuledCall], jail: WorkspaceLimits) -> PlanToggles:
    """Return what can be narrowed so that it holds: a part that no step would do is null."""
    processes = any(item.call.tool.starts_process for item in ruled)
    jailed = [item.call.limits for item in ruled if item.call.tool.provider in BUILTIN]
    limits: dict[str, Any] = {"timeout_s": max(planned[item.index].seconds for item in ruled)} if ruled else {}
    for name, usual in jail:
        most = [getattr(own, name, None) or usual for own in jailed]
        if usual is not None and most:
            limits[name] = max(most)
    return PlanToggles(external_processes=processes or None, limits=PlanLimits(**limits) if limits else None)
