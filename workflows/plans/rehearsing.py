"""Rehearse plans: make their reads, simulate their writes, and keep what that foretells."""

import asyncio
from typing import Any

from backstay.approvals.proposal import PlanToggles
from backstay.errors import BackstayError, StepFailed, TaskInvalid
from backstay.plans.plan_run import PlanRun, StepRun, StepStatus
from backstay.plans.rehearsal import Rehearsal, RehearsedCall
from backstay.task.plan import steps_named
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import Answered, Consented, denied
from workflows.context.run_context import RunContext
from workflows.plans.checking import fallen_steps
from workflows.plans.resolving import could_differ, ruled_late
from workflows.programs.rehearsals import MOST_REHEARSED, end_rehearsal, rehearse_call


class PlanRehearsals:
    """Rehearse the plans of one run, one after the other."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Go through the run's one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self._turn = asyncio.Lock()

    async def before_proposal(self, plan_id: str, answered: Answered, asked: frozenset[int]) -> PlanRun:
        """Rehearse a plan before people see it, where the task or the plan wants that; raises StepFailed.

        A step that a rule asks about is simulated even when it only reads: nobody has let it be made yet.
        """
        run = self.context.state.plan_run(plan_id)
        if self.context.state.task.rehearse or run.plan.dry_run:
            if len(run.steps) > MOST_REHEARSED:
                most = f"{len(run.steps)} are too many to be rehearsed, which may be {MOST_REHEARSED} at most"
                raise TaskInvalid(f"plan.steps: {most}; split the plan, or leave the rehearsal out")
            await self._rehearsed(plan_id, answered, asked)
        return self.context.state.plan_run(plan_id)

    async def dry_run(self, plan_id: str, answered: Answered, toggles: PlanToggles | None) -> None:
        """Rehearse a plan unless that is done, and end its steps as far as that made them; raises StepFailed.

        A person who approves nothing but a dry run has let no step be made that a rule asks about.
        """
        state = self.context.state
        await self._rehearsed(plan_id, answered, frozenset(state.plan_run(plan_id).asked_by), toggles)
        run = state.plan_run(plan_id)
        rehearsal = run.rehearsal or Rehearsal()
        for index, step in enumerate(run.steps):
            run = run.with_step(index, _after_dry_run(step, rehearsal, index, answered[index]))
        state.keep_plan_run(run)

    async def _rehearsed(
        self, plan_id: str, answered: Answered, asked: frozenset[int], toggles: PlanToggles | None = None
    ) -> None:
        async with self._turn:
            state = self.context.state
            known = state.plan_run(plan_id).rehearsal or Rehearsal()
            if known.done:
                return
            self._keep(plan_id, known)
            run = state.plan_run(plan_id)
            most_s = None if toggles is None else toggles.most_s
            fallen = fallen_steps(run, state.task.plan, answered)
            try:
                for index in range(len(run.steps)):
                    if index in fallen:
                        self._leave_out(plan_id, index, fallen[index])
                    else:
                        await self._step(plan_id, index, answered[index], most_s, simulated=index in asked)
            except BackstayError:
                await end_rehearsal(self.context, self._known(plan_id))
                raise
            await end_rehearsal(self.context, self._known(plan_id))
            self._keep(plan_id, self._known(plan_id).model_copy(update={"done": True}))

    def _leave_out(self, plan_id: str, index: int, without: int) -> None:
        """Keep that a step is not made, because another is left out; that ends nothing."""
        known = self._known(plan_id)
        failed = known.failed | {index: f"it is not made without step {without}"}
        self._keep(plan_id, known.model_copy(update={"failed": failed}))

    async def _step(
        self, plan_id: str, index: int, answer: Consented, most_s: float | None, *, simulated: bool
    ) -> None:
        run, rehearsal = self.context.state.plan_run(plan_id), self._known(plan_id)
        if isinstance(answer, ToolResult) or rehearsal.entry(index) is not None or index in rehearsal.failed:
            return
        needed = steps_named(index, run.plan.steps[index].arguments, answer.arguments)
        lacking = next((other for other in needed if other not in rehearsal.results), None)
        # A plan that goes on without a step goes on without what needs it, too.
        bearable = run.plan.may_fail(index) or lacking in rehearsal.failed
        if lacking is not None:
            fault = f"ArgumentsInvalid: it refers to step {lacking}, which gave no result"
            rehearsal = rehearsal.model_copy(update={"failed": rehearsal.failed | {index: fault}})
        else:
            await self.context.gate()
            simulated = simulated or answer.effectful
            rehearsal = await self._rehearsed_step(run, index, answer, rehearsal, most_s, simulated=simulated)
        self._keep(plan_id, rehearsal)
        if (fault := rehearsal.failed.get(index)) and not bearable:
            raise StepFailed(f"step {index} ({run.plan.steps[index].tool}) failed when it was rehearsed: {fault}")

    async def _rehearsed_step(  # called in one place, by what they are
        self, run: PlanRun, index: int, call: ToolCall, rehearsal: Rehearsal, most_s: float | None, *, simulated: bool
    ) -> Rehearsal:
        purpose = Purpose.SIMULATE if simulated else await self._purpose(run, index, call, rehearsal)
        if isinstance(purpose, ToolResult):
            return rehearsal.without(index, f"{purpose.error_type}: {purpose.error}")
        seconds, usual = run.time_of(index)
        known = RehearsedCall(idx=index, name=f"{run.id} {run.plan.hash}")
        given: dict[str, Any] = {"deadline_s": seconds, "usual": usual, "most_s": most_s}
        rehearsal, _ = await rehearse_call(self.tool_calls, rehearsal, call, known, purpose, refers=True, **given)
        return rehearsal

    async def _purpose(self, run: PlanRun, index: int, call: ToolCall, rehearsal: Rehearsal) -> Purpose | ToolResult:
        """Return how a read is rehearsed: for real only if no rule asks or denies it with what its references bring."""
        needed = steps_named(index, run.plan.steps[index].arguments, call.arguments)
        if not needed or not could_differ(self.context.state.opened.policy, call):
            return Purpose.PLAN_STEP
        if set(needed) & set(rehearsal.simulated):
            return Purpose.SIMULATE
        late = await ruled_late(
            self.tool_calls.consent, call, index, rehearsal.results, by_model=run.sources is not None
        )
        if isinstance(late, ToolResult):
            return late
        if late.now.verdict == "deny":
            return denied(late.now)
        return Purpose.PLAN_STEP if late.now.verdict == "allow" else Purpose.SIMULATE

    def _known(self, plan_id: str) -> Rehearsal:
        return self.context.state.plan_run(plan_id).rehearsal or Rehearsal()

    def _keep(self, plan_id: str, rehearsal: Rehearsal) -> None:
        state = self.context.state
        state.keep_plan_run(state.plan_run(plan_id).model_copy(update={"rehearsal": rehearsal}))


def _after_dry_run(step: StepRun, rehearsal: Rehearsal, index: int, answer: Consented) -> StepRun:
    """Return a step as a dry run leaves it: reads that were made have ended, and nothing else was tried."""
    entry, fault = rehearsal.entry(index), rehearsal.failed.get(index)
    if isinstance(answer, ToolResult):
        return step.model_copy(update={"reason": "rejected", "error": f"{answer.error_type}: {answer.error}"})
    if entry is None:
        return step.model_copy(update={"reason": "dependency_failed", "error": fault})
    if entry.simulated:
        return step.model_copy(update={"reason": "dry_run", "error": fault})
    running = step.moved(StepStatus.RUNNING, attempt=1)
    if fault:
        return running.moved(StepStatus.FAILED, error=fault)
    return running.moved(StepStatus.SUCCESS, ref=rehearsal.results.get(index))
