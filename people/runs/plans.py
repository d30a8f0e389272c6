"""Tell the plans of a run: what was proposed, how far each step came, and what was decided."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.plans.plan_run import PlanState, StepRun
from backstay.plans.review import Review
from backstay.plans.story import Life, story_of
from backstay.shown import one_line, shown_arguments
from backstay.task.plan import Plan
from people.runs.looking import PLAN_CHANGED, RunView
from people.runs.words import PLAN_STEPS, PLANS, tone_of
from store.runs.plans import KeptPlan

_SHOWN = 2000


class KnownPlan(NamedTuple):
    """Hold what is known of one plan of a run."""

    plan: Plan
    proposal: Proposal | None
    """None where the store at hand does not have it."""
    life: Life
    states: Sequence[Mapping[str, Any]]
    """The states it came to, with their times."""


def known_plans(seen: RunView) -> list[KnownPlan]:
    """Return every plan of a run, in the order in which they came to be."""
    kept = {plan.plan.id: plan for plan in seen.kept_plans}
    states, votes = _states_of(seen), _votes(seen)
    told: list[KnownPlan] = []
    for name in dict.fromkeys([*kept, *seen.plans]):
        proposal = kept[name].proposal if name in kept else None
        if (voted := votes.get(name)) is not None:
            # Of a long plan the store has all steps, and the request has the votes so far.
            voted = voted.model_copy(update={"steps": proposal.steps, "more": 0}) if proposal and voted.more else voted
            proposal = voted
        # Only the store knows what was undone after the end of a run.
        if name in seen.plans and (name not in kept or kept[name].ended is None):
            plan, life = _as_the_run_says(seen.plans[name])
            plan = kept[name].plan if name in kept else plan
        else:
            plan, life = kept[name].plan, _as_stored(kept[name], states.get(name, []))
        told.append(KnownPlan(plan, proposal, life, states.get(name, [])))
    return sorted(told, key=lambda known: _number(known.plan.id))


def stories_of(seen: RunView) -> list[dict[str, Any]]:
    """Return the whole story of every plan of a run, in the order in which they came to be."""
    known = known_plans(seen)
    plans = {plan.plan.id: plan.plan for plan in known}
    return [
        story_of(
            plan,
            proposal,
            life,
            decisions=seen.decisions,
            parent=None if plan.parent is None else plans.get(plan.parent),
            states=states,
        )
        for plan, proposal, life, states in known
    ]


def plans_of(seen: RunView) -> list[dict[str, Any]]:
    """Return every plan of a run as its page shows it, the newest first."""
    return [_plan(known.plan, known.proposal, known.life) for known in known_plans(seen)][::-1]


def _as_the_run_says(shown: dict[str, Any]) -> tuple[Plan, Life]:
    steps = [StepRun.model_validate({k: v for k, v in step.items() if k != "idx"}) for step in shown["steps"]]
    known = {name: shown[name] for name in ("state", "reason", "review", "children")}
    return Plan.model_validate(shown["plan"]), Life.model_validate(known | {"steps": steps})


def _as_stored(kept: KeptPlan, states: Sequence[Mapping[str, Any]]) -> Life:
    if kept.ended is not None:
        return Life.model_validate(kept.ended.model_dump(exclude={"plan_id"}))
    if not states:
        return Life(state=kept.state)
    return Life(state=PlanState(states[-1]["state"]), reason=states[-1]["reason"])


def _states_of(seen: RunView) -> dict[str, list[dict[str, Any]]]:
    """Return by plan the states that it came to, as the events tell them."""
    told: dict[str, list[dict[str, Any]]] = {}
    for event in sorted(seen.events, key=lambda event: event.n):
        if event.name == PLAN_CHANGED:
            state = {"at": event.at, "state": event.data["state"], "reason": event.data.get("reason", "")}
            told.setdefault(str(event.data["plan"]), []).append(state)
    return told


def _votes(seen: RunView) -> dict[str, Proposal]:
    """Return by plan what is asked about it now."""
    proposals = [request.proposal for request in seen.pending if request.proposal is not None]
    return {proposal.plan_id: proposal for proposal in proposals}


def _number(plan_id: str) -> int:
    """Return the number of a plan that the engine has named; the one of a task comes before."""
    number = plan_id.removeprefix("p")
    return int(number) if number.isdecimal() and len(number) < 10 else 0


def _plan(plan: Plan, proposal: Proposal | None, life: Life) -> dict[str, Any]:
    proposed = {step.idx: step for step in proposal.steps} if proposal is not None else {}
    steps = life.steps or tuple(StepRun() for _ in plan.steps)
    return {
        "id": plan.id,
        "title": plan.title or "Untitled plan",
        "version": plan.version,
        "parent": plan.parent,
        "summary": plan.summary,
        "author": plan.author,
        "state": PLANS.get(life.state, life.state),
        "tone": tone_of(life.state),
        "reason": life.reason.replace("_", " "),
        "review": None if life.review is None else Review.model_validate(life.review),
        "steps": [_step(index, plan, step, proposed.get(index)) for index, step in enumerate(steps)],
        "done": sum(step.status.value in {"success", "rolled_back"} for step in steps),
        "alternatives": [] if proposal is None else list(proposal.alternatives),
    }


def _step(index: int, plan: Plan, step: StepRun, proposed: ProposedStep | None) -> dict[str, Any]:
    planned = plan.steps[index]
    arguments = shown_arguments(planned.arguments, _SHOWN).arguments
    return {
        "idx": index,
        "tool": planned.tool,
        "summary": planned.summary,
        "arguments": [line for name, value in arguments.items() for line in argument_lines(name, value)],
        "status": PLAN_STEPS.get(step.status.value, step.status.value),
        "tone": tone_of(step.status.value),
        "reason": step.reason.replace("_", " "),
        "attempt": step.attempt,
        "error": one_line(step.error or "", 400),
        "ref": step.ref,
        "undone": step.undone,
        "undo_how": None if proposed is None else proposed.undo_how,
        "safety": "" if proposed is None else proposed.safety.value.replace("_", " "),
    }
