"""Make the plan that a person's changes of another one lead to."""

from typing import Any

from temporalio import workflow

from backstay.approvals.edits import change_lines, touched
from backstay.plans.plan_run import PlanRun
from backstay.shown import one_line
from backstay.tools.tool import ToolCall
from workflows.consent.changing import edits_of
from workflows.state.work import RequestOutcome


def child_of(run: PlanRun, plan_id: str, batch: list[ToolCall], decided: RequestOutcome) -> PlanRun:
    """Return the plan that a person's changes of a checked plan make, at the beginning of its life."""
    steps, sources, edited = list(run.plan.steps), list(run.sources or ()), dict(run.edited)
    for index, arguments in _changes(decided).items():
        names = touched(batch[index].arguments, arguments)
        steps[index] = steps[index].model_copy(update={"arguments": arguments})
        edited[index] = tuple(dict.fromkeys((*edited.get(index, ()), *names)))
        known = sources[index] if sources else None
        if known is not None:
            sources[index] = known.given_by(edits_of([name for name in names if name in arguments], decided.by))
    update: dict[str, Any] = {
        "id": plan_id,
        "parent": run.id,
        "version": run.plan.version + 1,
        "created_at": workflow.now(),
        "steps": tuple(steps),
        "hash": "",
    }
    return PlanRun.of(
        run.plan.model_copy(update=update),
        untimed=run.untimed,
        alternatives=run.alternatives,
        of_task=run.of_task,
        asked=run.asked,
        edited=edited,
        changed_by=one_line(decided.by, 200),
        sources=None if run.sources is None else tuple(sources),
    )


def said_of_changes(run: PlanRun, decided: RequestOutcome) -> dict[str, Any]:
    """Return what a person said who changed a plan, as its author is told."""
    said: dict[str, Any] = {"by": one_line(decided.by, 200)}
    said |= {"comment": one_line(decided.comment, 1000)} if decided.comment else {}
    changed = {
        f"step {index}": list(change_lines(run.plan.steps[index].arguments, arguments))
        for index, arguments in _changes(decided).items()
    }
    return said | ({"changed": changed} if changed else {})


def _changes(decided: RequestOutcome) -> dict[int, dict[str, Any]]:
    """Return the whole new arguments of the steps that a person changed."""
    return {index: said.arguments for index, said in decided.calls.items() if said.arguments is not None}
