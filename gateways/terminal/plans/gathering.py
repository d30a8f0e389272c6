"""Gather what is known of the plans of a run, from the run itself while it is open and from the store."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from backstay.approvals.approval import RecordedDecision
from backstay.approvals.proposal import Proposal
from backstay.client import Run
from backstay.errors import ArgumentsInvalid, BackstayError, RunNotFound, StoreUnavailable, TaskInvalid, Unreachable
from backstay.plans.plan_run import PlanState, StepRun
from backstay.plans.story import Life, story_of
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.plan import Plan
from gateways.terminal.session import session_of, stored_run

_CHANGED = "plan.changed"


@dataclass
class Gathered:
    """Hold what is known of the plans of one run."""

    workflow_id: str
    is_open: bool = False
    pruned: bool = False
    plans: dict[str, Plan] = field(default_factory=dict)
    proposals: dict[str, Proposal] = field(default_factory=dict)
    lives: dict[str, Life] = field(default_factory=dict)
    decisions: Sequence[RecordedDecision] = ()
    states: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def stories(self) -> list[dict[str, Any]]:
        """Return the story of each plan, in the order in which they came to be."""
        told: list[dict[str, Any]] = []
        for plan_id, plan in sorted(self.plans.items(), key=lambda item: _number(item[0])):
            parent = None if plan.parent is None else self.plans.get(plan.parent)
            states = self.states.get(plan_id, [])
            story = story_of(
                plan,
                self.proposals.get(plan_id),
                self.lives[plan_id],
                decisions=self.decisions,
                parent=parent,
                states=states,
            )
            told.append(story)
        return told


async def gather(settings: Settings, workflow: str) -> Gathered:
    """Return what is known of the plans of a run; raises RunNotFound, and TaskInvalid when it has none."""
    fault: BackstayError | None = None
    try:
        async with session_of(workflow, settings) as run:
            gathered = Gathered(run.id)
            try:
                gathered.is_open = await run.is_open()
            except RunNotFound as error:
                fault = error
            known = await _from_store(settings, gathered)
            if fault is None and (gathered.is_open or not known):
                await _from_run(run, gathered)
    except Unreachable as error:
        gathered = Gathered(workflow)
        known, fault = await _from_store(settings, gathered), error
    if fault is not None and not known:
        raise fault
    if not gathered.plans:
        raise TaskInvalid(f"workflow: {one_line(gathered.workflow_id, 200)} has no plan; see `backstay show`")
    return gathered


def chosen(stories: Sequence[dict[str, Any]], plan_id: str) -> dict[str, Any]:
    """Return the story of the plan with this id, or the only one whose id begins so.

    `last` is the newest that was not left for another one.
    """
    if plan_id == "last":
        return next((story for story in reversed(stories) if story["reason"] != "not_chosen"), stories[-1])
    found = [story for story in stories if story["plan_id"] == plan_id]
    found = found or [story for story in stories if str(story["plan_id"]).startswith(plan_id)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(one_line(str(story["plan_id"]), 60) for story in found or stories)
    why = "several plans begin with" if found else "no plan"
    raise TaskInvalid(f"plan: {why} {one_line(plan_id, 60)}; the plans are: {known}")


def _number(plan_id: str) -> int:
    """Return the number of a plan that the engine has named; the one of a task comes before."""
    number = plan_id.removeprefix("p")
    return int(number) if number.isdecimal() and len(number) < 10 else 0


async def _from_store(settings: Settings, gathered: Gathered) -> bool:
    """Add what the store of this machine holds; return whether it knows the run."""
    with contextlib.suppress(StoreUnavailable):
        async with stored_run(settings, gathered.workflow_id) as (store, row):
            if row is None:
                return False
            gathered.pruned = row.pruned_at is not None
            gathered.decisions = await store.decisions.of_run(row.run)
            _add_states(gathered, await store.events.of_run(row.run))
            for kept in await store.plans.of_run(row.run):
                plan_id = kept.plan.id
                gathered.plans[plan_id], gathered.proposals[plan_id] = kept.plan, kept.proposal
                told = gathered.states.get(plan_id, [])
                if kept.ended is None:
                    now = PlanState(told[-1]["state"]) if told else kept.state
                    gathered.lives[plan_id] = Life(state=now, reason=told[-1]["reason"] if told else "")
                else:
                    gathered.lives[plan_id] = Life.model_validate(kept.ended.model_dump(exclude={"plan_id"}))
            return True
    return False


async def _from_run(run: Run, gathered: Gathered) -> None:
    """Add what the run itself says, of an open run also what the store is not told yet."""
    if not gathered.states:
        with contextlib.suppress(ArgumentsInvalid, RunNotFound):
            _add_states(gathered, [event async for event in run.stored_events()])
    _add_states(gathered, (await run.timeline()).events)
    last = await run.plan()
    named = [*gathered.plans, *gathered.states, *([] if last is None else [str(last["plan"]["id"])])]
    for plan_id in dict.fromkeys(named):
        shown = await run.plan(plan_id)
        if shown is None:
            continue
        gathered.plans.setdefault(plan_id, Plan.model_validate(shown["plan"]))
        steps = [StepRun.model_validate({k: v for k, v in step.items() if k != "idx"}) for step in shown["steps"]]
        known = {name: shown[name] for name in ("state", "reason", "review", "children")}
        gathered.lives[plan_id] = Life.model_validate(known | {"steps": steps})
    for request in await run.pending() if gathered.is_open else []:
        if request.proposal is not None and request.proposal.plan_id in gathered.plans:
            # Here are the votes so far, too; of a long plan the store has all steps.
            stored, votes = gathered.proposals.get(request.proposal.plan_id), request.proposal
            known = votes.model_copy(update={"steps": stored.steps, "more": 0}) if stored and votes.more else votes
            gathered.proposals[request.proposal.plan_id] = known


def _add_states(gathered: Gathered, events: Sequence[Event]) -> None:
    """Add the states that plans came to; of those that are known already nothing is added twice."""
    for event in events:
        if event.name != _CHANGED:
            continue
        told = gathered.states.setdefault(str(event.data["plan"]), [])
        state = {"at": event.at, "state": event.data["state"], "reason": event.data.get("reason", "")}
        if state not in told:
            told.append(state)
