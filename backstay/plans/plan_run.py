"""The life of one plan: the states of the plan and of its steps, and the edges between them."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from backstay.approvals.forecast import shown_forecast
from backstay.canonical import canonical
from backstay.frozen import Frozen
from backstay.plans.rehearsal import Rehearsal
from backstay.policies.ruling import Ruling
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line, shown_arguments
from backstay.task.plan import Plan


class PlanState(StrEnum):
    """Name where a plan stands."""

    DRAFT = "DRAFT"
    PROPOSED = "PROPOSED"
    APPROVED = "APPROVED"
    EXECUTING = "EXECUTING"
    REVIEWING = "REVIEWING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    ROLLBACK_COMPLETED = "ROLLBACK_COMPLETED"
    ROLLBACK_FAILED = "ROLLBACK_FAILED"


class StepStatus(StrEnum):
    """Name where a step of a plan stands."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    ROLLED_BACK = "rolled_back"


PlanReason = Literal[
    "",
    "invalid",
    "rejected",
    "expired",
    "not_chosen",
    "superseded",
    "stale",
    "cancelled",
    "step_failed",
    "review_failed",
]
"""Why a plan is FAILED."""
StepReason = Literal["", "rejected", "dependency_failed", "stopped", "dry_run"]
"""Why a step that never ran stays pending."""

PLAN_EDGES: Mapping[PlanState, frozenset[PlanState]] = {
    PlanState.DRAFT: frozenset({PlanState.PROPOSED, PlanState.FAILED}),
    PlanState.PROPOSED: frozenset({PlanState.APPROVED, PlanState.FAILED}),
    PlanState.APPROVED: frozenset({PlanState.EXECUTING, PlanState.FAILED}),
    PlanState.EXECUTING: frozenset({PlanState.REVIEWING, PlanState.FAILED}),
    PlanState.REVIEWING: frozenset({PlanState.COMPLETED, PlanState.FAILED}),
    PlanState.COMPLETED: frozenset({PlanState.ROLLBACK_COMPLETED, PlanState.ROLLBACK_FAILED}),
    PlanState.FAILED: frozenset({PlanState.ROLLBACK_COMPLETED, PlanState.ROLLBACK_FAILED}),
    PlanState.ROLLBACK_COMPLETED: frozenset(),
    PlanState.ROLLBACK_FAILED: frozenset({PlanState.ROLLBACK_COMPLETED}),
}
STEP_EDGES: Mapping[StepStatus, frozenset[StepStatus]] = {
    StepStatus.PENDING: frozenset({StepStatus.RUNNING}),
    StepStatus.RUNNING: frozenset({StepStatus.SUCCESS, StepStatus.FAILED}),
    StepStatus.SUCCESS: frozenset({StepStatus.ROLLED_BACK}),
    StepStatus.FAILED: frozenset({StepStatus.ROLLED_BACK}),
    StepStatus.ROLLED_BACK: frozenset(),
}
ENDED = frozenset({PlanState.COMPLETED, PlanState.FAILED, PlanState.ROLLBACK_COMPLETED, PlanState.ROLLBACK_FAILED})
"""From here on a plan does nothing any more; it can only be undone."""


SHOWN_CHARACTERS = 40_000
"""How much of the arguments of a plan one answer holds; every query answer must stay under 128 KiB."""
LEAST_SHOWN = 200
SHOWN_BYTES = 120_000
"""How many bytes one answer takes; the rest of a longer plan is asked for by its offset."""


class StepRun(Frozen):
    """Tell how far one step came."""

    status: StepStatus = StepStatus.PENDING
    reason: StepReason = ""
    attempt: int = 0
    """How often it was made."""
    ref: str | None = None
    """The stored result."""
    error: str | None = None
    effect: int | None = None
    """The number of the effect of the last attempt; None for a read."""
    stands: bool = False
    """Whether it may have changed something."""
    undone: Literal["", "compensated", "kept", "parked"] = ""
    """What became of the effect when it was to be undone."""

    def moved(self, status: StepStatus, **more: Any) -> "StepRun":
        """Return the step in another state; raises ValueError where no edge leads there."""
        if status not in STEP_EDGES[self.status]:
            raise ValueError(f"a step goes from {self.status} to {status}, which no edge allows")
        return self.model_copy(update={"status": status, **more})

    def after_undo(self, undone: str) -> "StepRun":
        """Return the step after its effect was to be undone."""
        step = self.model_copy(update={"undone": undone})
        rolls_back = undone == "compensated" and StepStatus.ROLLED_BACK in STEP_EDGES[step.status]
        return step.moved(StepStatus.ROLLED_BACK) if rolls_back else step


def after_rollback(state: PlanState, steps: Sequence[StepRun]) -> PlanState:
    """Return the state of a plan after effects of runs were to be undone: all of its own, some, or none.

    A plan of which effects stand that nobody wanted undone stays as it is, and so does one of which none could be.
    Effects that have no undo are kept, which is not a failure: people knew it when they approved them.
    """
    touched = {step.undone for step in steps if step.undone}
    if not touched & {"compensated", "parked"} or state not in ENDED or state is PlanState.ROLLBACK_COMPLETED:
        return state
    if "parked" in touched:
        return PlanState.ROLLBACK_FAILED
    left = any(step.effect is not None and not step.undone and step.stands for step in steps)
    return state if left else PlanState.ROLLBACK_COMPLETED


class PlanEnd(Frozen):
    """Tell what became of one plan, without the plan itself."""

    plan_id: str
    state: PlanState
    reason: PlanReason = ""
    steps: tuple[StepRun, ...]
    review: dict[str, Any] | None = None
    children: tuple[str, ...] = ()

    def after_undo(self, undone: Mapping[int, str]) -> "PlanEnd":
        """Return it as it is after effects, by number, were to be undone when the run had ended."""
        steps = tuple(
            step.after_undo(undone[step.effect]) if step.effect is not None and step.effect in undone else step
            for step in self.steps
        )
        return self.model_copy(update={"steps": steps, "state": after_rollback(self.state, steps)})


class AskedSteps(Frozen):
    """Hold the steps of a plan that people are asked about by one ruling."""

    ruling: Ruling
    steps: tuple[int, ...]


class PlanRun(Frozen):
    """Hold one plan of a run and how far it came."""

    plan: Plan
    """As it was checked, so that its hash says what people approve."""
    state: PlanState = PlanState.DRAFT
    reason: PlanReason = ""
    steps: tuple[StepRun, ...]
    review: dict[str, Any] | None = None
    rehearsal: Rehearsal | None = None
    """How far it was rehearsed; None for a plan that is not."""
    untimed: tuple[int, ...] = ()
    """The steps whose time is the usual one since nobody chose it; a tool's own time stands against it."""
    children: tuple[str, ...] = ()
    """The plans that amend or correct this one."""
    alternatives: tuple[str, ...] = ()
    """The plans that were proposed beside this one."""
    sources: tuple[ArgumentSources | None, ...] | None = None
    """Where the arguments of each step come from, for a plan of a model; None for a plan of the task."""
    of_task: bool = False
    """Whether the task gave it, and no model."""
    asked: tuple[AskedSteps, ...] = ()
    """Its steps that people are asked about, or were before they changed a plan into this one."""
    edited: dict[int, tuple[str, ...]] = Field(default_factory=dict)
    """By step: the arguments that people changed since its author wrote it."""
    changed_by: str = Field(default="", exclude_if=lambda who: not who)
    """Who changed the plan before it into this one; empty where its author wrote it."""

    @classmethod
    def of(cls, plan: Plan, **more: Any) -> "PlanRun":
        """Return a plan at the beginning of its life."""
        return cls(plan=plan, steps=tuple(StepRun() for _ in plan.steps), **more)

    def time_of(self, index: int) -> tuple[float, bool]:
        """Return how long the call of a step may take, and whether that is only usual."""
        return self.plan.steps[index].seconds, index in self.untimed

    @property
    def asked_by(self) -> dict[int, Ruling]:
        """Return by step the ruling by which people are asked, or were."""
        return {index: asked.ruling for asked in self.asked for index in asked.steps}

    @property
    def id(self) -> str:
        """Return the plan's id."""
        return self.plan.id

    @property
    def name(self) -> str:
        """Return what people call it: a run has one plan of its task, and any number of a model's."""
        return "the plan" if self.of_task else f"plan {one_line(self.id, 100)}"

    @property
    def ended(self) -> bool:
        """Return whether nothing of it is to be done any more."""
        return self.state in ENDED

    @property
    def begun(self) -> bool:
        """Return whether it was approved, whatever became of it then."""
        before = {PlanState.DRAFT, PlanState.PROPOSED}
        never: set[PlanReason] = {"invalid", "rejected", "expired", "not_chosen", "superseded", "cancelled"}
        return self.state not in before and not (self.state is PlanState.FAILED and self.reason in never)

    def moved(self, state: PlanState, reason: PlanReason = "") -> "PlanRun":
        """Return the plan in another state; raises ValueError where no edge leads there."""
        if state not in PLAN_EDGES[self.state]:
            raise ValueError(f"plan {self.id} goes from {self.state} to {state}, which no edge allows")
        return self.model_copy(update={"state": state, "reason": reason or self.reason})

    def with_step(self, index: int, step: StepRun) -> "PlanRun":
        """Return the plan with one step replaced."""
        return self.model_copy(update={"steps": (*self.steps[:index], step, *self.steps[index + 1 :])})

    def stopped(self, reason: StepReason = "stopped") -> "PlanRun":
        """Return the plan with the reason at each step that never ran and has none yet."""
        pending = StepStatus.PENDING
        update = {"reason": reason}
        steps = (s.model_copy(update=update) if s.status is pending and not s.reason else s for s in self.steps)
        return self.model_copy(update={"steps": tuple(steps)})

    def after_undo(self, effect: int, undone: str) -> "PlanRun":
        """Return the plan after an effect was to be undone, which may be none of its own."""
        index = next((index for index, step in enumerate(self.steps) if step.effect == effect), None)
        if index is None:
            return self
        return self.with_step(index, self.steps[index].after_undo(undone))

    def after_rollback(self) -> "PlanRun":
        """Return the plan in the state that a rollback left it in."""
        state = after_rollback(self.state, self.steps)
        return self if state is self.state else self.moved(state)

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """Return what each step came to, as results of runs report it."""
        return [
            {
                "idx": index,
                "tool": self.plan.steps[index].tool,
                "status": step.status.value,
                # A step that was undone did succeed before.
                "success": step.error is None and step.status in {StepStatus.SUCCESS, StepStatus.ROLLED_BACK},
                "data": None,
                "ref": step.ref,
                "error": step.error,
                # Why it never ran.
                "reason": step.reason or None,
            }
            for index, step in enumerate(self.steps)
        ]

    def shown(self, offset: int = 0) -> dict[str, Any]:
        """Return the plan as the query `plan` answers it, with its steps from `offset` on as far as they fit.

        Long arguments are cut, and of very many none is shown; `next` says where the rest of the steps begins.
        """
        plan = self.plan.model_copy(update={"state": self.state.value}).model_dump(mode="json")
        planned, plan["steps"] = plan["steps"], []
        plan |= {name: _short(plan[name], 1000) for name in ("title", "author", "summary")}
        plan["metadata"] = shown_arguments(plan["metadata"], 2000).arguments
        shown: dict[str, Any] = {
            "plan": plan,
            "state": self.state.value,
            "reason": self.reason,
            "hash": self.plan.hash,
            "steps": [],
            "next": None,
            "review": self.review,
            "children": list(self.children),
            "alternatives": list(self.alternatives),
            **({} if self.rehearsal is None else {"forecast": self.foretold(SHOWN_CHARACTERS // 2)}),
        }
        left = SHOWN_BYTES - _size(shown)
        for index in range(max(0, offset), len(self.steps)):
            step, how = self._step(planned[index], index)
            left -= _size(step) + _size(how)
            if left < 0 and shown["steps"]:
                shown["next"] = index
                break
            plan["steps"].append(step)
            shown["steps"].append(how)
        return shown

    def _step(self, planned: dict[str, Any], index: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a step as it was planned, as far as that is shown, and how far it came."""
        most = SHOWN_CHARACTERS // len(self.steps)
        given = shown_arguments(planned["arguments"], most).arguments if most >= LEAST_SHOWN else {}
        known = {"status", "reason", "attempt", "ref", "error"}
        how = {"idx": index, **self.steps[index].model_dump(mode="json", include=known)}
        return {**planned, "arguments": given, "summary": _short(planned["summary"], 300)}, how

    def foretold(self, most: int) -> list[dict[str, Any]]:
        """Return what its rehearsal foretells, with at most about as many characters of arguments as given."""
        forecast = () if self.rehearsal is None else self.rehearsal.forecast
        return [entry.plain() for entry in shown_forecast(forecast, most)]

    @property
    def end(self) -> PlanEnd:
        """Return what became of it."""
        return PlanEnd(
            plan_id=self.id,
            state=self.state,
            reason=self.reason,
            steps=self.steps,
            review=self.review,
            children=self.children,
        )

    @property
    def done(self) -> int:
        """Return how many steps succeeded."""
        return sum(step.status is StepStatus.SUCCESS for step in self.steps)


def current_plan(plans: Sequence[PlanRun]) -> PlanRun | None:
    """Return the plan that a run is about: the last one, or the one that people chose instead of it."""
    if not plans:
        return None
    last = plans[-1]
    beside = [run for run in plans if run.id in last.alternatives and run.begun]
    return beside[-1] if beside and not last.begun else last


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else one_line(text, most)


def _size(value: Any) -> int:
    return len(canonical(value).encode("utf-8", "replace"))
