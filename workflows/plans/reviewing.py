"""Review what a plan has done, and ask a person where too little of it is as it should be."""

from typing import Any

from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.approval import RequestKind, Verdict
from backstay.canonical import canonical
from backstay.errors import BudgetExceeded
from backstay.plans.plan_run import PlanRun, PlanState
from backstay.plans.review import CheckResult, PlanWork, Review, ReviewRules, check_of
from backstay.shown import one_line
from backstay.task.plan import as_data
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.calls.model_calls import ModelCalls
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import rejected
from workflows.context.run_context import RunContext

_SHOWN, _LEAST_SHOWN = 40_000, 80
"""How much of all steps, and of each, is handed to a model for its verdict."""


class Reviewing:
    """Check plans by the rules of the run's profile."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Work at the run's context, through its one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self.model_calls = ModelCalls(context)

    @property
    def rules(self) -> ReviewRules | None:
        """Return the rules of the run's profile, if it has any."""
        return self.context.state.opened.profile.review

    async def review(self, rules: ReviewRules, run: PlanRun) -> Review:
        """Return how much confidence the plan under way deserves."""
        checks: list[CheckResult] = []
        if rules.checks:
            calls_of = rules.calls.items()
            answers = {place: await self._answer(place, call.tool, call.arguments) for place, call in calls_of}
            ask = calls.ReviewWork(rules=rules, answers=answers, results=self.context.state.step_results)
            made = await self.context.activities.execute(calls.review, ask, summary="review what the plan has done")
            checks += made.checks
        if rules.reviewer:
            checks.append(await self._verdict(run))
        review = Review.of(rules.threshold, checks)
        text = f"confidence {review.confidence:g}, {review.threshold:g} is enough: {told_of(review)}"
        self.context.record("plan.reviewed", text, confidence=review.confidence)
        return review

    async def _verdict(self, run: PlanRun) -> CheckResult:
        """Ask another profile's model; a step that it cannot judge for any reason counts as 0."""
        room = max(_LEAST_SHOWN, _SHOWN // max(1, len(run.steps)))
        steps = tuple(
            one_line(f"{step.tool} {canonical(step.arguments)} -> {ran.error or ran.status}", room)
            for step, ran in zip(run.plan.steps, run.steps, strict=True)
        )
        work = PlanWork(name=run.name, steps=steps, results=self.context.state.step_results)
        try:
            decision = await self.model_calls.verdict_on(work)
        except (ApplicationError, BudgetExceeded) as error:
            return check_of(None, f"no verdict: {error}")
        return check_of(decision.verdict, f"no verdict that can be read: {decision.reason}")

    async def _answer(self, place: int, tool: str, arguments: dict[str, Any]) -> ToolResult:
        """Make the read-only call of a custom check, as any other call is made."""
        # It is made as a step of a plan is, in which its texts must not refer to anything.
        checked = await self.context.check_call(
            tool, as_data(arguments), resolved=True, of_plan=True, summary=f"look at check {place}: {tool}"
        )
        if checked.tool is None or checked.error is not None:
            return ToolResult(success=False, error=checked.error, error_type=checked.error_type)
        if checked.tool.effectful:
            fault = f"{tool} may change something, and a check only reads"
            return ToolResult(success=False, error=fault, error_type="ArgumentsInvalid")
        call = ToolCall(id=f"review-{place}", tool=checked.tool, arguments=checked.arguments)
        try:
            (made,) = await self.tool_calls.perform(Purpose.PLAN_STEP, [call])
        except BudgetExceeded as error:
            # The plan is done, and people are to hear of it, whatever its check would still have cost.
            return ToolResult(success=False, error=str(error), error_type=type(error).__name__)
        return made.result

    async def ask_whether_to_undo(self, run: PlanRun, review: Review) -> tuple[bool, str]:
        """Return whether a person wants the plan undone, and who said so."""
        question = (
            f"The review of {run.name} gives a confidence of {review.confidence:g}, and "
            f"{review.threshold:g} is needed: {told_of(review)}. Approve to undo what it did, reject to keep it."
        )
        decided = await self.context.ask(
            RequestKind.OUTCOME,
            one_line(question, 2000),
            Verdict.APPROVE,
            Verdict.REJECT,
            rule="engine: the review found too much",
            authority=self.context.approvals.authority,
            key=f"review {run.id}",
        )
        if decided.stop:
            raise rejected(decided)
        return decided.verdict is Verdict.APPROVE, decided.by


def told_of(review: Review) -> str:
    """Return the checks of a review that are not all right, in one line."""
    below = [check for check in review.checks if check.score < 1]
    return ", ".join(check.words for check in below) or "all checks are good"


def waiting_above(plans: list[PlanRun], run: PlanRun) -> list[PlanRun]:
    """Return the plans that wait in REVIEWING for this one, the nearest first.

    Between them may be plans that people changed, which led to others and ran themselves never.
    """
    by_id, found, above = {other.id: other for other in plans}, list[PlanRun](), run.plan.parent
    while above in by_id and (by_id[above].state is PlanState.REVIEWING or _superseded(by_id[above])):
        found += [] if _superseded(by_id[above]) else [by_id[above]]
        above = by_id[above].plan.parent
    return found


def corrections(plans: list[PlanRun], run: PlanRun) -> int:
    """Return how many plans were made to correct this one, and those that it corrects itself.

    A plan and those that people changed it into are one correction.
    """
    root = (waiting_above(plans, run) or [run])[-1]
    known, found = {root.id}, 0
    for other in plans:
        if other.plan.parent in known:
            known.add(other.id)
            found += not _superseded(other)
    return found


def _superseded(run: PlanRun) -> bool:
    return run.reason == "superseded"
