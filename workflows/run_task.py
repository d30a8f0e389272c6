"""RunTask: one task as one durable workflow."""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from temporalio import workflow

from backstay import calls
from backstay.approvals.approval import RequestKind, Verdict
from backstay.budgets.budget import MICRO, Budget, Ledger
from backstay.canonical import canonical
from backstay.errors import BackstayError, Denied, OutputInvalid, TaskInvalid
from backstay.profile import FINAL, FURTHER, behind_marker, marker_of
from backstay.shown import one_line
from backstay.task.context import ContextItem, answered
from backstay.task.decision import (
    Action,
    AskPerson,
    CallTools,
    Decision,
    Delegate,
    Finish,
    MarkStep,
    Perception,
    ProposePlan,
    ReadResult,
    Recall,
    RunProgram,
    SearchTools,
)
from backstay.task.result import Outcome
from backstay.tools.stages import Purpose
from backstay.tools.tool import DECIDED_BY, ToolResult
from workflows.admitting import admitted_task, names_as_sent, out_of_bounds, repeated
from workflows.calls.lifelines import count_failure
from workflows.calls.model_calls import ModelCalls
from workflows.calls.tool_calls import ToolCalls, answer_to
from workflows.consent.consent import refused, rejected
from workflows.context.carrying import CarriedState, Carrying, carried_by, take_over
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import as_application_error
from workflows.ending import Ending, LoopOutcome, ended_before, ended_by, ended_with
from workflows.messages import UNREAD, Messages
from workflows.plans.plans import PlanLifecycle
from workflows.programs.programs import Programs
from workflows.state.work import Work
from workflows.subruns.subruns import Delegations

Value = TypeVar("Value")
EFFECTS = "done_and_stands_do_not_repeat"
"""Under which name a program's answer tells the model what it did: in the answer, since arguments are data."""
NEXT = "Go on with the task. Your program says what comes next:"
FAILED = "finish was dropped, because a call beside it did not succeed; look at the answers and decide again"
REVIEWED = "finish was dropped, because a person has decided about a plan whose review found too much; decide again"
FIRST_SEARCH_LIMIT = 40
PATIENCE_S = 25.0
"""How long one search waits for servers that are starting; the next one waits on."""
MOST_REPAIRS = 3
"""How many times the model is asked again for a value that fits the output schema."""
READ_WHILE_PLANNING = frozenset({"fs", "shell"})
"""The providers whose reads a model may make before people approve a plan."""
FINALIZE_SHARE = 4
"""At most a quarter of the ceiling is kept back for the closing summary."""


@workflow.defn(name="RunTask")
class RunTask(Messages):
    """Turn a task into a result, whatever is killed on the way."""

    @workflow.init
    def __init__(self, task: Any = None, *more: Any) -> None:
        """Validate the task; an invalid one fails the workflow as `TaskInvalid`."""
        carried = carried_by(more)
        self.carried = carried if isinstance(carried, CarriedState) else None
        self.invalid, admitted = admitted_task(task)
        self.invalid = carried if isinstance(carried, TaskInvalid) else self.invalid
        info = workflow.info()
        self.invalid = self.invalid or repeated(info)
        self.prepare_handlers()
        self.context = RunContext(f"{info.workflow_id}/{info.first_execution_run_id}", admitted, self.show)
        self.context.names_as_sent = names_as_sent(task, admitted)
        self.context.taken_over = self.carried is None
        self.carrying = self.carries = Carrying(self.context)
        self.context.continues = lambda: self.carries.wanted
        self.tool_calls = ToolCalls(self.context)
        self.programs = Programs(self.context, self.tool_calls)
        self.plans = PlanLifecycle(self.context, self.tool_calls)
        self.subruns = Delegations(self.context, self.tool_calls)
        self.model_calls = ModelCalls(self.context)

    @workflow.run
    async def run(self, task: Any = None, *more: Any) -> dict[str, Any]:
        """Drive the task to its end; every end but an invalid task, a cancellation and our own bugs is a Result."""
        # The server gives later executions a timeout of its own.
        outside = self.invalid or (None if self.carried else out_of_bounds(workflow.info(), task))
        if outside is not None:
            raise as_application_error(outside)
        self.listening = asyncio.ensure_future(self.listen())
        driving = asyncio.ensure_future(self.drive())
        cancelled = False
        try:
            await self.carries.wait(driving, task)
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is None:
                raise  # the worker evicts the run; code that swallows it stays behind, amid another run's task
            # A call that is on its way to the world may finish; the rest stops here.
            cancelled = self.context.activities.stopping = True
            driving.cancel()
            await workflow.wait([driving])
        self.context.activities.stopping = False
        ended = self._ended(driving, cancelled=cancelled)
        # Undoing effects must not wait for cleanup.
        tidy = ended.outcome is Outcome.COMPLETED
        leaving = asyncio.ensure_future(self.programs.leave(patient=tidy))
        if tidy:
            await self._finished(leaving, task)
        result = await self._finished(Ending(self.context).close(ended), task)
        await self._finished(leaving, task)
        self.result = result.plain()
        self.show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        if cancelled:
            raise asyncio.CancelledError
        if ended.error is not None and ended.fatal:
            raise as_application_error(ended.error)
        return self.result

    async def _finished(self, work: Awaitable[Value], task: Any) -> Value:
        """Finish the work even when the run is cancelled meanwhile."""
        future = asyncio.ensure_future(work)
        while not future.done():
            try:
                await self.carries.wait(future, task)
            except asyncio.CancelledError:
                if workflow.cancellation_reason() is None:
                    raise
        return future.result()

    async def drive(self) -> Finish | None:
        """Decide and perform until the task is finished; None when the execution before came to the end."""
        task, work = self.context.state.task, self.context.state.work
        if self.carried is not None:
            await take_over(self.context, self.carried)
            work = self.context.state.work
            self.context.after_end = work.ended is not None
            if work.ended is not None:
                return None
        else:
            await open_context(self.context)
        if task.plan is not None:
            words = self.context.state.opened.plan_words
            return await self.plans.run(task.plan if words is None else task.plan.in_words(words))
        if not work.searched:
            await first_search(self.context, await self.model_calls.perceive())
            work.searched = True
        while True:
            if work.decision is None:
                await self._until_free()
                work.decision = await self.model_calls.decide()
                self._count_output_fault(work.decision)
                self.context.approvals.withdraw_unasked()
            # The run may continue as a new execution while people are asked, and does not ask the model again then.
            await self.model_calls.pay()
            if (finish := await self._carried_out(work, work.decision)) is not None:
                return finish
            count_failure(self.context, work.decision)
            work.next_decision()

    async def _until_free(self) -> None:
        """Wait until the model may be asked; not with a decision that came with the calls before it."""
        if self.model_calls.has_decided:
            return
        await self.context.gate()
        await self.context.turn()
        if self.context.activities.takes_news:
            # The model is asked with what people have said before; a first message often comes with the start.
            await self.context.activities.news_taken()
            await self.context.gate()

    async def _carried_out(self, work: Work, decision: Decision) -> Finish | None:
        """Perform the actions that are left; return the one that ends the run, if it may."""
        if decision.catalog and decision.catalog != self.context.state.catalog:
            await search(self.context, self.context.state.searched, limit=FIRST_SEARCH_LIMIT)
        while (finish := await self._said_by_program(work)) is None and work.action < len(decision.actions):
            action = decision.actions[work.action]
            if not isinstance(action, Finish):
                succeeded = await self._performed(action)
                work.failed, work.succeeded = work.failed or not succeeded, work.succeeded or succeeded
            elif await self._may_end(work, action):
                return action
            work.next_action()
            self.context.approvals.withdraw_unasked()
        return finish

    async def _said_by_program(self, work: Work) -> Finish | None:
        """Return the end that a program has declared with a marker, or pass its instruction on to the model."""
        if marker_of(work.said) == FURTHER:
            # It may hold what tools have answered: the model is told whose words these are.
            self.context.tell(f"{NEXT} {behind_marker(work.said)}")
        finish = Finish(summary=work.said)
        final = marker_of(work.said) == FINAL and self.context.state.task.output_schema is None
        ends = final and await self._may_end(work, finish)
        # Where people are asked first, the next execution looks at it, too.
        work.said = ""
        return finish if ends else None

    async def _may_end(self, work: Work, finish: Finish) -> bool:
        """Return whether the run ends with this; if not, the model is told why."""
        if work.failed:
            self._drop(finish, FAILED)
        elif await self.plans.conclude():
            self._drop(finish, REVIEWED)
        elif await self._has_news():
            self._drop(finish, UNREAD)
        else:
            self.heard_out = True
            return True
        return False

    def _ended(self, driving: "asyncio.Task[Finish | None]", *, cancelled: bool) -> LoopOutcome:
        if driving.cancelled():
            return ended_by(asyncio.CancelledError(), cancelled=True)
        error = driving.exception()
        if error is not None:
            return ended_by(error, cancelled=cancelled)
        before = self.context.state.work.ended
        finish = driving.result()
        return ended_before(before) if finish is None and before is not None else ended_with(finish or Finish())

    async def _performed(self, action: Action) -> bool:
        """Perform one action; return whether all of it succeeded."""
        match action:
            case SearchTools():
                await search(
                    self.context,
                    action.query,
                    limit=action.limit,
                    detail_level=action.detail_level,
                    call_id=action.call_id,
                )
                return True
            case ReadResult():
                return await self._read(action)
            case Recall():
                return await self._recall(action)
            case AskPerson():
                return await self._ask_person(action)
            case CallTools():
                return await self._call(action)
            case Delegate():
                answers = await self.subruns.delegate(action)
                self._answer(answers)
                return all(result.success for _, result in answers)
            case ProposePlan():
                return await self._propose(action)
            case MarkStep():
                self._say(action.call_id, self.plans.mark_step(action.idx, action.status, action.note))
                return True
            case RunProgram():
                return await self._run_program(action)
            case Finish():
                return True

    async def _run_program(self, action: RunProgram) -> bool:
        try:
            result = await self.programs.run(action)
        except BackstayError:
            if effects := self.programs.effects():
                # There is no answer to tell it with; the model that sums up the run is told.
                self.context.tell(canonical({EFFECTS: effects}))
            raise
        self._answer([(action.call_id, result)], self._done_in_program())
        return result.success

    async def _call(self, action: CallTools) -> bool:
        if self.context.state.planning and not _only_reads_files(action):
            # The functions that the model is shown while it plans make no such calls.
            fault = refused(Denied("nothing is done before a plan is approved; propose one"))
            self._answer([(call.id, fault) for call in action.calls])
            return False
        decision = self.context.state.work.decision
        last = decision is not None and decision.actions[-1] is action
        then = self.model_calls if last else None
        performed = await self.tool_calls.perform(Purpose.CALL, action.calls, then=then)
        if not self.model_calls.has_decided:
            self.context.state.append += [answered(answer_to(made.call), made.result) for made in performed]
        return all(made.result.success for made in performed)

    async def _propose(self, action: ProposePlan) -> bool:
        success, told = await self.plans.propose(action)
        self._say(action.call_id, told, with_steps="steps" in told)
        return success

    def _say(self, call_id: str, told: dict[str, Any], *, with_steps: bool = False) -> None:
        item = ContextItem(kind="answer", call_id=call_id, text=canonical(told), with_steps=with_steps)
        self.context.state.append.append(item)

    async def _read(self, action: ReadResult) -> bool:
        state = self.context.state
        ask = calls.ReadStored(ref=action.ref, path=action.path, offset=action.offset, limit=action.limit)
        result = await self.context.activities.execute(
            calls.read_result, ask, summary=f"read {action.ref[:12]} {action.path[:60]}"
        )
        state.count_free_call()
        self._answer([(action.call_id, result)])
        return result.success

    async def _recall(self, action: Recall) -> bool:
        ask, shown = calls.RecallMemory(query=action.query, limit=action.limit), one_line(action.query, 60)
        result = await self.context.activities.execute(calls.recall, ask, summary=f"recall: {shown}")
        found = result.snippet or result.error or "nothing"
        data = {} if result.ref is None else {"summary_ref": result.ref}
        self.context.record("memory.recalled", f"recalled: {shown} -> {found}", **data)
        self.context.state.count_free_call()
        self._answer([(action.call_id, result)])
        return result.success

    async def _ask_person(self, action: AskPerson) -> bool:
        question = one_line(action.question, 2000)
        options = (Verdict.ANSWER, Verdict.REJECT)
        decided = await self.context.ask(
            RequestKind.QUESTION, question, *options, rule="engine: the model asks", key=f"question {action.call_id}"
        )
        if decided.stop:
            raise rejected(decided)
        if decided.verdict is Verdict.ANSWER:
            answer: Any = {"answer": decided.answer, "by": decided.by}
            answer |= {"comment": decided.comment} if decided.comment else {}
        else:
            answer = {
                "answer": None,
                "by": decided.by,
                "comment": decided.comment,
                "note": "the person does not answer",
            }
        item = ContextItem(kind="answer", call_id=action.call_id, text=canonical(answer))
        if not decided.verified and self.context.state.doubts_names:
            item = item.model_copy(update={"unverified": True})
        self.context.state.append.append(item)
        return True

    def _done_in_program(self) -> dict[str, Any]:
        """Return what the model is told of a program beside its result."""
        told = {EFFECTS: self.programs.effects(), DECIDED_BY: self.programs.people()}
        return {name: said for name, said in told.items() if said}

    def _answer(self, answers: list[tuple[str, ToolResult]], more: dict[str, Any] | None = None) -> None:
        """Tell the model what calls led to, and in the same place what else is to be known of them."""
        text = canonical(more) if more else None
        for call_id, result in answers:
            item = ContextItem(kind="answer", call_id=call_id, text=text)
            self.context.state.append.append(answered(item, result))

    def _count_output_fault(self, decision: Decision) -> None:
        """Count an answer that is not the value which the task wants; raises OutputInvalid after the last repair."""
        if not (fault := decision.output_fault):
            return
        work = self.context.state.work
        work.output_faults, work.output_fault = work.output_faults + 1, fault
        self.context.record("output.refused", f"answer {work.output_faults} was not taken: {fault}")
        if work.output_faults > MOST_REPAIRS:
            raise OutputInvalid(
                f"the model gave no valid output, though it was asked {MOST_REPAIRS} times more: {fault}"
            )

    def _drop(self, finish: Finish, note: str) -> None:
        self.context.record("finish.dropped", note)
        if finish.call_id is None:
            self.context.tell(note)
        else:
            self.context.state.append.append(ContextItem(kind="answer", call_id=finish.call_id, text=note))


def _only_reads_files(action: CallTools) -> bool:
    return all(call.tool.provider in READ_WHILE_PLANNING and not call.effectful for call in action.calls)


async def open_context(context: RunContext) -> None:
    """Resolve profile, prices, policy, catalog, store and prompt, and prepare the ledger."""
    state = context.state
    started = workflow.now()
    search = None
    if state.task.plan is None:
        search = calls.FindTools(query="", limit=FIRST_SEARCH_LIMIT, draft=state.take_draft_number())
    ask = calls.OpenRun(
        task=state.task,
        search=search,
        at=workflow.now().isoformat(timespec="milliseconds"),
        workflow_run_id=workflow.info().run_id,
        names_as_sent=context.names_as_sent,
    )
    opened = await context.activities.execute(calls.open_run, ask, summary="open the run")
    if search is not None and opened.found is not None:
        context.first_found = search.draft, opened.found
        opened = opened.model_copy(update={"found": None})
    state.opened, state.context, state.catalog = opened, opened.context, opened.catalog
    state.note_private(opened.private)
    # Only now is it known what of the task may be told.
    more = {} if state.task.follows is None else {"follows": state.task.follows.workflow_id}
    state.record("run.started", opened.task_line or "plan", started, user_id=state.task.user_id, **more)
    if opened.misnamed:
        context.record("tools.missing", opened.misnamed)
    state.budget = _budget_of(context)
    ceiling = state.budget.max_llm_cost_usd
    micro = None if ceiling is None else round(ceiling * MICRO)
    finalize = (
        0
        if micro is None or state.budget.on_exhausted != "finalize"
        else min(opened.finalize_micro, micro // FINALIZE_SHARE)
    )
    state.ledger = Ledger(ceiling=micro, finalize=finalize)
    context.changed()


def _budget_of(context: RunContext) -> Budget:
    """Return the limits that the profile gives where the task sets none, with what people have added meanwhile."""
    budget = context.state.opened.profile.budget_of(context.state.task.budget)
    for added in context.added_early:
        budget = budget.raised(budget.room_for(added))
    return budget


async def first_search(context: RunContext, perceived: Perception | None) -> None:
    """Search by the task, and by what was perceived of it."""
    query, servers = context.state.searched, ()
    if perceived is not None:
        query, servers = f"{perceived.tool_hint} {query}".strip(), perceived.selected_servers
    made = context.first_found
    await search(context, query, limit=FIRST_SEARCH_LIMIT, patience_s=PATIENCE_S, servers=servers, made=made)


async def search(
    context: RunContext,
    query: str,
    *,
    limit: int,
    detail_level: str = "summary",
    call_id: str | None = None,
    patience_s: float = 0,
    servers: tuple[str, ...] = (),
    made: tuple[int, calls.SearchFindings] | None = None,
) -> None:
    """Search the catalog; the hits become visible to the model at its next step.

    With patience, the search is made anew for as long as a server is starting. `made` is what a search has found
    already, behind the number of its draft.
    """
    state = context.state
    shown = one_line(query, 60)
    draft, known = made or (state.take_draft_number(), None)
    ask = calls.FindTools(
        query=query[:2000],
        limit=limit,
        draft=draft,
        step=state.usage.step,
    )
    if detail_level == "full":
        ask = ask.model_copy(update={"detail_level": detail_level})
    if patience_s:
        ask = ask.model_copy(update={"patience_s": patience_s})
    if servers:
        ask = ask.model_copy(update={"servers": servers})
    found = known or await context.activities.execute(calls.search_tools, ask, summary=f"search tools: {shown}")
    while patience_s and found.starting:
        found = await context.activities.execute(calls.search_tools, ask, summary="wait for servers that start")
    context.record_drafts(ask.happened(found.count, found.catalog), kept_as=ask.draft)
    state.count_free_call()
    state.catalog = found.catalog
    item = ContextItem(kind="tools", ref=found.ref)
    state.append.append(item if call_id is None else item.model_copy(update={"call_id": call_id}))
    _tell_missing(context, found.unavailable)


def _tell_missing(context: RunContext, unavailable: dict[str, str]) -> None:
    """Name the providers that cannot be used, to people and to the model, whenever they change."""
    work = context.state.work
    for name, why in unavailable.items():
        if name not in work.missing:
            context.record("tools.missing", f"{name} cannot be used: {why}", provider=name)
            context.tell(f"The tools of {name} cannot be used now: {why}. Where the task needs them, say so.")
    for name in sorted(work.missing.keys() - unavailable.keys()):
        context.record("tools.back", f"{name} can be used now", provider=name)
    work.missing = dict(unavailable)
