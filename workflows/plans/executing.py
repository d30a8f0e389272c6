"""Carry out an approved plan: its steps in order, reads that need nothing of each other together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow

from backstay.effects.effect import DOUBTFUL
from backstay.errors import StepFailed
from backstay.plans.plan_run import PlanRun, StepReason, StepRun, StepStatus
from backstay.policies.glob import matches
from backstay.policies.policy import REPEATED
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.calls.reconcile import CallWithResult
from workflows.calls.rollback import Rollback
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import Consented
from workflows.context.run_context import RunContext
from workflows.plans.checking import fallen_steps, needs_of, written
from workflows.plans.resolving import may_be_made, refers, theirs_of
from workflows.programs.rehearsals import as_foretold
from workflows.state.state import write_key
from workflows.state.work import PlanAnswers

UNCERTAIN = frozenset({"OutcomeUnknown", "EffectConflict", DOUBTFUL})
"""After these a step may have taken effect, so it is never made again."""
NEVER_AGAIN = UNCERTAIN | {
    "OutcomeSettled",
    "Rejected",
    "Expired",
    "Denied",
    "ArgumentsInvalid",
    "ToolNotFound",
    "ToolChanged",
}
"""After these a step would fail in the same way again, or must not be made at all."""
LONGEST_PAUSE_S = 30
MOST_TOGETHER = 20
"""How many reads are made together."""


@dataclass(frozen=True)
class Hindrance:
    """Say why a step is not made."""

    reason: StepReason
    why: str
    bearable: bool = False
    """Whether the plan goes on all the same."""
    ends_group: bool = False
    """Whether what the other steps of its group did is undone."""


class Executing:
    """Make the calls of one plan."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls, plan_id: str, work: PlanAnswers) -> None:
        """Carry out a plan of the run, as far as people let it, through the run's one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self.plan_id = plan_id
        self.work = work
        run, task = self.run, context.state.task
        self.needs = needs_of(run, task.plan)
        self.fallen = fallen_steps(run, task.plan, work.answered)
        """The steps that cannot be made without those that people leave out, or that the policy denies."""

    @property
    def run(self) -> PlanRun:
        """Return the plan as it is now; while the run waits, a person may have steps undone."""
        return self.context.state.plan_run(self.plan_id)

    def _set(self, index: int, step: StepRun) -> None:
        self.context.state.keep_plan_run(self.run.with_step(index, step))

    async def carry_out(self) -> None:
        """Make all steps; raises StepFailed at the first failure that the plan cannot bear."""
        while wave := self._wave():
            await self.context.gate()
            await self.context.turn()
            if self.run.steps[wave[0]].status is StepStatus.PENDING and not await self._may_begin(wave):
                continue
            await self._take(wave)

    def _wave(self) -> list[int]:
        """Return the steps that are made next: one, or reads beside each other that need nothing of each other."""
        run = self.run
        running = [index for index, step in enumerate(run.steps) if step.status is StepStatus.RUNNING]
        if running:
            return running
        waiting = [i for i, step in enumerate(run.steps) if step.status is StepStatus.PENDING and not step.reason]
        if not waiting or not self._reads(waiting[0]):
            return waiting[:1]
        wave = waiting[:1]
        for index in waiting[1:MOST_TOGETHER]:
            same_time = run.time_of(index) == run.time_of(wave[0])
            beside = index == wave[-1] + 1 and same_time and self._reads(index)
            if not beside or set(self.needs.of[index]) & set(wave) or self._hindrance(index) is not None:
                break
            wave.append(index)
        return wave

    def _reads(self, index: int) -> bool:
        answer = self.work.answered[index]
        return isinstance(answer, ToolCall) and not answer.effectful

    def _written(self, index: int) -> dict[str, Any]:
        return written(self.run, self.context.state.task.plan).steps[index].arguments

    async def _may_begin(self, wave: Sequence[int]) -> bool:
        """Begin steps, unless the first one cannot be made; then the plan says why. Raises StepFailed."""
        first = wave[0]
        hindrance = self._hindrance(first)
        if hindrance is not None:
            step = self.run.steps[first].model_copy(update={"reason": hindrance.reason, "error": hindrance.why})
            self._set(first, step)
            if hindrance.ends_group:
                await self._undo_group(first)
            if not hindrance.bearable:
                self._refuse(first, hindrance.why)
            return False
        await self.context.count_plan_steps(len(wave))
        for index in wave:
            self._set(index, self.run.steps[index].moved(StepStatus.RUNNING, attempt=1))
        return True

    def _hindrance(self, index: int) -> "Hindrance | None":
        """Return why a step is not made, or None."""
        answer, run = self.work.answered[index], self.run
        if isinstance(answer, ToolResult):
            return Hindrance("rejected", f"{answer.error_type}: {answer.error}", bearable=True)
        if (without := self.fallen.get(index)) is not None:
            # People saw beforehand that it falls away, so it ends nothing.
            return Hindrance("dependency_failed", f"it is not made without step {without}", bearable=True)
        step = run.plan.steps[index]
        if step.group and any(self._failed(other) for other in self._group(step.group)):
            return Hindrance("dependency_failed", f"another step of {step.group} failed", bearable=True)
        for needed in self.needs.of[index]:
            if needed not in self.context.state.step_results:
                fault = f"ArgumentsInvalid: it refers to step {needed}, which gave no result"
                # A plan that goes on without a step goes on without what needs it, too.
                bearable = run.steps[needed].status is not StepStatus.SUCCESS
                return Hindrance("dependency_failed", fault, bearable=bearable, ends_group=True)
        failed = [other for other in range(index) if run.steps[other].status is StepStatus.FAILED]
        by_plan = any(not run.plan.steps[other].continue_on_failure for other in failed)
        allowed = any(matches(glob, step.tool) for glob in run.plan.allowed_side_effects)
        if by_plan and answer.effectful and not allowed:
            why = "a step failed before, and allowed_side_effects does not name this tool"
            return Hindrance("stopped", why, bearable=True)
        return None

    def _failed(self, index: int) -> bool:
        step = self.run.steps[index]
        return step.status is StepStatus.FAILED or step.reason == "dependency_failed"

    def _group(self, group: str) -> list[int]:
        return [index for index, step in enumerate(self.run.plan.steps) if step.group == group]

    async def _take(self, wave: Sequence[int]) -> None:
        """Make the calls of steps that are under way, each as often as it may be."""
        left = list(wave)
        # They were counted together, and each is a step of its own.
        last, step = wave[-1], self.context.state.usage.step
        steps = {self._whole(index).id: step - (last - index) for index in wave}
        # The verdict of people on the values holds for each attempt.
        answers = {index: await self._asked_again(index) for index in left}
        while left:
            made = await self._answers(left, [answers[index] for index in left], steps)
            for index, performed in zip(left, made, strict=True):
                self._note(index, performed)
            left = [index for index in left if self.run.steps[index].status is StepStatus.RUNNING]
            if left:
                pause = min(LONGEST_PAUSE_S, 2 ** max(self.run.steps[index].attempt - 2 for index in left))
                await workflow.sleep(timedelta(seconds=pause), summary=f"before step {left[0]} is made again")
        for index in wave:
            step = self.run.steps[index]
            if step.status is StepStatus.FAILED:
                await self._undo_group(index)
                self._refuse(index, step.error or "")

    async def _answers(
        self, wave: Sequence[int], answers: Sequence[Consented], steps: Mapping[str, int]
    ) -> list[CallWithResult]:
        seconds, usual = self.run.time_of(wave[0])
        batch = [self._whole(index) for index in wave]
        return await self.tool_calls.perform(
            Purpose.PLAN_STEP,
            batch,
            deadline_s=seconds,
            usual=usual,
            most_s=None if self.work.toggles is None else self.work.toggles.most_s,
            answered=dict(enumerate(answers)),
            steps=steps,
        )

    def _whole(self, index: int) -> ToolCall:
        answer = self.work.answered[index]
        if not isinstance(answer, ToolCall):
            raise TypeError(f"step {index} may not be made")
        return answer

    async def _asked_again(self, index: int) -> Consented:
        """Rule once more on a step with what earlier steps returned; a rule that looks at that denies or asks.

        After a rehearsal, ask about a step that is not as it was foretold.
        """
        state, call, asked = self.context.state, self._whole(index), self.run.asked_by.get(index)
        told = asked is not None and asked.rule.startswith(REPEATED)
        if self.run.rehearsal is not None:
            if state.work.batch is not None:
                # It was begun before this execution; the verdict on it was given then.
                return call
            rehearsal, results, by_model = self.run.rehearsal, state.step_results, self.run.sources is not None
            consent = self.tool_calls.consent
            of_whom: Any = {"by_model": by_model, "told": told}
            of_whom |= {} if by_model else {"theirs": theirs_of(state.task, index)}
            return await as_foretold(consent, call, index, rehearsal, results, refers=True, **of_whom)
        # The references of an earlier step may have brought just these arguments.
        repeats = call.effectful and not told and state.same_write(write_key(call)) is not None
        if state.work.batch is not None or not (repeats or refers(self._written(index))):
            return call
        by_model, consent = self.run.sources is not None, self.tool_calls.consent
        return await may_be_made(consent, call, index, state.step_results, by_model=by_model, told=told)

    def _note(self, index: int, performed: CallWithResult) -> None:
        """Keep what came of one attempt of a step."""
        step, result, effect = self.run.steps[index], performed.result, performed.effect
        more = {"effect": effect} if effect is not None else {}
        if result.success:
            if result.ref is not None:
                self.context.state.step_results[index] = result.ref
            self._set(index, step.moved(StepStatus.SUCCESS, ref=result.ref, stands=effect is not None, **more))
        elif step.attempt <= self.run.plan.steps[index].retries and _may_repeat(performed):
            self._set(index, step.model_copy(update={"attempt": step.attempt + 1}))
        else:
            stands = effect is not None and result.error_type in UNCERTAIN
            error = f"{result.error_type}: {result.error}"
            self._set(index, step.moved(StepStatus.FAILED, ref=result.ref, error=error, stands=stands, **more))

    async def _undo_group(self, index: int) -> None:
        """Undo what the other steps of a step's group did."""
        group = self.run.plan.steps[index].group
        steps = [self.run.steps[other] for other in self._group(group)] if group else []
        effects = {s.effect for s in steps if s.status is StepStatus.SUCCESS and s.effect is not None}
        if effects:
            await Rollback(self.context, by_itself=True).undo_effects(effects)

    def _refuse(self, index: int, why: str) -> None:
        if not self.run.plan.may_fail(index):
            raise StepFailed(f"step {index} ({self.run.plan.steps[index].tool}) failed: {why}")


def _may_repeat(performed: CallWithResult) -> bool:
    """Return whether it is sure that making the call again does no harm."""
    call = performed.call
    return performed.result.error_type not in NEVER_AGAIN and (not call.effectful or call.tool.idempotent)
