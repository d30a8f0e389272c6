"""Perform an explicit plan: its steps in order through the one path, all its writes asked about at once."""

from typing import Any

from backstay.approvals.approval import RequestKind
from backstay.errors import ArgumentsInvalid, StepFailed, TaskInvalid, ToolNotFound
from backstay.task.decision import Finish
from backstay.task.plan import Plan, PlanStep, references_in, resolve
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.consent import Consented, refused
from workflows.run_context import RunContext
from workflows.tool_calls import ToolCalls
from workflows.work import PlanWork


class PlanSteps:
    """Carry out one plan."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Work at the run's context, through its one way to the world."""
        self.context = context
        self.tool_calls = tool_calls

    async def run(self, plan: Plan) -> Finish:
        """Perform all steps; raises StepFailed at the first that fails without `continue_on_failure`.

        The outputs hold, per step, its tool, success, and the ref of what it returned.
        """
        state = self.context.state
        work = state.work.plan or await self._answered(plan)
        for index in range(state.position, len(plan.steps)):
            step = plan.steps[index]
            state.work.plan = work
            await self.context.gate()
            await self.context.turn()
            await self.context.count_step()
            answer = self._with_results(index, step, work.answered[index])
            result = await self._performed(index, step, answer)
            work = work.model_copy(update={"outputs": (*work.outputs, self._noted(index, step, result))})
            state.position, state.work.counted = index + 1, False
        outputs = list(work.outputs)
        done = sum(1 for output in outputs if output["success"])
        return Finish(summary=f"{done} of {len(plan.steps)} steps of the plan done", outputs={"steps": outputs})

    async def _answered(self, plan: Plan) -> PlanWork:
        """Have all steps checked and ruled on; raises StepFailed when one may not run."""
        batch = [await self._checked(index, step) for index, step in enumerate(plan.steps)]
        answered = await self.tool_calls.consent.obtain(batch, Purpose.PLAN_STEP, kind=RequestKind.PLAN)
        self.context.forget_agreed()
        for index, step in enumerate(plan.steps):
            # A step that may not run ends the plan before it begins; otherwise earlier steps would have to be undone.
            if isinstance(answer := answered[index], ToolResult):
                self._refuse_failure(index, step, answer)
        return PlanWork(answered=answered)

    async def _performed(self, index: int, step: PlanStep, answer: Consented) -> ToolResult:
        if isinstance(answer, ToolResult):
            return answer
        (performed,) = await self.tool_calls.perform(
            Purpose.PLAN_STEP, [answer], deadline_s=step.timeout_s, answered={0: answer}
        )
        return performed.result

    def _noted(self, index: int, step: PlanStep, result: ToolResult) -> dict[str, Any]:
        if result.ref is not None and result.success:
            self.context.state.step_results[index] = result.ref
        self._refuse_failure(index, step, result)
        return {
            "tool": step.tool,
            "success": result.success,
            "ref": result.ref,
            "error": None if result.success else result.error,
        }

    def _refuse_failure(self, index: int, step: PlanStep, result: ToolResult) -> None:
        if not result.success and not step.continue_on_failure:
            raise StepFailed(f"step {index} ({step.tool}) failed: {result.error_type}: {result.error}")

    def _with_results(self, index: int, step: PlanStep, answer: Consented) -> Consented:
        """Return the call, or why it cannot be made: it refers to a step that gave no result."""
        if isinstance(answer, ToolResult):
            return answer
        # A text so long that it is stored apart shows its references only in the plan itself.
        written = [path for path in references_in(step.arguments) if not path.startswith("input.")]
        for path in (*written, *references_in(answer.arguments)):
            try:
                number = _step_named(index, path)
            except ArgumentsInvalid as error:
                return refused(error)
            if number not in self.context.state.step_results:
                return refused(ArgumentsInvalid(f"${{{path}}} refers to step {number}, which gave no result"))
        return answer

    async def _checked(self, index: int, step: PlanStep) -> ToolCall:
        """Resolve references to the input, validate what is known, and find the tool's facts."""
        arguments = resolve(step.arguments, {"input": self.context.state.task.input})
        written = references_in(step.arguments)
        for path in (pending := references_in(arguments)):
            if path not in written:
                # Who fills in the input may not reach for what other steps returned.
                raise ArgumentsInvalid(f"plan.steps.{index}: the input holds ${{{path}}}; only the plan may refer")
            _step_named(index, path)
        checked = await self.context.check_call(
            step.tool, arguments, resolved=not pending, summary=f"check step {index}: {step.tool}"
        )
        if checked.tool is None or checked.error is not None:
            kind = ToolNotFound if checked.error_type == "ToolNotFound" else ArgumentsInvalid
            raise kind(f"plan.steps.{index}: {checked.error or step.tool}")
        tool = checked.tool
        if step.safety is not None and step.safety.level > tool.safety.level:
            tool = tool.model_copy(update={"safety": step.safety})
        if step.transactional and tool.undo is None:
            raise TaskInvalid(
                f"plan.steps.{index}.transactional: {step.tool} cannot be undone; declare its compensation"
            )
        return ToolCall(id=f"s{index}", tool=tool, arguments=checked.arguments, reason=step.summary)


def _step_named(index: int, path: str) -> int:
    """Return the number of the step a reference names; raises ArgumentsInvalid when it names none before this one."""
    parts = path.split(".")
    if (
        parts[0] != "steps"
        or len(parts) < 3
        or parts[2] != "result"
        or not (parts[1].isdecimal() and len(parts[1]) < 10)
    ):
        raise ArgumentsInvalid(
            f"plan.steps.{index}: ${{{path}}} is not a reference; write ${{input.x}} or ${{steps.0.result.x}}"
        )
    if int(parts[1]) >= index:
        raise ArgumentsInvalid(f"plan.steps.{index}: ${{{path}}} refers to a step that has not run by then")
    return int(parts[1])
