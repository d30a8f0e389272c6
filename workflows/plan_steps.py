"""Perform an explicit plan: its steps in order through the one path, all its writes asked about at once."""

from typing import Any

from backstay.approvals.approval import RequestKind
from backstay.errors import ArgumentsInvalid, StepFailed, TaskInvalid, ToolNotFound
from backstay.provenance.source import Parts, Source, Sources, leaves
from backstay.task.decision import Finish
from backstay.task.plan import Plan, PlanStep, references_in, resolve
from backstay.task.task import Task
from backstay.tools.stages import Purpose
from backstay.tools.tool import Tool, ToolCall, ToolResult
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
        self._tools: list[Tool] = []
        """The tools of the steps that are checked."""

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
            state.work.plan = work
            self._refuse_failure(index, step, result)
            state.position, state.work.counted = index + 1, False
        outputs = list(work.outputs)
        done = sum(1 for output in outputs if output["success"])
        return Finish(summary=f"{done} of {len(plan.steps)} steps of the plan done", outputs={"steps": outputs})

    async def _answered(self, plan: Plan) -> PlanWork:
        """Have all steps checked and ruled on; raises StepFailed when one may not run."""
        batch: list[ToolCall] = []
        for index, step in enumerate(plan.steps):
            batch.append(await self._checked(index, step))
            self._tools.append(batch[-1].tool)
        answered = await self.tool_calls.consent.obtain(batch, Purpose.PLAN_STEP, kind=RequestKind.PLAN)
        self.context.forget_agreed()
        for index, step in enumerate(plan.steps):
            # A step that may not run ends the plan before it begins; otherwise earlier steps would have to be undone.
            if isinstance(answer := answered[index], ToolResult):
                self._refuse_failure(index, step, answer)
        return PlanWork(answered=answered)

    async def _performed(self, index: int, step: PlanStep, answer: Consented) -> ToolResult:
        if isinstance(answer, ToolCall):
            answer = await self._asked_again(index, answer)
        if isinstance(answer, ToolResult):
            return answer
        (performed,) = await self.tool_calls.perform(
            Purpose.PLAN_STEP, [answer], deadline_s=step.timeout_s, answered={0: answer}
        )
        return performed.result

    async def _asked_again(self, index: int, call: ToolCall) -> Consented:
        """Ask once more about a step when what earlier steps returned says where it goes, and others wrote that."""
        state = self.context.state
        # A text so long that it is stored apart shows its references only in the plan itself.
        written = references_in(_written(state.task, index))
        refers = any(path.startswith("steps.") for path in written)
        if not (refers and call.effectful and state.opened.policy.looks_at_sources):
            return call
        checked = await self.context.check_call(
            call.tool.name,
            call.arguments,
            resolved=True,
            results=state.step_results,
            summary=f"look where step {index} goes: {call.tool.name}",
        )
        if checked.error is not None:
            return call
        resolved = call.model_copy(update={"sources": checked.sources})
        before, now = self.tool_calls.consent.ruling(call), self.tool_calls.consent.ruling(resolved)
        if now.verdict == before.verdict and now.rule == before.rule:
            return resolved
        return (await self.tool_calls.consent.obtain([resolved], Purpose.PLAN_STEP))[0]

    def _noted(self, index: int, step: PlanStep, result: ToolResult) -> dict[str, Any]:
        if result.ref is not None and result.success:
            self.context.state.step_results[index] = result.ref
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
        call = ToolCall(id=f"s{index}", tool=tool, arguments=checked.arguments, reason=step.summary)
        if (call.effectful and self.context.state.opened.policy.wants_sources) or tool.egress:
            call = call.model_copy(update={"sources": self._sources(arguments)})
        return call

    def _sources(self, arguments: dict[str, Any]) -> Sources:
        """Return where the arguments of a step come from: the task, and where they refer to a result, its tool."""
        by: dict[str, Parts] = {}
        for pointer, value in leaves(arguments):
            named = [self._tools[int(path.split(".")[1])] for path in references_in(value)]
            codes = [Source(kind="tool", tool=tool.name, content=tool.content).code for tool in named]
            whole = named and isinstance(value, str) and value.startswith("${") and value.endswith("}")
            parts = [(code,) for code in codes] if whole else [("task",), *((code,) for code in codes)]
            by[pointer] = tuple(dict.fromkeys(parts))
        reaching = [pointer for pointer, parts in by.items() if parts != (("task",),)]
        if not reaching:
            return Sources(by={"": (("task",),)})
        return Sources(by=by, reaching=tuple(reaching[:4]))


def _written(task: Task, index: int) -> dict[str, Any]:
    return {} if task.plan is None else task.plan.steps[index].arguments


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
