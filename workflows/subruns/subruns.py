"""Delegate: ask for consent, reserve shares, start sub-runs, wait for all of them, and settle what they leave."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from typing import Any

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from backstay import calls, errors
from backstay.authority import Authority
from backstay.budgets.share import Share, Spent, divided, left_of
from backstay.budgets.usage import Usage
from backstay.effects.compensation import UndoOutcome, compensation_of
from backstay.policies.engine_tools import DELEGATION
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line
from backstay.starting import EndedChild, EndedSubrun, WantedSubrun, is_below, subrun_id
from backstay.task.decision import Delegate, Delegation
from backstay.task.result import Outcome
from backstay.task.status import State
from backstay.tools.stages import Purpose
from backstay.tools.tool import DELEGATE, ToolCall, ToolResult
from workflows.calls.rollback import Rollback
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import refused
from workflows.context.calls_in_flight import CallInFlight
from workflows.context.run_context import RunContext
from workflows.dispatch.children import fault_of, start_run
from workflows.state.work import OpenSubrun

INHERITED = frozenset(
    {"user_id", "session_id", "by", "profile", "model", "metadata", "extra_context", "on_failure", "rehearse"}
)
"""The fields of its task that a run passes on."""
LEFT = "its effects are left to the run that delegated to it"
_LONGEST_PAUSE_S = 60.0


class Delegations:
    """Carry delegations from the model's decision to what their sub-runs have left."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Work at the run's context, and ask people through its one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self._running: list[workflow.ChildWorkflowHandle[Any, Any]] = []
        self._cancelled = False

    async def delegate(self, action: Delegate) -> list[tuple[str, ToolResult]]:
        """Return what each part came to, by the id of its call; an error in it is an answer for the model.

        Raises BudgetExceeded, Expired or Rejected.
        """
        state, parts = self.context.state, action.parts
        try:
            shares = state.work.shares or self._shares(parts)
        except (errors.ArgumentsInvalid, errors.Denied) as error:
            state.work.fault = f"{DELEGATE}: {error}" if isinstance(error, errors.ArgumentsInvalid) else ""
            made = [_as_call(part, None) for part in parts]
            return [self._told(call, refused(error)) for call in made]
        made = [_as_call(part, share) for part, share in zip(parts, shares, strict=True)]
        state.work.shares = tuple(shares)
        answers = await self._agreed(made)
        state.work.shares = ()
        going = [at for at, answer in enumerate(answers) if answer is None]
        opened = [self._opened(parts[at], made[at], shares[at]) for at in going]
        state.work.subruns = tuple(child for child, _ in opened)
        if opened:
            for at, result in zip(going, await self._carried_out(opened), strict=True):
                answers[at] = result
        return [
            self._told(call, answer or ToolResult(success=False)) for call, answer in zip(made, answers, strict=True)
        ]

    def _shares(self, parts: Sequence[Delegation]) -> list[Share]:
        """Return the share of each part; raises Denied or ArgumentsInvalid where no such sub-runs may be started."""
        state, policy = self.context.state, self.context.state.opened.policy
        limits, begun = policy.delegating, state.next_subrun - 1
        if state.planning:
            raise errors.Denied("nothing is done before a plan is approved; propose one")
        if len(state.opened.above) >= limits.max_depth:
            raise errors.Denied(f"delegation.max_depth: the policy lets runs delegate down to depth {limits.max_depth}")
        if begun + len(parts) > limits.max_runs:
            raise errors.Denied(f"delegation.max_runs: {begun} of {limits.max_runs} sub-runs of this run were started")
        for part in parts:
            try:
                policy.tightened_by(part.policy)
            except errors.PolicyInvalid as error:
                raise errors.ArgumentsInvalid(f"policy: {error}") from None
        usage = reduce(Usage.called, [DELEGATE] * len(parts), state.usage)
        left = left_of(state.budget, usage, state.ledger, self.context.stopwatch.seconds)
        return divided(left, [part.share for part in parts])

    async def _agreed(self, made: Sequence[ToolCall]) -> list[ToolResult | None]:
        """Return why a part may not be given away, or None where it may; it counts as a call then."""
        consent = self.tool_calls.consent
        try:
            answered = await consent.obtain(made, Purpose.CALL)
            going = [answer for answer in answered.values() if isinstance(answer, ToolCall)]
            await consent.afford(going)
            await self.context.gate()
        finally:
            self.context.forget_agreed()
        for _ in going:
            self.context.state.usage = self.context.state.usage.called(DELEGATE)
        answers = (answered[at] for at in range(len(made)))
        return [answer if isinstance(answer, ToolResult) else None for answer in answers]

    def _opened(self, part: Delegation, call: ToolCall, share: Share) -> tuple[OpenSubrun, WantedSubrun]:
        """Reserve for a sub-run, and name it."""
        state, info, held = self.context.state, workflow.info(), None
        n, state.next_subrun = state.next_subrun, state.next_subrun + 1
        if share.micro is not None:
            state.ledger, held = state.ledger.reserve(share.micro)
        workflow_id = subrun_id(info.workflow_id, info.first_execution_run_id, n)
        task = state.task.model_dump(mode="json", by_alias=True, exclude_unset=True)
        task = {field: given for field, given in task.items() if field in INHERITED}
        beside = {
            "max_calls_per_program": state.budget.max_calls_per_program,
            "on_exhausted": state.budget.on_exhausted,
        }
        task |= {"text": part.task, "budget": {**share.fields, **beside}}
        task |= {} if part.policy is None else {"policy": part.policy}
        child = OpenSubrun(workflow_id=workflow_id, call=call, share=share, held=held)
        return child, WantedSubrun(n=n, workflow_id=workflow_id, task=task, share=share)

    async def _carried_out(self, opened: Sequence[tuple[OpenSubrun, WantedSubrun]]) -> list[ToolResult]:
        """Run the sub-runs to their ends; return what each came to."""
        state, wanted = self.context.state, tuple(want for _, want in opened)
        known: dict[str, Any] = {"private": tuple(state.private)} if state.private else {}
        ask = calls.BeginSubruns(subruns=wanted, context=state.context, step=state.usage.step, **known)
        summary = f"begin {len(wanted)} sub-runs"
        begun = await self.context.activities.execute(calls.begin_subruns, ask, summary=summary)
        if begun.refused:
            for child, _ in opened:
                self._paid(child, Spent())
            return [refused(errors.Denied(begun.refused)) for _ in opened]
        with self.context.doing(State.CALLING), self.context.stopwatch.waiting():
            await self._ended(wanted)
        first = state.next_effect
        ended = await self.settle()
        await self._undo(ended, first)
        return [each.result for each in ended]

    async def _ended(self, wanted: Sequence[WantedSubrun]) -> None:
        """Start the sub-runs and wait for the ends of all, also when this run is cancelled: then they are, too."""
        running = [asyncio.ensure_future(self._lived(want)) for want in wanted]
        while not all(each.done() for each in running):
            try:
                await workflow.wait(running)
            except asyncio.CancelledError:
                if workflow.cancellation_reason() is None:
                    raise  # the worker evicts the run
                self._cancelled = True
                for handle in self._running:
                    handle.cancel()
        ends = {end.workflow_id: end for end in (each.result() for each in running)}
        open_ones = self.context.state.work.subruns
        self.context.state.work.subruns = tuple(
            child.model_copy(update={"ended": ends[child.workflow_id]}) for child in open_ones
        )
        if self._cancelled:
            raise asyncio.CancelledError

    async def _lived(self, want: WantedSubrun) -> EndedChild:
        """Start one sub-run and wait for its end."""
        name, line = want.workflow_id, one_line(str(want.task["text"]), 160)
        try:
            handle = await start_run(name, want.task, line, workflow.ParentClosePolicy.REQUEST_CANCEL)
        except WorkflowAlreadyStartedError:
            return EndedChild(workflow_id=name, unseen=True)
        self.context.record("subrun.started", f"{name}: {line}", workflow_id=name, share=want.share.shown)
        self.context.working[name] = f"sub-run {name}: {line}"
        self.context.changed()
        self._running.append(handle)
        if self._cancelled:
            handle.cancel()
        await workflow.wait([handle])
        self._running.remove(handle)
        self.context.working.pop(name, None)
        return EndedChild(workflow_id=name, fault=fault_of(handle))

    async def settle(self) -> list[EndedSubrun]:
        """Count what the sub-runs under way have spent, and take over their effects that stand."""
        state, pause = self.context.state, 1.0
        children = state.work.subruns
        told = [child.ended or EndedChild(workflow_id=child.workflow_id, unseen=True) for child in children]
        ask = calls.EndSubruns(children=tuple(told), first_effect=state.next_effect)
        while True:
            summary = f"settle {len(children)} sub-runs"
            ended = await self.context.activities.execute(calls.end_subruns, ask, summary=summary)
            if not any(each.open for each in ended.subruns):
                break
            self._cancel_unseen(ended.subruns)
            # One that was started before a reset of this run: only Temporal can be asked about its end.
            await workflow.sleep(timedelta(seconds=pause), summary="wait for sub-runs that were started before")
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        state.next_effect = max(state.next_effect, ended.next_effect)
        slots = tuple(compensation_of(effect) for effect in ended.effects)
        state.undo = state.undo.joined(slots, ended.count, ended.authority or Authority())
        for child, each in zip(children, ended.subruns, strict=True):
            spent = each.spent or each.whole or child.share.whole
            self._paid(child, spent)
            data: dict[str, Any] = {"workflow_id": child.workflow_id, "outcome": each.outcome}
            data |= {"known": each.spent is not None, **_shown(spent)}
            self.context.record("subrun.ended", f"{child.workflow_id}: {each.outcome}", **data)
        return list(ended.subruns)

    def _cancel_unseen(self, subruns: Sequence[EndedSubrun]) -> None:
        for each in subruns if self.context.ending else ():
            if each.open:
                cancelling = asyncio.ensure_future(workflow.get_external_workflow_handle(each.workflow_id).cancel())
                # A sub-run that has ended meanwhile cannot be cancelled.
                cancelling.add_done_callback(lambda done: done.cancelled() or done.exception())

    def _paid(self, child: OpenSubrun, spent: Spent) -> None:
        """Let what a sub-run has spent take the place of its share."""
        state = self.context.state
        # From here on nobody counts it again, whatever comes in between.
        state.work.subruns = tuple(each for each in state.work.subruns if each.workflow_id != child.workflow_id)
        state.note_private(spent.private)
        state.usage = state.usage.with_subrun(spent.usage)
        if child.held is not None:
            state.ledger = state.ledger.settle(child.held, spent.micro)
        else:
            state.ledger = state.ledger.model_copy(update={"spent": state.ledger.spent + spent.micro})
        self.context.stopwatch.add(spent.wall_ms / 1000)
        if added := state.budget.room_for(spent.added):
            self.context.raise_limits(added)

    async def _undo(self, ended: Sequence[EndedSubrun], first: int) -> None:
        """Undo what sub-runs did that somebody has cancelled, as any run that is cancelled undoes its effects.

        `first` is the lowest number that their effects can have in this run.
        """
        context, state = self.context, self.context.state
        for each in ended:
            name = each.workflow_id
            made = [slot for slot in state.undo.slots if slot.made_by == name or is_below(slot.made_by, name)]
            some = made or state.undo.below_effect >= first
            if each.outcome != Outcome.CANCELLED.value or not some or state.task.on_failure == "keep":
                continue
            if context.approvals.authority.restricts:
                context.record("undo.withheld", f"{name} was cancelled: the policy names who may undo its effects")
                continue
            outcome, whole = await Rollback(context).undo_made_by(name, first)
            if made or outcome.count or not whole:
                context.tell(_cancelled(name, outcome, whole=whole), fact=True)

    def _told(self, call: ToolCall, result: ToolResult) -> tuple[str, ToolResult]:
        step = self.context.state.usage.step
        self.tool_calls.tell(CallInFlight(Purpose.CALL, call, 0, step), result)
        return call.id, result


def _cancelled(name: str, outcome: UndoOutcome, *, whole: bool) -> str:
    """Say what became of the effects of a sub-run that a person has cancelled."""
    stand = outcome.kept + outcome.parked
    said = f"{outcome.compensated} are undone, {stand} could not be"
    rest = "" if whole else "; the others stand, because the history of this run is too long for more"
    return f"A person has cancelled the sub-run {name}; its effects were undone, as far as can be: {said}{rest}."


def _as_call(part: Delegation, share: Share | None) -> ToolCall:
    """Return a delegation as a call: a policy and a person see and approve all that the sub-run is given."""
    arguments: dict[str, Any] = {"task": part.task}
    arguments |= {} if share is None else {"share": share.shown}
    arguments |= {} if part.policy is None else {"policy": part.policy}
    # It goes nowhere by itself: where values came from is looked at in each call of the sub-run.
    return ToolCall(
        id=part.call_id, tool=DELEGATION, arguments=arguments, reason=part.reason, sources=ArgumentSources()
    )


def _shown(spent: Spent) -> dict[str, Any]:
    usage = spent.usage
    return {"steps": usage.steps_taken, "tool_calls": usage.tool_calls, "llm_cost_usd": round(spent.micro / 1e6, 6)}
