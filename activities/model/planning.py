"""The functions with which a model plans, and the plans that it proposes with them."""

from collections.abc import Awaitable, Callable
from typing import Any

from activities.tools.arguments import Arguments
from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.plans.definition import PlanDefinition
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line
from backstay.task.decision import MOST_ALTERNATIVES, MarkStep, ProposePlan
from backstay.task.plan import Plan, PlanStep, fill_in, references_in, refuse_large_steps
from backstay.tools.tool import BUILTIN, DELEGATE, ONLY_MODELS_DELEGATE, Tool
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition

PROPOSE, UPDATE, MARK = "propose_plan", "update_plan", "mark_step"
ALIASES = {"create_plan": PROPOSE}
"""Other names under which a model may call these functions."""
PLANS = frozenset({PROPOSE, UPDATE, MARK, *ALIASES})
_FIELDS = frozenset({"title", "summary", "steps", "continue_on_failure", "allowed_side_effects"})
Trace = Callable[[Tool, dict[str, Any]], Awaitable[ArgumentSources | None]]


def may_read(definition: Definition) -> bool:
    """Return whether a tool may be called while the model only plans: it reads the files of the workspace."""
    return definition.provider in BUILTIN and not definition.hidden and not definition.tool.effectful


class PlanParser:
    """Take the plans of a model's answer, and replace their secrets and big leaves."""

    def __init__(self, arguments: Arguments, catalog: Catalog, run: str, most_steps: int, trace: Trace | None) -> None:
        """Check against the catalog; `trace` returns where arguments come from, where somebody needs to know."""
        self.arguments = arguments
        self.catalog = catalog
        self.run = run
        self.most_steps = most_steps
        self.trace = trace

    async def proposed(self, call_id: str, name: str, given: dict[str, Any]) -> ProposePlan:
        """Return what the model proposes; raises ArgumentsInvalid naming the field."""
        alternatives = given.get("alternatives") or []
        if not isinstance(alternatives, list) or len(alternatives) >= MOST_ALTERNATIVES:
            raise ArgumentsInvalid(f"alternatives: a list of at most {MOST_ALTERNATIVES - 1} plans")
        parent = given.get("plan_id") if name == UPDATE else None
        if name == UPDATE and not (isinstance(parent, str) and parent):
            raise ArgumentsInvalid("plan_id: required; name the plan that this one amends")
        plans: list[Plan] = []
        sources: list[tuple[ArgumentSources | None, ...]] = []
        for where, proposed_plan in (("plan", given.get("plan")), *_named(alternatives)):
            plan, traced = await self._plan(where, proposed_plan)
            plans.append(plan)
            sources.append(traced)
        known = tuple(sources) if any(found is not None for traced in sources for found in traced) else ()
        proposed = ProposePlan(call_id=call_id, plans=tuple(plans))
        more = {"parent": parent, "sources": known}
        return proposed.model_copy(update={field: value for field, value in more.items() if value})

    async def defined(self, call_id: str, definition: PlanDefinition, given: dict[str, Any]) -> ProposePlan:
        """Return the plan that a definition makes of an input that fits it; raises ArgumentsInvalid."""
        plan = Plan.model_validate(definition.task(given)["plan"])
        plan, sources = await self._folded(definition.id, plan, given)
        proposed = ProposePlan(call_id=call_id, plans=(plan,))
        return proposed.model_copy(update={"sources": (sources,)}) if any(sources) else proposed

    async def _plan(self, where: str, given: Any) -> tuple[Plan, tuple[ArgumentSources | None, ...]]:
        if not isinstance(given, dict):
            raise ArgumentsInvalid(f"{where}: required; an object with `title` and `steps`")
        unknown = given.keys() - _FIELDS
        if unknown:
            raise ArgumentsInvalid(f"{where}.{one_line(min(unknown), 60)}: unknown field; remove it")
        try:
            plan = Plan.admit(given)
        except TaskInvalid as error:
            raise ArgumentsInvalid(f"{where}: {error}") from None
        return await self._folded(where, plan)

    async def _folded(
        self, where: str, plan: Plan, given: dict[str, Any] | None = None
    ) -> tuple[Plan, tuple[ArgumentSources | None, ...]]:
        """Return a plan with its steps folded, filled with an input if any, and where their arguments come from."""
        if len(plan.steps) > self.most_steps:
            raise ArgumentsInvalid(f"{where}.steps: at most {self.most_steps}; make several plans")
        if given is not None:
            refuse_large_steps([step.arguments for step in plan.steps], given)
        steps: list[PlanStep] = []
        sources: list[ArgumentSources | None] = []
        for index, step in enumerate(plan.steps):
            filled = {} if given is None else {"arguments": fill_in(step.arguments, given)}
            folded, traced = await self._step(f"{where}.steps.{index}", step.model_copy(update=filled))
            steps.append(folded)
            sources.append(traced)
        return plan.model_copy(update={"steps": tuple(steps)}), tuple(sources)

    async def _step(self, where: str, step: PlanStep) -> tuple[PlanStep, ArgumentSources | None]:
        definition = self.catalog.by_function.get(step.tool) or self.catalog.definitions.get(step.tool)
        if step.tool == DELEGATE:
            raise ArgumentsInvalid(f"{where}.tool: {ONLY_MODELS_DELEGATE}")
        if definition is None or definition.hidden:
            raise ArgumentsInvalid(f"{where}.tool: there is no tool {one_line(step.tool, 80)!r}; search for it")
        try:
            folded = await self.arguments.fold(self.run, definition.provider, step.arguments)
        except ArgumentsInvalid as error:
            raise ArgumentsInvalid(f"{where}: {error}") from None
        if references_in(folded) != references_in(step.arguments):
            raise ArgumentsInvalid(f"{where}: a long text may not refer to other steps; put the reference apart")
        traced = None if self.trace is None else await self.trace(definition.tool, step.arguments)
        return step.model_copy(update={"tool": definition.name, "arguments": folded}), traced


def marked(call_id: str, given: dict[str, Any]) -> MarkStep:
    """Return what the model notes of a step; raises ArgumentsInvalid."""
    idx = given.get("idx")
    if not isinstance(idx, int) or isinstance(idx, bool) or idx < 0:
        raise ArgumentsInvalid("idx: the number of a step, from 0")
    status, note = (one_line(str(given.get(name) or ""), 300) for name in ("status", "note"))
    return MarkStep(call_id=call_id, idx=idx, status=status, note=note)


def _named(alternatives: list[Any]) -> list[tuple[str, Any]]:
    return [(f"alternatives.{index}", plan) for index, plan in enumerate(alternatives)]
