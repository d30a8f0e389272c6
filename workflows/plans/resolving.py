"""Rule on the steps of a plan with what their references bring, before they are made."""

from dataclasses import dataclass, replace

from backstay.approvals import approvers
from backstay.policies.denials import denials_of
from backstay.policies.glob import matches
from backstay.policies.policy import Policy
from backstay.policies.ruling import Ruling
from backstay.task.plan import references_in
from backstay.task.task import Task
from backstay.task.theirs import Theirs
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.asking.reminders import never
from workflows.consent.consent import Consent, Consented, RuledCall, denied
from workflows.state.state import write_key


@dataclass(frozen=True)
class Late:
    """Hold a call with what its references bring, and the rulings on it without and with that."""

    real: ToolCall
    planned: Ruling
    now: Ruling

    @property
    def was_approved(self) -> bool:
        """Return whether what people were asked about the plan covers it: the same rule, which looks at no value."""
        same_people = approvers.constraint(self.now) == approvers.constraint(self.planned)
        same_rule = self.now.verdict == self.planned.verdict and self.now.rule == self.planned.rule
        return same_people and same_rule and not self.now.unseen


async def ruled_late(
    consent: Consent, call: ToolCall, index: int, results: dict[int, str], *, by_model: bool
) -> "Late | ToolResult":
    """Rule on a step with the stored results that it refers to; return a result where it cannot be made with them."""
    state = consent.context.state
    where_from = call.sources is not None and (state.opened.policy.looks_at_sources or call.tool.egress)
    checked = await consent.context.check_call(
        call.tool.name,
        call.arguments,
        resolved=True,
        of_plan=True,
        results=results,
        by_model=by_model,
        theirs=None if by_model else theirs_of(state.task, index),
        judge=call.tool.judged,
        denials=denials_of(state.opened.policy, call),
        where_from=where_from,
        sources=call.sources if where_from and by_model else None,
        summary=f"look at what step {index} refers to: {call.tool.name}",
    )
    if checked.error is not None:
        kind = checked.error_type or "ArgumentsInvalid"
        return ToolResult(success=False, error=checked.error, error_type=kind)
    sources = checked.sources or call.sources
    if checked.sources is not None and call.sources is not None:
        sources = checked.sources.given_by(call.sources.given_but_referring)
    real = call.model_copy(update={"arguments": checked.arguments, "sources": sources})
    # People have not approved what became private since they approved the plan.
    planned = consent.ruling(call, Purpose.PLAN_STEP, labels=False)
    return Late(real, planned, consent.ruling(real, Purpose.PLAN_STEP))


async def may_be_made(
    consent: Consent, call: ToolCall, index: int, results: dict[int, str], *, by_model: bool, told: bool
) -> Consented:
    """Return a step that may be made with what its references bring; people see and decide about exactly that.

    `told`: whether they knew that it repeats a write as they approved the plan.
    """
    if not could_differ(consent.context.state.opened.policy, call):
        return call
    late = await ruled_late(consent, call, index, results, by_model=by_model)
    if isinstance(late, ToolResult):
        return late
    if late.now.verdict == "deny":
        return denied(late.now)
    # What was resolved is only shown: a string in it that looks like a reference must not be resolved again.
    sent = call.model_copy(update={"sources": late.real.sources, "resolved_key": write_key(late.real)})
    asked = RuledCall(0, late.real, late.now, whole=True)
    if not told:
        (asked,) = consent.with_repeats([asked])
        late = replace(late, now=asked.ruling)
    if late.now.verdict == "allow" or late.was_approved:
        return sent
    answer = (await consent.ask_all([[asked]], Purpose.PLAN_STEP, None, never))[0]
    return sent if isinstance(answer, ToolCall) else answer


def theirs_of(task: Task, index: int) -> Theirs | None:
    """Return what others gave for a step of the task's own plan; None where nobody did."""
    return None if task.plan is None else Theirs.of(task, task.plan.steps[index].arguments)


def refers(arguments: object) -> bool:
    """Return whether arguments refer to the results of other steps."""
    return any(path.startswith("steps.") for path in references_in(arguments))


def could_differ(policy: Policy, call: ToolCall) -> bool:
    """Return whether the ruling on a call depends on its arguments; secrets may only come in with a write."""
    return (
        call.effectful
        or call.tool.egress
        or call.tool.audience == "public"
        or any(
            (rule.when is not None or rule.unless is not None) and matches(rule.tool, name)
            for layer in policy.layers
            for rules in (layer.deny, layer.ask, layer.allow)
            for rule in rules
            for name in (call.tool.name, *call.tool.calls)
        )
    )
