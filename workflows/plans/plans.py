"""The lives of the plans of one run: those that its task gives, and those that a model proposes."""

import asyncio
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import errors
from backstay.approvals.approval import Verdict
from backstay.plans.plan_run import PlanReason, PlanRun, PlanState, StepStatus, current_plan
from backstay.plans.review import Review, ReviewRules
from backstay.shown import one_line
from backstay.task.decision import Finish, ProposePlan
from backstay.task.plan import Plan
from backstay.task.status import State
from backstay.tools.tool import BUILTIN, DECIDED_BY, ToolCall, ToolResult
from workflows.calls.rollback import Rollback
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import rejected
from workflows.context.run_context import RunContext
from workflows.plans.amending import child_of, said_of_changes
from workflows.plans.checking import Checking, fallen_steps
from workflows.plans.executing import Executing
from workflows.plans.proposing import PlanReply, Proposing
from workflows.plans.rehearsing import PlanRehearsals
from workflows.plans.reviewing import Reviewing, corrections, told_of, waiting_above
from workflows.state.work import PlanAnswers, RequestOutcome

ANSWERS = (errors.StepFailed, errors.ArgumentsInvalid, errors.ToolNotFound, errors.TaskInvalid, errors.Denied)
"""What a model is told of its plan, so that it can decide anew; anything else ends the run."""
FORETOLD = 8_000
"""Characters of arguments of a forecast that a result, or a model, is told."""
MOST_TOLD = 20
"""Of how many changes of a plan by people the model is told."""
CHANGED = ("ToolChanged: ", "ToolNotFound: ")
"""How the error of a step begins whose tool is no longer the one that was proposed."""
_BEFORE = frozenset({PlanState.DRAFT, PlanState.PROPOSED})


class PlanLifecycle:
    """Take plans through their lives."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Work at the run's context, through its one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self.proposing = Proposing(context, tool_calls.consent)
        self.reviewing = Reviewing(context, tool_calls)
        self.rehearsing = PlanRehearsals(context, tool_calls)
        self.chosen = ""
        """The plan that people approved, of those that are proposed together."""
        self.broken = False
        """Whether nothing needs to be chosen any more."""

    async def run(self, plan: Plan) -> Finish:
        """Carry out the plan of the task; raises StepFailed at the first failure that it cannot bear."""
        state = self.context.state
        if not state.plans:
            run = PlanRun.of(plan.with_usual(state.opened.step_timeout_s), untimed=plan.untimed, of_task=True)
            state.work.plan = PlanAnswers(proposed=(run.id,))
            state.keep_plan_run(run)
        done = await self._lived()
        outputs: dict[str, Any] = {"steps": done.outputs}
        if self._is_dry(done):
            outputs["forecast"] = done.foretold(FORETOLD)
        return Finish(summary=f"{done.done} of {len(done.steps)} steps of the plan done", outputs=outputs)

    async def propose(self, action: ProposePlan) -> tuple[bool, dict[str, Any]]:
        """Take plans of the model through their lives; return whether one was carried out, and what it is told."""
        state = self.context.state
        if state.work.plan is None:
            fault = self._refusal(action)
            if fault:
                return False, {"error": fault, "type": "ArgumentsInvalid"}
            self._take_up(action)
        try:
            done = await self._lived()
            return done.state is PlanState.COMPLETED, self._told(done)
        except ANSWERS as error:
            done = state.plan_run(self._last())
            await self._undo_transaction(done)
            told = self._told(state.plan_run(done.id)) | {"error": str(error), "type": type(error).__name__}
            return False, told
        finally:
            if state.work.plan is not None and self._is_over(state.plan_run(self._last())):
                state.work.plan, state.step_results, self.chosen, self.broken = None, {}, "", False

    @staticmethod
    def _is_over(run: PlanRun) -> bool:
        """Return whether the plan is out of the model's way; it may still wait for a correction."""
        return run.ended or (run.state is PlanState.REVIEWING and run.review is not None)

    def mark_step(self, index: int, status: str, note: str) -> dict[str, Any]:
        """Keep what the model says of a step of the last plan; it changes no state."""
        run = current_plan(self.context.state.plans)
        if run is None or index >= len(run.steps):
            return {"error": f"idx: there is no step {index} of a plan", "type": "ArgumentsInvalid"}
        text = f"step {index} of {run.id}: {one_line(status, 60)}: {one_line(note, 300)}"
        self.context.record("plan.noted", text, plan=run.id, idx=index)
        return {"noted": True, "engine": run.steps[index].status.value}

    def _refusal(self, action: ProposePlan) -> str:
        if action.parent is None:
            return ""
        known = [run.id for run in self.context.state.plans]
        if action.parent not in known:
            return f"plan_id: there is no plan {one_line(action.parent, 60)!r}; known: {', '.join(known) or 'none'}"
        return ""

    def _take_up(self, action: ProposePlan) -> None:
        """Number the plans of the model, and make them the ones under way."""
        state = self.context.state
        numbered = [state.take_plan_number() for _ in action.plans]
        parent = None if action.parent is None else state.plan_run(action.parent)
        for at, (plan, plan_id) in enumerate(zip(action.plans, numbered, strict=True)):
            update: dict[str, Any] = {"id": plan_id, "author": plan.author or "model", "created_at": workflow.now()}
            if parent is not None:
                update |= {"parent": parent.id, "version": parent.plan.version + 1}
            others = tuple(other for other in numbered if other != plan_id)
            sources = action.sources[at] if action.sources else (None,) * len(plan.steps)
            numbered_plan = plan.with_usual(state.opened.step_timeout_s).model_copy(update=update)
            state.keep_plan_run(PlanRun.of(numbered_plan, untimed=plan.untimed, alternatives=others, sources=sources))
        if parent is not None:
            children = (*parent.children, *numbered)
            state.keep_plan_run(state.plan_run(parent.id).model_copy(update={"children": children}))
        state.work.plan = PlanAnswers(proposed=tuple(numbered))

    @property
    def _work(self) -> PlanAnswers:
        """Return what is known of the plans under way; there are some wherever this is asked."""
        work = self.context.state.work.plan
        if work is None:
            raise RuntimeError("no plan is under way")
        return work

    def _last(self) -> str:
        """Return the plan that stands for those under way: the approved one, else the first that was proposed."""
        work = self._work
        return work.plan_id or work.proposed[0]

    async def _lived(self) -> PlanRun:
        """Take the plans under way to the end of the one that people approve."""
        state = self.context.state
        if state.work.plan is None or not state.work.plan.plan_id:
            await self._approved()
        work = self._work
        with self._failing(work.plan_id):
            if state.plan_run(work.plan_id).state is PlanState.APPROVED:
                self._move(work.plan_id, PlanState.EXECUTING)
            if state.plan_run(work.plan_id).state is PlanState.EXECUTING:
                if self._is_dry(state.plan_run(work.plan_id)):
                    await self.rehearsing.dry_run(work.plan_id, work.answered, work.toggles)
                else:
                    await Executing(self.context, self.tool_calls, work.plan_id, work).carry_out()
                self._move(work.plan_id, PlanState.REVIEWING)
            await self._reviewed(work.plan_id)
        return state.plan_run(work.plan_id)

    async def _reviewed(self, plan_id: str) -> None:
        """Complete a plan, and those that it corrects, when its review finds it good."""
        state, rules = self.context.state, self.reviewing.rules
        review = None if rules is None else await self._review(rules, state.plan_run(plan_id))
        if rules is not None and review is not None:
            state.keep_plan_run(state.plan_run(plan_id).model_copy(update={"review": review.plain()}))
            if not review.passed:
                run = state.plan_run(plan_id)
                if run.of_task or corrections(state.plans, run) >= rules.max_corrections:
                    await self._given_up(run, review)
                return
        waiting = waiting_above(state.plans, state.plan_run(plan_id))
        for done in (plan_id, *(above.id for above in waiting)):
            self._move(done, PlanState.COMPLETED)

    async def _review(self, rules: ReviewRules, run: PlanRun) -> Review | None:
        """Return the review of a plan, which is made once; None for one of which nothing was done."""
        if run.review is not None:
            # The execution before made it, and people may be asked about it.
            return Review.model_validate(run.review)
        return None if self._is_dry(run) else await self.reviewing.review(rules, run)

    async def _given_up(self, run: PlanRun, review: Review) -> None:
        """Ask whether a plan, and those that it corrects, are undone; raises ReviewFailed for the task's own."""
        undo, by = await self.reviewing.ask_whether_to_undo(run, review)
        failed = [run, *waiting_above(self.context.state.plans, run)]
        for plan in failed:
            self._move(plan.id, PlanState.FAILED, "review_failed")
        said = f"{by} wants it {'undone' if undo else 'kept'}"
        if run.of_task:
            self.context.state.work.keeps = not undo
            raise errors.ReviewFailed(f"{run.name}: confidence {review.confidence:g} ({told_of(review)}); {said}")
        if undo:
            effects = {step.effect for plan in failed for step in self.context.state.plan_run(plan.id).steps}
            await Rollback(self.context).undo_effects({effect for effect in effects if effect is not None})
        self.context.tell(f"The review of {run.name} found too much; {said}.", fact=True)

    async def conclude(self) -> bool:
        """Give up the plans that wait for a correction; return whether there were any."""
        plans = [run for run in self.context.state.plans if run.state is PlanState.REVIEWING and run.review]
        if not plans:
            return False
        await self._given_up(plans[-1], Review.model_validate(plans[-1].review))
        return True

    def _is_dry(self, run: PlanRun) -> bool:
        """Return whether nothing of the plan is made but its rehearsal."""
        work = self.context.state.work.plan
        return run.plan.dry_run or (work is not None and work.dry_run)

    async def _approved(self) -> None:
        """Have one of the proposed plans approved; raises what the first of them failed with."""
        runs = [self.context.state.plan_run(plan_id) for plan_id in self._work.proposed]
        # Of those that an execution before proposed, people may have rejected some.
        left = [run.id for run in runs if not run.ended]
        if not left:
            raise errors.StepFailed(f"{runs[0].name} failed: {runs[0].reason}")
        with self.context.doing(State.WAITING):
            if len(left) == 1:
                await self._agreed(left[0])
            else:
                agreeing = [asyncio.ensure_future(self._agreed(plan_id)) for plan_id in left]
                done = await asyncio.gather(*agreeing, return_exceptions=True)
                faults = [error for error in done if isinstance(error, BaseException)]
                ending = next((error for error in faults if not isinstance(error, ANSWERS)), None)
                if ending is not None or not self.chosen:
                    raise ending or faults[0]
        self.context.forget_agreed()

    async def _agreed(self, plan_id: str) -> None:
        """Check and propose a plan, and each amendment of it, until it is approved or failed."""
        waiting: str | None = plan_id
        while waiting is not None:
            with self._failing(waiting):
                run = self.context.state.plan_run(waiting)
                batch = await Checking(self.context, run).calls()
                run = self._with_checked(run, batch)
                agreed = await self.proposing.agree(
                    run,
                    batch,
                    lambda run=run: self._opened(run),
                    self._settled,
                    lambda answered, asked, run=run: self.rehearsing.before_proposal(run.id, answered, asked),
                )
                waiting = self._concluded(run, batch, agreed)

    def _settled(self) -> bool:
        return bool(self.chosen) or self.broken

    def _with_checked(self, run: PlanRun, batch: list[ToolCall]) -> PlanRun:
        """Keep the plan as it was checked, under the hash that approvals bind to."""
        steps = tuple(
            step.model_copy(update={"arguments": call.arguments, "safety": call.tool.safety})
            for step, call in zip(run.plan.steps, batch, strict=True)
        )
        plan = run.plan.model_copy(update={"steps": steps})
        # Meanwhile a plan beside it may have been changed.
        run = self.context.state.plan_run(run.id)
        run = run.model_copy(update={"plan": plan.model_copy(update={"hash": plan.digest})})
        self.context.state.keep_plan_run(run)
        return run

    def _opened(self, run: PlanRun) -> None:
        # A request that the execution before opened goes on.
        if self.context.state.plan_run(run.id).state is PlanState.DRAFT:
            self._move(run.id, PlanState.PROPOSED)

    def _concluded(self, run: PlanRun, batch: list[ToolCall], agreed: PlanReply) -> str | None:
        """Act on what people said; return the amended plan that is to be proposed next, if any."""
        decided = agreed.decided
        if decided is not None and decided.stop:
            # A person who ends the run does so also beside a choice that came in the same moment.
            raise rejected(decided)
        if self._settled():
            self._move(run.id, PlanState.FAILED, "not_chosen")
            return None
        if decided is None:
            self._approve(run, agreed.answered, None)
            return None
        if decided.verdict is Verdict.MODIFY:
            return self._amended(run, batch, decided)
        self._refuse_left_out(run, agreed.left_out, decided)
        self._approve(run, agreed.answered, decided)
        return None

    def _refuse_left_out(self, run: PlanRun, left_out: Mapping[int, ToolResult], decided: RequestOutcome) -> None:
        """Raise StepFailed when the plan cannot do without a step that people left out."""
        for index, answer in sorted(left_out.items()):
            whole = decided.verdict is not Verdict.APPROVE
            if whole or not (_lenient(decided) or run.plan.may_fail(index)):
                tool, kind = run.plan.steps[index].tool, "expired" if decided.verdict is None else "rejected"
                self._move(run.id, PlanState.FAILED, kind)
                said = (decided.left_out_by.get(each, (decided.by, decided.comment)) for each in sorted(left_out))
                for by, comment in dict.fromkeys(said):
                    self._keep_rejection(run, by, comment)
                raise errors.StepFailed(f"step {index} ({tool}) failed: {answer.error_type}: {answer.error}")

    def _keep_rejection(self, run: PlanRun, by: str, comment: str) -> None:
        """Keep for the model what a person said against one of several plans; the error may be that of another."""
        if run.alternatives and comment:
            said = {"by": one_line(by, 200), "comment": one_line(comment, 1000), "rejected": run.id}
            people = (*self._work.people, said)[-MOST_TOLD:]
            self.context.state.work.plan = self._work.model_copy(update={"people": people})

    def _approve(
        self, run: PlanRun, answered: dict[int, ToolCall | ToolResult], decided: RequestOutcome | None
    ) -> None:
        state, self.chosen = self.context.state, run.id
        work = self._work
        update: dict[str, Any] = {"plan_id": run.id, "answered": answered}
        if decided is not None:
            update["answered"] = self._narrowed(answered, decided)
            update |= {"toggles": decided.toggles, "dry_run": decided.dry_run}
            said = {"by": one_line(decided.by, 200), "comment": one_line(decided.comment, 1000)}
            update |= {"people": (*work.people, said)} if decided.comment else {}
        state.work.plan = work.model_copy(update={name: value for name, value in update.items() if value})
        state.step_results = {}
        # A person who wants to see what a plan would do, or leaves all of it out, has not let the run do anything.
        falls = fallen_steps(run, state.task.plan, answered)
        made = [index for index, answer in answered.items() if isinstance(answer, ToolCall) and index not in falls]
        does = bool(made) and not self._is_dry(run)
        state.work.planned = state.work.planned or does
        self._move(run.id, PlanState.APPROVED)

    def _narrowed(
        self, answered: dict[int, ToolCall | ToolResult], decided: RequestOutcome
    ) -> dict[int, ToolCall | ToolResult]:
        """Return the calls of a plan with no more of their jails than people let them use."""
        limits, usual = None if decided.toggles is None else decided.toggles.limits, self.context.state.opened.jail
        if limits is None:
            return answered
        return {
            index: answer.model_copy(update={"limits": limits.of_jail(usual, answer.limits)})
            if isinstance(answer, ToolCall) and answer.tool.provider in BUILTIN
            else answer
            for index, answer in answered.items()
        }

    def _amended(self, run: PlanRun, batch: list[ToolCall], decided: RequestOutcome) -> str:
        """Return the id of the plan that a person's changes make, which is proposed in place of this one."""
        state = self.context.state
        run = state.plan_run(run.id)
        child = child_of(run, state.take_plan_number(), batch, decided)
        state.keep_plan_run(run.model_copy(update={"children": (*run.children, child.id)}))
        self._move(run.id, PlanState.FAILED, "superseded")
        state.keep_plan_run(child)
        for beside in [other for other in state.plans if run.id in other.alternatives]:
            others = tuple(child.id if plan_id == run.id else plan_id for plan_id in beside.alternatives)
            state.keep_plan_run(beside.model_copy(update={"alternatives": others}))
        work = self._work
        proposed = tuple(child.id if plan_id == run.id else plan_id for plan_id in work.proposed)
        people = (*work.people, said_of_changes(run, decided))[-MOST_TOLD:]
        state.work.plan = work.model_copy(update={"proposed": proposed, "people": people})
        return child.id

    async def _undo_transaction(self, run: PlanRun) -> None:
        """Undo what the transactional steps of a failed plan did."""
        steps = zip(run.plan.steps, run.steps, strict=True)
        effects = {step.effect for planned, step in steps if planned.undoable and step.status is StepStatus.SUCCESS}
        found = {effect for effect in effects if effect is not None}
        if run.reason in {"step_failed", "stale"} and found:
            await Rollback(self.context, by_itself=True).undo_effects(found)

    def _move(self, plan_id: str, state: PlanState, reason: PlanReason = "") -> None:
        """Let a plan go on to another state, and say so."""
        run = self.context.state.plan_run(plan_id).moved(state, reason)
        if state is PlanState.FAILED:
            run = run.stopped("rejected" if reason == "rejected" else "stopped")
        self.context.state.keep_plan_run(run)
        self.context.record_plan(run)

    @contextmanager
    def _failing(self, plan_id: str) -> Generator[None]:
        """Let a plan fail with what ends it."""
        try:
            yield
        except asyncio.CancelledError:
            # The worker may evict the run, which then goes on elsewhere.
            if workflow.cancellation_reason() is not None:
                self._fail(plan_id, "cancelled", "the run was cancelled")
            raise
        except (errors.BackstayError, ApplicationError) as error:
            self.broken = self.broken or not isinstance(error, ANSWERS)
            self._fail(plan_id, self._reason(plan_id, error), f"{type(error).__name__}: {error}")
            raise

    def _reason(self, plan_id: str, error: Exception) -> PlanReason:
        run = self.context.state.plan_run(plan_id)
        rehearsing = run.rehearsal is not None and not run.rehearsal.done and isinstance(error, errors.StepFailed)
        if run.state not in _BEFORE or rehearsing:
            if run.state is PlanState.REVIEWING:
                return "review_failed"
            return "stale" if _met_changed_tool(run) else "step_failed"
        match error:
            case errors.Rejected() | errors.Denied() | errors.StepFailed():
                return "rejected"
            case errors.Expired():
                return "expired"
            case errors.ArgumentsInvalid() | errors.ToolNotFound() | errors.TaskInvalid():
                return "invalid"
            case _:
                return "cancelled"

    def _fail(self, plan_id: str, reason: PlanReason, why: str) -> None:
        state = self.context.state
        run = state.plan_run(plan_id)
        if run.ended:
            return
        for index, step in enumerate(run.steps):
            if step.status is StepStatus.RUNNING:
                slot = next((slot for slot in state.undo.slots if slot.step == state.usage.step), None)
                more = {} if slot is None else {"effect": slot.effect, "stands": True}
                run = run.with_step(index, step.moved(StepStatus.FAILED, error=one_line(why, 500), **more))
        state.keep_plan_run(run)
        self._move(plan_id, PlanState.FAILED, reason)

    def _told(self, run: PlanRun) -> dict[str, Any]:
        """Return what the model is told of a plan."""
        steps = [
            {name: value for name, value in output.items() if value is not None and name != "success"}
            for output in run.outputs
        ]
        told: dict[str, Any] = {"plan_id": run.id, "state": run.state.value, "reason": run.reason, "steps": steps}
        people = self._work.people if self.context.state.work.plan is not None else ()
        told |= {DECIDED_BY: list(people)} if people else {}
        told |= {"dry_run": True, "forecast": run.foretold(FORETOLD)} if self._is_dry(run) else {}
        if run.review is not None:
            told["review"] = run.review
        if run.state is PlanState.REVIEWING:
            told["note"] = "the review found too much; correct it with update_plan, or people decide about it"
        return told


def _lenient(decided: RequestOutcome) -> bool:
    """Return whether the plan goes on without the steps that people left out."""
    return decided.per_step or (decided.toggles is not None and decided.toggles.external_processes is False)


def _met_changed_tool(run: PlanRun) -> bool:
    """Return whether a step that the plan cannot do without failed because its tool has changed since the proposal."""
    return any(
        step.status is StepStatus.FAILED and not run.plan.may_fail(index) and (step.error or "").startswith(CHANGED)
        for index, step in enumerate(run.steps)
    )
