"""Tell what people saw of a plan, what they decided, and what became of it; and what one plan changes in another."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

from backstay.approvals.approval import RecordedDecision
from backstay.approvals.layout import changed_lines
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.canonical import digest_of
from backstay.frozen import Frozen
from backstay.plans.plan_run import PlanState, StepRun
from backstay.shown import shown_arguments
from backstay.task.plan import USUAL_STEP_S, Plan, PlanStep

_ALL = 10_000_000
_UNTOLD = frozenset({"tool", "arguments"})
_OF_PLAN = ("title", "summary", "continue_on_failure", "allowed_side_effects", "dry_run")


class StepChange(Frozen):
    """Tell how a step of a plan differs from the plan before."""

    change: Literal["added", "removed", "changed"]
    idx: int | None = None
    """Its number in the newer plan; None when it is gone."""
    was: int | None = None
    """Its number in the older plan; None when it is new."""
    action: str
    lines: tuple[str, ...] = ()
    """What differs, value by value."""


class PlanChanges(Frozen):
    """Tell how a plan differs from another."""

    plan_id: str
    parent: str
    lines: tuple[str, ...] = ()
    """What differs in the plan beside its steps."""
    steps: tuple[StepChange, ...] = ()


class Life(Frozen):
    """Tell how far a plan came."""

    state: PlanState
    reason: str = ""
    steps: tuple[StepRun, ...] = ()
    review: dict[str, Any] | None = None
    children: tuple[str, ...] = ()


def story_of(
    plan: Plan,
    proposal: Proposal | None,
    life: Life,
    *,
    decisions: Sequence[RecordedDecision],
    parent: Plan | None,
    states: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return everything that is kept of one plan, as JSON; its arguments are shown whole.

    `proposal` is None for a plan that was never proposed, and `states` are the states it came to, with their times.
    """
    seen = {step.idx: step for step in proposal.steps} if proposal is not None else {}
    runs = life.steps or tuple(StepRun() for _ in plan.steps)
    steps = zip(plan.steps, runs, strict=True)
    shown = set() if proposal is None else {"estimated_side_effects", "estimated_cost_usd", "toggles", "parts"}
    return {
        "plan_id": plan.id,
        "version": plan.version,
        "parent": plan.parent,
        "hash": plan.hash,
        "title": plan.title,
        "author": plan.author,
        "created_at": None if plan.created_at is None else plan.created_at.isoformat(timespec="seconds"),
        "summary": plan.summary,
        "state": life.state.value,
        "reason": life.reason,
        "steps": [_step(index, step, run, seen.get(index)) for index, (step, run) in enumerate(steps)],
        **({} if proposal is None else proposal.model_dump(mode="json", include=shown)),
        "approvals": [_approval(decision) for decision in decisions if decision.args_digest == plan.hash],
        "changes": None if parent is None else changes(parent, plan).plain(),
        "children": list(life.children),
        "alternatives": [] if proposal is None else list(proposal.alternatives),
        "review": life.review,
        "states": [dict(state) for state in states],
    }


def _step(index: int, step: PlanStep, run: StepRun, seen: ProposedStep | None) -> dict[str, Any]:
    known = {} if seen is None else seen.model_dump(mode="json", exclude={"idx", "action", "arguments", "summary"})
    if seen is not None and seen.limits is None:
        del known["limits"]
    usual = {"timeout_s"} if step.seconds == USUAL_STEP_S else set[str]()
    planned = step.model_dump(mode="json", exclude={"tool", "safety"} | usual, exclude_defaults=True)
    facts = {"idx": index, "action": step.tool, "summary": step.summary, "arguments": {}} | planned
    return facts | {"safety": step.safety} | known | run.model_dump(mode="json", exclude={"stands"})


def _approval(decision: RecordedDecision) -> dict[str, Any]:
    fields = {"at", "by", "verified", "verdict", "request_id", "args_digest", "comment", "state"}
    more = {"calls", "option", "left_out", "toggles", "remember"}
    said = decision.model_dump(mode="json", include=more, exclude_defaults=True)
    return decision.model_dump(mode="json", include=fields) | said


def changes(before: Plan, after: Plan) -> PlanChanges:
    """Return what a plan changes of another: steps that are new, gone, or made otherwise."""
    old, new = ({name: getattr(plan, name) for name in _OF_PLAN} for plan in (before, after))
    found = _step_changes(before.steps, after.steps)
    return PlanChanges(plan_id=after.id, parent=before.id, lines=_differences(old, new), steps=tuple(found))


def _step_changes(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> list[StepChange]:
    """Return the changes of steps: those that stayed the same are found first, then those of the same tool."""
    found: list[StepChange] = []
    same = [[digest_of(step.model_dump(mode="json")) for step in steps] for steps in (before, after)]
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, *same, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        tools = [step.tool for step in before[i1:i2]], [step.tool for step in after[j1:j2]]
        for inner, a1, a2, b1, b2 in SequenceMatcher(None, *tools, autojunk=False).get_opcodes():
            gone, come = range(i1 + a1, i1 + a2), range(j1 + b1, j1 + b2)
            if inner == "equal":
                found += [_changed(was, before[was], idx, after[idx]) for was, idx in zip(gone, come, strict=True)]
                continue
            found += [StepChange(change="removed", was=was, action=before[was].tool) for was in gone]
            found += [_added(idx, after[idx]) for idx in come]
    return found


def _changed(was: int, before: PlanStep, idx: int, after: PlanStep) -> StepChange:
    options = _differences(_options(before), _options(after))
    lines = (*_differences(before.arguments, after.arguments), *options)
    return StepChange(change="changed", idx=idx, was=was, action=after.tool, lines=lines)


def _added(idx: int, step: PlanStep) -> StepChange:
    return StepChange(change="added", idx=idx, action=step.tool, lines=_differences({}, step.arguments))


def _options(step: PlanStep) -> dict[str, Any]:
    return step.model_dump(mode="json", exclude=set(_UNTOLD))


def _differences(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    return tuple(changed_lines(*(shown_arguments(given, _ALL).arguments for given in (before, after))))
