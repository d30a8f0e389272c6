"""End a run: undo what must be undone, build the Result, and store it."""

from dataclasses import dataclass, field, replace
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals.notice import NoticeKind
from backstay.budgets.budget import Limit
from backstay.budgets.share import MILLI, Spent
from backstay.profile import OUT_OF_STEPS
from backstay.task.context import ContextItem, answers_first
from backstay.task.decision import Finish
from backstay.task.event import Event
from backstay.task.ledger.anchors import MEMO
from backstay.task.result import Failure, Outcome, Result, usage_shown
from backstay.task.status import State
from workflows.calls.model_calls import ModelCalls
from workflows.calls.rollback import Rollback
from workflows.calls.task_polls import end_left_tasks
from workflows.calls.tool_calls import ToolCalls
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import error_of, fitting
from workflows.state.state import RunState
from workflows.state.work import EndedWork
from workflows.subruns.subruns import LEFT, Delegations

WITHHELD = (
    "the effects are kept, because the policy names who may decide and a cancellation does not prove who asks; "
    "undo them with `backstay undo`"
)


@dataclass(frozen=True)
class LoopOutcome:
    """Tell how the loop of a run ended."""

    outcome: Outcome
    summary: str = ""
    outputs: dict[str, Any] = field(default_factory=dict)
    error: errors.BackstayError | None = None
    output: Any = None
    output_ref: str | None = None

    @property
    def fatal(self) -> bool:
        """Return whether the workflow itself must fail."""
        return isinstance(self.error, errors.TaskInvalid)


def ended_with(finish: Finish) -> LoopOutcome:
    """Return the end that the model, or a plan, declared."""
    if finish.success:
        return LoopOutcome(
            Outcome.COMPLETED, finish.summary, finish.outputs, output=finish.output, output_ref=finish.output_ref
        )
    return LoopOutcome(Outcome.FAILED, finish.summary, finish.outputs, errors.Unfinished(finish.summary or None))


def ended_by(error: BaseException, *, cancelled: bool) -> LoopOutcome:
    """Return the end that an exception means; raises it again when it is a bug."""
    if cancelled:
        return LoopOutcome(Outcome.CANCELLED, error=errors.Cancelled())
    if isinstance(error, ApplicationError):
        error = error_of(error)
    match error:
        case errors.BudgetExceeded():
            return LoopOutcome(Outcome.BUDGET_EXCEEDED, error=error)
        case errors.Rejected():
            return LoopOutcome(Outcome.REJECTED, error=error)
        case errors.BackstayError():
            return LoopOutcome(Outcome.FAILED, error=error)
        case _:
            # A bug: the workflow task fails and is tried again until a release that mends it goes on from here.
            raise error


def ended_before(kept: EndedWork) -> LoopOutcome:
    """Return the end that the execution before has come to."""
    error = kept.error.error() if kept.error else None
    return LoopOutcome(kept.outcome, kept.summary, kept.outputs, error, kept.output, kept.output_ref)


class Ending:
    """Close one run."""

    def __init__(self, context: RunContext) -> None:
        """Work at the run's context."""
        self.context = context

    async def close(self, ended: LoopOutcome) -> Result:
        """Roll back where that is due, summarise, store the Result and return it."""
        context = self.context
        context.ending = True
        await workflow.wait_condition(lambda: not context.undoing)
        before = context.state.work.ended
        await end_left_tasks(context)
        if context.state.work.subruns:
            await Delegations(context, ToolCalls(context)).settle()
        context.fail_open_plans()
        if ended.error is not None and not ended.outputs:
            ended = replace(ended, outputs=_so_far(context.state))
        summarised = ended.outcome is Outcome.BUDGET_EXCEEDED and context.state.budget.on_exhausted == "finalize"
        if summarised and before is None:
            ended = await self._with_summary(ended)
        context.state.work.ended = kept = EndedWork(
            outcome=ended.outcome,
            summary=ended.summary,
            outputs=ended.outputs,
            error=None if ended.error is None else Failure.of(ended.error),
            undone=dict(context.state.undone_counts) if before is None else before.undone,
            **_output(ended),
        )
        await self._roll_back(ended)
        if ended.error is not None and (steps := _steps_of_plan(context.state)):
            # Some of them may be undone by now.
            ended = replace(ended, outputs={"steps": steps})
        context.approvals.withdraw_unasked()
        result = fitting(self._result(ended, kept))
        context.record(
            "run.ended",
            f"{result.outcome.value}: {(result.error.message if result.error else result.final_summary)[:200]}",
            outcome=result.outcome.value,
        )
        context.state.state = State.DONE
        return await self._stored(result)

    async def _with_summary(self, ended: LoopOutcome) -> LoopOutcome:
        summary = await ModelCalls(self.context).closing_summary() if self.context.state.task.plan is None else None
        text = f"{ended.error}{self._without_output()}"
        return LoopOutcome(ended.outcome, f"{text}\n\n{summary}" if summary else text, ended.outputs, ended.error)

    def _summary(self, ended: LoopOutcome) -> str:
        missing = self._without_output() if ended.outcome is Outcome.BUDGET_EXCEEDED else ""
        parts = ([f"{ended.error}{missing}"] if ended.error else []) + ([WITHHELD] if self._withheld(ended) else [])
        return "; ".join(parts)

    def _final_summary(self, ended: LoopOutcome) -> str:
        """Return the summary; planners that know markers are told in their words that the steps are used up."""
        summary, error = ended.summary or self._summary(ended), ended.error
        out_of_steps = isinstance(error, errors.LifelinesExhausted) or (
            isinstance(error, errors.BudgetExceeded) and Limit.STEPS.value in str(error).partition("(")[0]
        )
        marked = self.context.state.opened.profile.markers and out_of_steps
        return f"{summary}\n\n{OUT_OF_STEPS}" if marked else summary

    def _without_output(self) -> str:
        """Say that there is no value, where the task wants one and the budget ended before."""
        state = self.context.state
        if state.task.output_schema is None:
            return ""
        last = state.work.output_fault
        return f"; there is no output{f': the last answer was not taken: {last}' if last else ''}"

    async def _roll_back(self, ended: LoopOutcome) -> None:
        due = ended.outcome in {Outcome.FAILED, Outcome.REJECTED, Outcome.CANCELLED} or (
            ended.outcome is Outcome.BUDGET_EXCEEDED and self.context.state.budget.on_exhausted == "fail"
        )
        keep = self.context.state.task.on_failure == "keep" or self.context.state.work.keeps
        if not due or keep or not self.context.state.opened.store:
            return
        if self._withheld(ended):
            self.context.record("undo.withheld", WITHHELD)
            return
        if ended.outcome is Outcome.CANCELLED and self.context.state.opened.above:
            # It undoes all of the tree, in the order in which that was done.
            self.context.record("undo.left", LEFT)
            return
        # A person cancels, or rejects and stops.
        by_itself = ended.outcome not in {Outcome.REJECTED, Outcome.CANCELLED}
        await Rollback(self.context, by_itself=by_itself).undo(between=self.context.turn)

    def _withheld(self, ended: LoopOutcome) -> bool:
        """Return whether effects of a cancelled run stand, because nobody can prove who cancels a workflow."""
        state = self.context.state
        would = ended.outcome is Outcome.CANCELLED and state.task.on_failure != "keep" and bool(state.undo.count)
        return would and self.context.approvals.authority.restricts

    def _result(self, ended: LoopOutcome, kept: EndedWork) -> Result:
        state = self.context.state
        info = workflow.info()
        outcome = self._outcome_after(kept)
        more: dict[str, Any] = _output(ended) | (
            {"programs_unavailable": why} if (why := state.programs_unavailable) else {}
        )
        return Result(
            outcome=outcome,
            success=outcome is Outcome.COMPLETED,
            final_summary=self._final_summary(ended),
            raw_outputs=ended.outputs,
            usage=usage_shown(state.usage, state.ledger.spent),
            budget=state.budget,
            undone=tuple(state.undone),
            error=kept.error,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            **more,
        )

    def _outcome_after(self, kept: EndedWork) -> Outcome:
        counts = self.context.state.undone_counts
        if counts.get("parked", 0) > kept.undone.get("parked", 0):
            return Outcome.ROLLBACK_FAILED
        some = counts.get("compensated", 0) > kept.undone.get("compensated", 0)
        return Outcome.ROLLED_BACK if some and kept.outcome is not Outcome.CANCELLED else kept.outcome

    async def _stored(self, result: Result) -> Result:
        state, closed = self.context.state, calls.ClosingFigures()
        if state.opened.store:
            try:
                closed = await self._closed(result)
            except ApplicationError as error:
                workflow.logger.error("the result could not be stored: %s", error.message)
        if closed.ledger_head is not None:
            # Temporal keeps it where whoever can write the store need not be able to.
            workflow.upsert_memo({MEMO: closed.ledger_head})
        kept = {name: value for name, value in closed if value is not None}
        return fitting(result.model_copy(update={**state.last_events(), **kept}))

    async def _closed(self, result: Result) -> calls.ClosingFigures:
        """Have the store close the run; raises ApplicationError.

        Questions to people about a fault on the way are told before the end, so each try brings its own notices.
        """
        activities, notices = self.context.activities, self.context.approvals.notices
        append = answers_first(self.context.state.append)
        while True:
            await notices.settled()
            await notices.shortened()
            ask = self._closing(result, append)
            try:
                closed = await activities.execute_once(calls.close_run, ask, summary="close the run")
            except ApplicationError as error:
                if append and error.type == errors.ArgumentsInvalid.__name__:
                    # Too large for history: a run that follows must do without what no model was told.
                    append = ()
                    continue
                await activities.ask_whether_again(calls.close_run, error)
            else:
                notices.confirm(ask.notices)
                return closed

    def _closing(self, result: Result, append: tuple[ContextItem, ...]) -> calls.CloseRun:
        state = self.context.state
        return calls.CloseRun(
            result=result,
            context=state.context,
            append=append,
            plans=tuple(run.end for run in state.plans),
            notices=self.context.approvals.notices.with_last(NoticeKind.ENDED),
            remember=bool(state.opened.memory_of) and state.opened.profile.memory.write,
            spent=self._spent() if state.opened.above else None,
        )

    def _spent(self) -> Spent:
        """Return what a sub-run has spent, for the run that delegated to it."""
        state = self.context.state
        return Spent(
            usage=state.usage,
            micro=state.ledger.spent,
            wall_ms=round(self.context.stopwatch.seconds * MILLI),
            added=state.budget.added_since(state.task.budget),
            **({"private": tuple(state.private)} if state.private else {}),
        )


def _so_far(state: RunState) -> dict[str, Any]:
    """Return what was there when a run ended early: of a plan its steps, else the newest calls."""
    steps = _steps_of_plan(state)
    if not steps:
        steps = [_called(event) for event in state.events if event.name in {"action.called", "action.failed"}]
    return {"steps": steps} if steps else {}


def _steps_of_plan(state: RunState) -> list[dict[str, Any]]:
    """Return what the steps of the task's plan came to; nothing where the task gave none."""
    return state.plans[-1].outputs if state.plans and state.plans[-1].of_task else []


def _called(event: Event) -> dict[str, Any]:
    success, data = event.name == "action.called", event.data
    known = {"step": event.step_index, "tool": data.get("tool"), "success": success, "ref": data.get("summary_ref")}
    return known | {"error": None if success else event.text}


def _output(ended: LoopOutcome) -> dict[str, Any]:
    """Return the fields of the value, where there is one."""
    given = {"output": ended.output, "output_ref": ended.output_ref}
    return {name: value for name, value in given.items() if value is not None}
