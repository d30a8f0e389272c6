"""The life of a plan: which state may follow which, and what an undo leaves of it."""

from itertools import product
from typing import Any

import pytest

from backstay.plans.plan_run import (
    PLAN_EDGES,
    SHOWN_BYTES,
    STEP_EDGES,
    PlanEnd,
    PlanRun,
    PlanState,
    StepRun,
    StepStatus,
    _size,
)
from backstay.task.plan import Plan
from tests.requirements import promise

PLAN = Plan.model_validate({"steps": [{"tool": "mail.send_email"}]})


@promise("plans:edges")
def test_a_plan_and_a_step_follow_exactly_the_edges():
    for before, after in product(PlanState, PlanState):
        run = PlanRun.of(PLAN).model_copy(update={"state": before})
        if after in PLAN_EDGES[before]:
            assert run.moved(after).state is after
        else:
            with pytest.raises(ValueError, match="which no edge allows"):
                run.moved(after)
    for before, after in product(StepStatus, StepStatus):
        step = StepRun(status=before)
        if after in STEP_EDGES[before]:
            assert step.moved(after).status is after
        else:
            with pytest.raises(ValueError, match="which no edge allows"):
                step.moved(after)


@promise("plans:edges")
@pytest.mark.parametrize(
    ("undone", "state", "first"),
    [
        ({}, "COMPLETED", "success"),
        ({1: "compensated"}, "COMPLETED", "rolled_back"),
        ({1: "compensated", 2: "compensated", 9: "parked"}, "ROLLBACK_COMPLETED", "rolled_back"),
        ({1: "compensated", 2: "parked"}, "ROLLBACK_FAILED", "rolled_back"),
        ({1: "kept", 2: "kept"}, "COMPLETED", "success"),
        ({1: "kept", 2: "compensated"}, "ROLLBACK_COMPLETED", "success"),
        ({1: "kept", 2: "parked"}, "ROLLBACK_FAILED", "success"),
    ],
    ids=["nothing", "some", "all", "parked", "kept", "some kept", "kept and parked"],
)
def test_an_undo_after_the_end_leaves_a_plan_in_the_state_that_its_effects_show(undone, state, first):
    steps = [StepRun(status=StepStatus.SUCCESS, effect=n, stands=True) for n in (1, 2)]
    ended = PlanEnd(plan_id="p1", state=PlanState.COMPLETED, steps=(*steps, StepRun())).after_undo(undone)
    assert (ended.state.value, ended.steps[0].status.value, ended.steps[2].status.value) == (state, first, "pending")


@promise("plans:states")
def test_a_step_that_is_replaced_leaves_the_others_as_they_were():
    run = PlanRun.of(Plan.model_validate({"steps": [{"tool": "mail.send_email"}] * 4}))
    run = run.with_step(1, StepRun(status=StepStatus.SUCCESS))
    assert [step.status.value for step in run.steps] == ["pending", "success", "pending", "pending"]


def answered(padding: int) -> dict[str, Any]:
    plan = Plan.model_validate({"steps": [{"tool": "mail.send_email", "summary": "s" * 400}] * 3})
    return PlanRun.of(plan).model_copy(update={"review": {"found": "f" * padding}}).shown()


@promise("plans:long")
def test_the_query_answers_with_as_many_steps_as_fit_to_the_byte_and_cuts_summaries_at_300():
    shown = answered(0)
    assert {len(step["summary"]) for step in shown["plan"]["steps"]} == {300}
    steps = sum(_size(step) + _size(how) for step, how in zip(shown["plan"]["steps"], shown["steps"], strict=True))
    left = SHOWN_BYTES - _size(shown | {"steps": [], "plan": shown["plan"] | {"steps": []}}) - steps
    assert (len(answered(left)["steps"]), answered(left)["next"]) == (3, None)
    assert (len(answered(left + 1)["steps"]), answered(left + 1)["next"]) == (2, 2)
