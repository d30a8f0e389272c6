"""What all parts of one run share: its state, the activities, the approvals, its clock and its gates."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from temporalio import workflow

from backstay import calls
from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, RequestKind, Verdict
from backstay.approvals.forecast import ForecastEntry
from backstay.authority import Authority
from backstay.budgets.budget import MICRO, TopUp, first_limit_hit
from backstay.errors import BudgetExceeded, Rejected, TaskInvalid
from backstay.plans.plan_run import PlanRun, PlanState
from backstay.policies.denials import Denial
from backstay.policies.ruling import Ruling
from backstay.provenance.source import ArgumentSources
from backstay.requests import FollowTask
from backstay.shown import one_line
from backstay.task.context import ContextItem
from backstay.task.event import EventDraft
from backstay.task.status import State
from backstay.task.task import Task
from backstay.task.theirs import Theirs
from backstay.tools.tool import ToolCall
from workflows.asking.approvals import Approvals
from workflows.asking.reminders import CheckAnswer, never
from workflows.context.calls_in_flight import BatchInFlight
from workflows.dispatch.activity_calls import ActivityCalls, Stopped
from workflows.state.state import RunState
from workflows.state.stopwatch import Stopwatch
from workflows.state.work import RequestOutcome


class RunContext:
    """Hold what the parts of a run work with."""

    def __init__(self, run: str, task: Task, changed: Callable[[], None]) -> None:
        """Lay out an empty context for one task."""
        self.state = RunState(run=run, task=task, budget=task.budget)
        self.stopwatch = Stopwatch(workflow.now)
        self.activities = ActivityCalls(self.state, self.stopwatch)
        self.changed = changed
        self.approvals = Approvals(self.state, self.activities, changed)
        self.activities.ask_about_fault = self._ask_about_fault
        self.calls_in_flight = 0
        self.batch: BatchInFlight | None = None
        """The batch of calls under way."""
        self.working: dict[str, str] = {}
        """By the id of the call: how far servers are that work on one as a task."""
        self.left_tasks: list[FollowTask] = []
        """What has the tasks end for which nobody waits any more."""
        self.taken_over = True
        """False until the state of the execution before is loaded."""
        self.agreed_before: dict[str, RequestOutcome] = {}
        """What people have decided in the execution before about calls that were not begun yet."""
        self.at_gate = 0
        """Whether the run waits at its gate, or lets itself be continued as a new execution."""
        self.continues: Callable[[], bool] = never
        """Whether the run is to continue as a new execution as soon as nothing is under way."""
        self.stuck = ""
        """Why it cannot, when the server would soon end it."""
        self.undoing = False
        self.stops: list[State] = []
        """To what the pauses and undos bring the run whose words are still looked at: it is held for them already."""
        self.bound_undos = 0
        """How many undos are under way with which a next execution would not go on."""
        self.ending = False
        self.added_early: list[dict[str, Any]] = []
        """The amounts that people added to limits before those of the profile were known."""
        self.names_as_sent: dict[str, str] = {}
        """The names of people in the task that were sent in another than their canonical form."""
        self.first_found: tuple[int, calls.SearchFindings] | None = None
        """What the first search found while the run was opened, and the number of its draft."""
        self.after_end = False
        """Whether this workflow undoes effects of a run that has ended, so that another one may have tried before."""

    def record(self, name: str, text: str, **data: Any) -> None:
        """Add an event to the timeline."""
        self.state.record(name, text, workflow.now(), **data)
        self.changed()

    def record_drafts(self, drafts: Sequence[EventDraft], *, kept_as: int = 0) -> None:
        """Add events to the timeline; an activity left them in the store under the numbers from `kept_as` on."""
        for index, draft in enumerate(drafts):
            self.state.record_draft(draft, workflow.now(), kept_as=kept_as and kept_as + index)
        self.changed()

    def record_plan(self, run: PlanRun) -> None:
        """Add the event of a plan that has come to another state."""
        shown = f"{one_line(run.plan.title, 100)} " if run.plan.title else ""
        text = f"{run.name} {shown}-> {run.state.value}{f': {run.reason}' if run.reason else ''}"
        about = {"plan": run.id, "hash": run.plan.hash, "state": run.state.value, "reason": run.reason}
        self.record("plan.changed", text, **about)

    def fail_open_plans(self) -> None:
        """Let the plans fail that the run leaves behind as it ends."""
        for run in [run for run in self.state.plans if not run.ended]:
            ended = run.moved(PlanState.FAILED, "review_failed" if run.review else "cancelled").stopped()
            self.state.keep_plan_run(ended)
            self.record_plan(ended)

    def settle_plans(self) -> None:
        """Let the plans whose effects were to be undone come to the state that this led to."""
        for run in self.state.plans:
            if (settled := run.after_rollback()) is not run:
                self.state.keep_plan_run(settled)
                self.record_plan(settled)

    @property
    def held_up(self) -> str:
        """Return why nothing new is begun now; empty where it is."""
        if self.activities.stopping:
            return "cancelled"
        if self.undoing or State.UNDOING in self.stops:
            return "undo"
        return "paused" if self._pauses else ""

    @property
    def _pauses(self) -> bool:
        return self.state.paused is not None or State.PAUSED in self.stops

    @contextmanager
    def stopped_for(self, state: State) -> Generator[None]:
        """Begin nothing new while a person who may stop the run does so, and interrupt what can be interrupted."""
        self.stops.append(state)
        self.activities.interrupt()
        try:
            yield
        finally:
            self.stops.remove(state)

    def forget_agreed(self) -> None:
        """Forget what people have decided about calls, when these have begun or will not be made."""
        self.state.work.agreed, self.agreed_before = {}, {}

    def tell(self, text: str, *, fact: bool = False) -> None:
        """Tell the model something at its next step; a fact always stays in the context."""
        self.state.append.append(ContextItem(kind="fact" if fact else "note", text=text))

    async def gate(self) -> None:
        """Wait while the run is paused or being undone; raises Stopped when it was cancelled."""
        if self.held_up in {"paused", "undo"}:
            with self.doing(State.PAUSED if self._pauses else State.UNDOING), self.stopwatch.waiting():
                await self._held_up(lambda: self.held_up in {"", "cancelled"})
        if self.activities.stopping:
            raise Stopped

    async def turn(self) -> None:
        """Let the run continue as a new execution here when its history is long; to be called between calls.

        Raises Rejected when it cannot, the server would soon end it, and a person rejects to go on.
        """
        if self.continues():
            await self._held_up(lambda: not self.continues() or self.activities.stopping)
        if self.stuck:
            why, self.stuck = self.stuck, ""
            fault = f"history: at 60 % of what the server allows, and the run cannot continue as a new execution: {why}"
            if not await self._ask_about_fault(fault):
                raise Rejected(fault)

    async def _held_up(self, until: Callable[[], bool]) -> None:
        self.at_gate += 1
        try:
            await workflow.wait_condition(until)
        finally:
            self.at_gate -= 1

    @contextmanager
    def doing(self, state: State) -> Generator[None]:
        """Show what the run is doing for as long as it does it."""
        before, self.state.state = self.state.state, state
        self.changed()
        try:
            yield
        finally:
            self.state.state = before
            self.changed()

    async def check_call(
        self,
        tool: str,
        arguments: dict[str, Any],
        *,
        resolved: bool,
        summary: str,
        of_plan: bool = False,
        in_handler: bool = False,
        results: dict[int, str] | None = None,
        by_model: bool = False,
        theirs: Theirs | None = None,
        where_from: bool = False,
        sources: ArgumentSources | None = None,
        denials: tuple[Denial, ...] = (),
        judge: bool = False,
        before: dict[str, Any] | None = None,
    ) -> calls.CheckedCall:
        """Resolve and validate a call before it is ruled on; with `results`, return it with what references bring.

        `of_plan`: whether the arguments are those of a plan's step, of which `sources` were known when a model proposed
        it. `before`: what a person has changed into them.
        """
        ask = calls.CheckCall(
            tool=tool,
            arguments=arguments,
            resolved=resolved,
            of_plan=of_plan,
            results=results or {},
            by_model=by_model,
            theirs=theirs,
            where_from=where_from,
            sources=sources,
            denials=denials,
            judge=judge,
            before=before,
        )
        execute = self.activities.execute_in_handler if in_handler else self.activities.execute
        return await execute(calls.check_call, ask, summary=summary)

    async def compare_call(
        self,
        call: ToolCall,
        entry: ForecastEntry | None,
        answers: dict[int, str],
        results: dict[int, str] | None,
        *,
        by_model: bool = False,
        theirs: Theirs | None = None,
    ) -> calls.CheckedCall:
        """Return the arguments of a call as it would be sent, and where they are not as foretold.

        `answers` are those for which tokens stand, `results` those to which the arguments of a plan's step refer.
        """
        name = call.tool.name
        ask = calls.CheckCall(
            tool=name,
            arguments=call.arguments,
            resolved=True,
            of_plan=results is not None,
            results=results or {},
            by_model=by_model,
            theirs=theirs,
            sources=call.sources if by_model else None,
            forecast=entry or ForecastEntry(idx=0, tool=""),
            answers=answers,
        )
        shown = one_line(name, 80)
        return await self.activities.execute(calls.check_call, ask, summary=f"compare with the forecast: {shown}")

    async def ask(
        self,
        kind: RequestKind,
        question: str,
        *options: Verdict,
        rule: str,
        ruling: Ruling | None = None,
        authority: Authority | None = None,
        unless: Callable[[], bool] = never,
        key: str,
        whole: ToolCall | None = None,
        check_answer: CheckAnswer | None = None,
        **more: Any,
    ) -> RequestOutcome:
        """Ask people something and wait until they decide, or until `unless` makes the question needless.

        `whole` is the call that it shows, and `check_answer` raises DecisionInvalid for an answer that does not fit.
        `ruling` says who may decide and until when; where no rule asked, `authority` says who may. `key` says what it
        is about, for when the run continues as a new execution meanwhile.
        """
        verdicts = tuple(option.value for option in options)
        request = ApprovalRequest(kind=kind, question=question, options=verdicts, rule=rule, **more)
        if authority is not None and authority.restricts:
            request = request.model_copy(update=dict(authority))
        with self.doing(State.WAITING):
            return await self.approvals.ask(
                request,
                ruling,
                unless=unless,
                key=key,
                calls={} if whole is None else {0: whole},
                check_answer=check_answer,
            )

    async def afford(self, refusal: Callable[[], str | None]) -> None:
        """Go on only when nothing is refused; where the task says so, ask for more.

        Raises BudgetExceeded.
        """
        while (message := refusal()) is not None:
            self.record("budget.exceeded", message)
            if self.state.budget.on_exhausted != "ask" or not await self._ask_for_more(message, refusal):
                raise BudgetExceeded(message)

    async def count_step(self) -> None:
        """Count a step, unless the execution before has counted it; raises BudgetExceeded."""
        if self.state.work.counted:
            return
        await self.afford(self.step_refused)
        self.state.usage = self.state.usage.decided()
        self.state.work.counted = True

    async def count_plan_steps(self, count: int) -> None:
        """Count steps of a plan that are made together; raises BudgetExceeded."""
        state = self.state
        await self.afford(lambda: first_limit_hit(state.budget, state.usage, self.stopwatch.seconds, decisions=False))
        usage = state.usage
        self.state.usage = usage.model_copy(update={"plan_steps": usage.plan_steps + count})

    def uncount_step(self) -> None:
        """Undo the step that was counted last, because nothing was sent for it."""
        self.state.usage = self.state.usage.decided(-1)
        self.state.work.counted = False

    def step_refused(self) -> str | None:
        """Return why there may be no further step, or None."""
        return first_limit_hit(
            self.state.budget, self.state.usage, self.stopwatch.seconds, decisions=self.state.task.plan is None
        )

    async def top_up(self, more: dict[str, Any]) -> dict[str, Any]:
        """Raise limits; raises TaskInvalid for what cannot be raised."""
        self.raise_limits(more)
        return self.state.budget.plain()

    def raise_limits(self, more: dict[str, Any]) -> None:
        """Raise limits by what a person adds to them here, or has added to those of a sub-run."""
        state = self.state
        opened = bool(state.opened.store)
        state.budget = state.budget.raised(more, opened=opened)
        if not opened:
            self.added_early.append(TopUp.admit(more).model_dump(exclude_none=True))
        ceiling = state.budget.max_llm_cost_usd
        state.ledger = state.ledger.model_copy(update={"ceiling": None if ceiling is None else round(ceiling * MICRO)})
        self.record("budget.topped_up", one_line(", ".join(f"{name} +{amount}" for name, amount in more.items()), 500))

    async def _ask_for_more(self, message: str, refusal: Callable[[], str | None]) -> bool:
        decided = await self.ask(
            RequestKind.BUDGET,
            f"{message}. Top up and go on, or reject to end the run?",
            Verdict.ANSWER,
            Verdict.REJECT,
            rule="budget: on_exhausted asks",
            authority=self.approvals.authority,
            unless=lambda: refusal() is None,
            key="budget",
            check_answer=self._check_added,
            schema={"type": "object", "description": 'limits to add, such as {"max_steps": 5}'},
        )
        if decided.verdict is not Verdict.ANSWER:
            return decided.verdict is None and refusal() is None
        try:
            await self.top_up(decided.answer)
        except TaskInvalid as error:
            self.record("approval.refused", str(error))
        return True

    async def _check_added(self, answer: Any) -> None:
        """Raise DecisionInvalid for an answer that adds to no limit."""
        try:
            raised = self.state.budget.raised(
                answer if isinstance(answer, dict) else {}, opened=bool(self.state.opened.store)
            )
        except TaskInvalid as error:
            raise DecisionInvalid(f"answer: {error}") from None
        if raised == self.state.budget:
            raise DecisionInvalid('answer: adds to no limit of the run; give limits to add, such as {"max_steps": 5}')

    async def _ask_about_fault(self, fault: str) -> bool:
        decided = await self.ask(
            RequestKind.OUTCOME,
            f"A fault lasts: {fault}. Retry, or reject to stop?",
            Verdict.RETRY,
            Verdict.REJECT,
            rule="engine: a transient fault lasted too long",
            authority=self.approvals.authority,
            key=f"fault {fault.partition(':')[0]}",
        )
        return decided.verdict is Verdict.RETRY
