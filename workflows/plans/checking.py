"""Check the steps of a plan against the catalog, before anybody is asked about it."""

from itertools import islice
from typing import Any

from backstay.errors import ArgumentsInvalid, TaskInvalid, ToolNotFound
from backstay.plans.leaving_out import StepDependencies
from backstay.plans.plan_run import PlanRun
from backstay.provenance.source import MODEL, MOST_LEAVES, MOST_SHOWN, ArgumentSources, Parts, Source, leaves
from backstay.task.plan import (
    Plan,
    PlanStep,
    fill_in,
    has_references,
    is_reference,
    references_in,
    refuse_large_steps,
    steps_named,
)
from backstay.tools.tool import BUILTIN, Tool, ToolCall, ToolResult
from workflows.consent.consent import Answered
from workflows.context.run_context import RunContext
from workflows.plans.resolving import theirs_of


class Checking:
    """Turn the steps of one plan into calls."""

    def __init__(self, context: RunContext, run: PlanRun) -> None:
        """Check a plan of the task, or of a model, perhaps once more."""
        self.context = context
        self.plan = run.plan
        self.sources = run.sources
        self.written = written(run, context.state.task.plan)
        self._tools: list[Tool] = []
        """The tools of the steps that are checked."""

    async def calls(self) -> list[ToolCall]:
        """Return a call for each step; raises ToolNotFound, ArgumentsInvalid or TaskInvalid naming the step."""
        try:
            refuse_large_steps([step.arguments for step in self.plan.steps], self.context.state.task.input)
        except ArgumentsInvalid as error:
            raise ArgumentsInvalid(f"plan.{error}") from None
        checked: list[ToolCall] = []
        for index, step in enumerate(self.plan.steps):
            checked.append(await self._checked(index, step))
            self._tools.append(checked[-1].tool)
        return checked

    async def _checked(self, index: int, step: PlanStep) -> ToolCall:
        """Resolve references to the input, validate what is known, and find the tool's facts."""
        arguments, pending = self._filled(index, step)
        # A plan that was checked before names no input any more: only the task's own text says what others gave for it.
        theirs = None if self.sources is not None else theirs_of(self.context.state.task, index)
        checked = await self.context.check_call(
            step.tool,
            arguments,
            resolved=not pending,
            of_plan=True,
            theirs=theirs,
            summary=f"check step {index}: {step.tool}",
        )
        if checked.tool is None or checked.error is not None:
            kind = ToolNotFound if checked.error_type == "ToolNotFound" else ArgumentsInvalid
            raise kind(f"plan.steps.{index}: {checked.error or step.tool}")
        tool = checked.tool
        if step.safety is not None and step.safety.level > tool.safety.level:
            tool = tool.model_copy(update={"safety": step.safety})
        _require_fit(index, step, tool)
        call = ToolCall(id=f"s{index}", tool=tool, arguments=checked.arguments, reason=step.summary, limits=step.limits)
        if (call.effectful and self.context.state.opened.policy.wants_sources) or tool.egress:
            looked_up = checked.sources if self.sources is None else self.sources[index]
            call = call.model_copy(update={"sources": self._with_results(looked_up, arguments)})
        return call

    def _filled(self, index: int, step: PlanStep) -> tuple[dict[str, Any], tuple[int, ...]]:
        """Return the arguments of a step with the input filled in, and the steps that they still refer to."""
        try:
            arguments = fill_in(step.arguments, self.context.state.task.input)
        except ArgumentsInvalid as error:
            raise ArgumentsInvalid(f"plan.steps.{index}: {error}") from None
        return arguments, steps_named(index, arguments, self.written.steps[index].arguments)

    def _with_results(self, known: ArgumentSources | None, arguments: dict[str, Any]) -> ArgumentSources:
        """Return what is known of arguments that were looked up; where they refer to a result, its tool counts, too."""
        found = self._sources(arguments)
        if known is None:
            return found
        refers = {pointer: has_references(value) for pointer, value in leaves(arguments)}
        referring = [pointer for pointer, does in refers.items() if does]
        own = known.beside(referring, [pointer for pointer, does in refers.items() if not does])
        by = own | {pointer: found.by[pointer] for pointer in referring}
        reaching = tuple(dict.fromkeys((*known.reaching, *(at for at in referring if at in found.reaching))))
        return known.model_copy(update={"by": by, "reaching": reaching[:4], "refers": found.refers})

    @property
    def _author(self) -> str:
        return "task" if self.sources is None else MODEL

    def _sources(self, arguments: dict[str, Any]) -> ArgumentSources:
        """Return where the arguments of a step come from: the task, and where they refer to a result, its tool."""
        by: dict[str, Parts] = {}
        refers: dict[str, tuple[int, ...]] = {}
        for pointer, value in leaves(arguments):
            steps = [int(path.split(".")[1]) for path in references_in(value)]
            if steps:
                refers[pointer] = tuple(dict.fromkeys(steps))[:MOST_SHOWN]
            tools = [self._tools[step] for step in steps]
            codes = [Source(kind="tool", tool=tool.name, content=tool.content).code for tool in tools]
            parts = (
                [(code,) for code in codes] if is_reference(value) else [(self._author,), *((code,) for code in codes)]
            )
            by[pointer] = tuple(dict.fromkeys(parts))
        reaching = [pointer for pointer, parts in by.items() if parts != ((self._author,),)]
        if not reaching:
            return ArgumentSources(by={"": ((self._author,),)})
        told = dict(islice(refers.items(), MOST_LEAVES))
        return ArgumentSources(by=by, reaching=tuple(reaching[:4]), refers=told)


def written(run: PlanRun, of_task: Plan | None) -> Plan:
    """Return the plan as its author wrote it, with texts so long that they are stored apart once it is checked.

    Arguments that people changed are as they want them.
    """
    if not run.of_task or of_task is None:
        return run.plan
    steps = list(of_task.steps)
    for index, names in run.edited.items():
        now = run.plan.steps[index].arguments
        arguments = {name: given for name, given in steps[index].arguments.items() if name not in names}
        arguments |= {name: now[name] for name in names if name in now}
        steps[index] = steps[index].model_copy(update={"arguments": arguments})
    return of_task.model_copy(update={"steps": tuple(steps)})


def needs_of(run: PlanRun, of_task: Plan | None) -> StepDependencies:
    """Return which steps of a checked plan need each other."""
    return StepDependencies(written(run, of_task), run.plan.steps)


def fallen_steps(run: PlanRun, of_task: Plan | None, answered: Answered) -> dict[int, int]:
    """Return the steps that are not made without those that may not be made, each with the one that it needs."""
    left_out = [index for index, answer in answered.items() if isinstance(answer, ToolResult)]
    return needs_of(run, of_task).without(left_out)


def _require_fit(index: int, step: PlanStep, tool: Tool) -> None:
    """Raise TaskInvalid when a step asks for what its tool cannot give."""
    where, name = f"plan.steps.{index}", step.tool
    if step.undoable and tool.undo_declared is None:
        raise TaskInvalid(f"{where}.transactional: {name} cannot be undone; declare its compensation")
    if step.retries and tool.effectful and not tool.idempotent:
        raise TaskInvalid(f"{where}.retries: {name} is a write that is not declared idempotent; leave it out")
    if step.limits is not None and tool.provider not in BUILTIN:
        raise TaskInvalid(f"{where}.limits: {name} runs in no jail of the workspace; leave them out")
