"""The life of a plan: which state may follow which, and what an undo leaves of it."""

from itertools import product

import pytest

from backstay.plans.plan_run import PLAN_EDGES, STEP_EDGES, PlanEnd, PlanRun, PlanState, StepRun, StepStatus
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
