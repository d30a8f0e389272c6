"""Put the plans of a run into the form in which its page shows them: what was proposed, and how far each step came."""

from collections.abc import Sequence
from typing import Any

from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.plans.plan_run import StepRun
from backstay.plans.review import Review
from backstay.shown import one_line, shown_arguments
from backstay.task.plan import Plan
from people.runs.looking import RunView
from people.runs.words import tone_of

_SHOWN = 2000
_CHANGED = "plan.changed"
_STATES = {
    "DRAFT": "draft",
    "PROPOSED": "proposed",
    "APPROVED": "approved",
    "EXECUTING": "under way",
    "REVIEWING": "being reviewed",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "ROLLBACK_COMPLETED": "taken back",
    "ROLLBACK_FAILED": "not wholly taken back",
}
_STATUS = {
    "pending": "to do",
    "running": "under way",
    "success": "done",
    "failed": "failed",
    "rolled_back": "taken back",
}
_STATUS_TONES = {"running": "live", "success": "good", "failed": "bad"}


def plans_of(seen: RunView) -> list[dict[str, Any]]:
    """Return every plan of a run, the newest first."""
    kept = {plan.plan.id: plan for plan in seen.kept_plans}
    names = dict.fromkeys([*kept, *seen.plans])
    told: list[dict[str, Any]] = []
    for name in names:
        shown = seen.plans.get(name)
        if shown is not None:
            plan = kept[name].plan if name in kept else Plan.model_validate(shown["plan"])
            life = {"state": shown["state"], "reason": shown["reason"], "review": shown["review"]}
            steps = [StepRun.model_validate({k: v for k, v in step.items() if k != "idx"}) for step in shown["steps"]]
        else:
            plan, ended = kept[name].plan, kept[name].ended
            life = {"state": kept[name].state.value, "reason": "", "review": None} | _last_change(seen, name)
            steps = [StepRun() for _ in plan.steps]
            if ended is not None:
                life = {"state": ended.state.value, "reason": ended.reason, "review": ended.review}
                steps = list(ended.steps)
        told.append(_plan(plan, kept[name].proposal if name in kept else None, steps, life))
    return told[::-1]


def _last_change(seen: RunView, plan_id: str) -> dict[str, Any]:
    """Return the last state that the events tell of a plan."""
    told = [event.data for event in seen.events if event.name == _CHANGED and event.data.get("plan") == plan_id]
    return {"state": told[-1]["state"], "reason": told[-1].get("reason", "")} if told else {}


def _plan(plan: Plan, proposal: Proposal | None, steps: Sequence[StepRun], life: dict[str, Any]) -> dict[str, Any]:
    proposed = {step.idx: step for step in proposal.steps} if proposal is not None else {}
    rows = [_step(index, plan, step, proposed.get(index)) for index, step in enumerate(steps)]
    return {
        "id": plan.id,
        "title": plan.title or "Untitled plan",
        "version": plan.version,
        "parent": plan.parent,
        "summary": plan.summary,
        "author": plan.author,
        "state": _STATES.get(life["state"], life["state"]),
        "tone": tone_of(life["state"]),
        "reason": life["reason"].replace("_", " "),
        "review": None if life["review"] is None else Review.model_validate(life["review"]),
        "steps": rows,
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
        "status": _STATUS.get(step.status.value, step.status.value),
        "tone": _STATUS_TONES.get(step.status.value, "quiet"),
        "reason": step.reason.replace("_", " "),
        "attempt": step.attempt,
        "error": one_line(step.error or "", 400),
        "ref": step.ref,
        "undone": step.undone,
        "undo_how": None if proposed is None else proposed.undo_how,
        "safety": "" if proposed is None else proposed.safety.value.replace("_", " "),
    }
