"""A random walk of plans through Temporal, under decisions, failures, cancellations and workers that come and go.

WALK_SEED says where it begins; `make soak` walks further.
"""

import random
import uuid

import pytest

from backstay.plans.plan_run import PLAN_EDGES, STEP_EDGES, PlanState, StepStatus
from store.opening import open_store
from tests.e2e.plans.plan_walk import (
    POLICY,
    SEED,
    Crowd,
    Stroll,
    Walked,
    call,
    profiles_of,
    random_strolls,
    toolbox_in,
)
from tests.engine import Scripts, ended, engine
from tests.requirements import promise
from tests.sizes import sized

WALKS = sized(30, 6)
STEADY = 25
"""After so many rounds at most, one worker is stopped and another one begins."""


def step(tool, key, **fields):
    arguments = {"key": key, **{name: fields.pop(name) for name in ("hold", "fail", "given") if name in fields}}
    return {"tool": f"work.{tool}", "arguments": arguments, **fields}


def directed(scripts, folder, walked):
    """Return runs that take the edges which chance takes seldom."""
    dice = random.Random(SEED)

    def plan(name, *steps, verdicts=None, task=None, **acts):
        given = {"plan": {"steps": list(steps)}, **(task or {})}
        return Stroll(name, given, dice, folder, walked, verdicts=verdicts or {}, **acts)

    failing = step("look", "free-x", fail=9)
    this = {"title": "this", "steps": [step("look", "free-this", hold="race-1", timeout_s=300)]}
    that = {"title": "that", "steps": [step("look", "free-that", hold="race-2", timeout_s=300)]}
    both = call("propose_plan", {"plan": this, "alternatives": [that]})
    chosen = {"race": ("race-1", "race-2"), "cancel": {("p1", "APPROVED"), ("p2", "APPROVED")}}
    ask = call("ask_person", {"question": "all right?"})
    made = call("propose_plan", {"plan": {"title": "made", "steps": [step("make", "stuck-completed")]}})
    return [
        plan("invalid", {"tool": "work.fly"}),
        plan("rejected", step("make", "ask-rejected"), verdicts={"plan": [{"verdict": "reject"}]}),
        plan("expired", step("make", "lapse-expired"), wait=10**6),
        plan("reviewed", step("make", "free-reviewed"), task={"profile": "reviewed-2"}),
        plan("some-kept", step("make", "free-some"), step("post", "free-kept"), failing),
        plan("stuck-failed", step("make", "stuck-failed"), failing, undo_run=True),
        # It is in flight when the run is cancelled, and is then undone.
        plan("in-flight", step("make", "free-flight", hold="in-flight"), cancel="running", release=10**6),
        plan("undone", step("make", "free-back"), undo_run=True),
        # One of them is approved while the other is still being rehearsed.
        Stroll("chosen", scripts.task(both, rehearse=True), dice, folder, walked, **chosen),
        Stroll("stuck-completed", scripts.task(made, ask), dice, folder, walked, undo=True, undo_run=True),
    ]


async def undone_after(opened, stroll):
    """Take a run back that has ended, if that is asked for, and hold its plans against what they were."""
    if not stroll.acts.get("undo_run"):
        return
    for stuck in stroll.folder.glob("*.stuck"):
        if stroll.label in stuck.name:
            stuck.unlink()
    handle = await opened.client.start_workflow(
        "UndoRun", {"workflow_id": stroll.name}, id=f"undo-{stroll.name}", task_queue=opened.settings.task_queue
    )
    await ended(handle)
    async with open_store(database_url=None, home=opened.settings.home) as store:
        kept = await store.plans.of_run(f"{stroll.name}/{stroll.result['run_id']}")
    for plan in kept:
        before = stroll.seen[plan.plan.id]
        stroll.say(f"undone: {plan.plan.id} {plan.state}")
        if plan.state.value != before["state"]:
            stroll.walked.plan(PlanState(before["state"]), plan.state)
        assert plan.ended is not None
        for earlier, now in zip(before["steps"], plan.ended.steps, strict=True):
            stroll.walked.step(StepStatus(earlier["status"]), now.status, now.error)


async def walk(strolls, opening, dice):
    """Let the runs go on side by side, round by round, while workers come and go."""
    crowd, workers = Crowd(strolls, after=undone_after), 0
    while not crowd.over:
        workers += 1
        async with opening() as opened:
            rounds = dice.randint(STEADY // 3, STEADY)
            # On a busy machine a few rounds are enough for all, so the first worker is stopped soon; but none amid a
            # race, since the call that is held in it goes on by itself before the next worker is there.
            left = rounds if workers > 1 else 4
            while not crowd.over and (left > 0 or crowd.races):
                await crowd.round(opened)
                left -= 1
    return workers


async def walked_through(temporal, folder, walks):
    """Walk so many runs beside the directed ones; return what was walked, the directed runs, and how many workers."""
    dice, scripts, walked = random.Random(SEED), Scripts(), Walked()
    for stuck in ("stuck-failed", "stuck-completed"):
        (folder / f"{stuck}.stuck").touch()
    toolbox = toolbox_in(folder)
    first = directed(scripts, folder, walked)
    others = random_strolls(walks, scripts, folder, walked)
    profiles, queue = profiles_of([*first, *others]), f"walk-{uuid.uuid4()}"

    def opening():
        values = {"policy": POLICY, "profiles": profiles, "toolbox": toolbox, "task_queue": queue, "cached": 50}
        # Longer than any race is held.
        values["request_deadline_seconds"] = 300
        return engine(temporal, folder, scripts, **values)

    workers = await walk([*first, *others], opening, dice)
    return walked, {stroll.label: stroll for stroll in first}, workers


@promise("plans:walk")
@pytest.mark.timeout(900)
@pytest.mark.thorough
async def test_every_edge_of_plans_and_steps_is_walked_through_temporal_and_no_other(temporal, tmp_path):
    walked, directly, workers = await walked_through(temporal, tmp_path, WALKS)
    assert workers > 1
    missed = {(before, after) for before, afters in PLAN_EDGES.items() for after in afters} - walked.plans
    assert not missed, sorted(missed)
    missed = {(before, after) for before, afters in STEP_EDGES.items() for after in afters} - walked.steps
    assert not missed, sorted(missed)
    # What has no undo is kept, and is no reason to call the rollback failed.
    kept = directly["some-kept"].seen["plan"]
    assert (kept["state"], kept["reason"]) == ("ROLLBACK_COMPLETED", "step_failed")
    assert [step["status"] for step in kept["steps"]] == ["rolled_back", "success", "failed"]
