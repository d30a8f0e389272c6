"""UndoRun: undo the effects of a run that has ended."""

import asyncio
from collections.abc import Iterable
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals import approvers
from backstay.approvals.approval import RequestKind, Verdict
from backstay.approvals.proof import UNDO_RUN
from backstay.authority import Authority, Principal
from backstay.bounds import MOST, Id, Name, Words
from backstay.effects.compensation import UndoOutcome, UndoStack, compensation_of
from backstay.effects.effect import SAYS_SO, EffectState
from backstay.errors import BackstayError, DecisionRefused, Expired, NotVerified, TaskInvalid
from backstay.frozen import Frozen
from backstay.policies.ruling import Ruling
from backstay.responses import NOT_OPENED
from backstay.shown import counted, one_line
from backstay.task.result import Outcome, Result
from backstay.task.status import State
from backstay.task.task import Task
from workflows.asking.hiding import without_secrets
from workflows.calls import rollback
from workflows.consent.consent import rejected
from workflows.context import carrying
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import as_application_error, fitting
from workflows.ending import ended_by
from workflows.handlers import Handlers


class UndoRequest(Frozen):
    """Name the run whose effects are to be undone."""

    workflow_id: Id
    run_id: str | None = Field(default=None, max_length=100)
    to_step: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    last_seen: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    """The newest effect of what was shown before; a later one is not undone unseen."""
    done: int | None = Field(default=None, strict=True, ge=1, le=MOST)
    """The parked effect that a person has undone by hand: it is recorded as that, and nothing is called."""
    comment: Words = Field(default="", max_length=4000)
    """What that person says of it."""
    by: Principal = ""
    proof: Name | None = None
    """Proves `by`: signed for the update `UndoRun` of the run that is undone."""

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if self.done is None and self.comment:
            raise ValueError("comment: only with done; leave it out")
        for name in ("to_step", "last_seen"):
            if self.done is not None and getattr(self, name) is not None:
                raise ValueError(f"{name}: done is about one effect; leave it out")
        if self.done is not None and not self.by:
            raise ValueError("by: required with done; name who took the effect back")
        return self


@workflow.defn(name="UndoRun")
class UndoRun(Handlers):
    """Undo an ended run, last effect first; a long undo continues as a new execution."""

    @workflow.init
    def __init__(self, ask: Any = None, *more: Any) -> None:
        """Validate what is asked."""
        carried = carrying.carried_by(more)
        self.carried = carried if isinstance(carried, carrying.CarriedState) else None
        self.invalid: BackstayError | None = carried if isinstance(carried, TaskInvalid) else None
        try:
            self.ask = UndoRequest.admit(ask)
        except (TaskInvalid, ValidationError) as error:
            self.invalid, self.ask = TaskInvalid(str(error)), UndoRequest(workflow_id="")
        sent = ask.get("by") if isinstance(ask, dict) else None
        self.by_as_sent = {"by": sent} if isinstance(sent, str) else {}
        self.prepare_handlers()
        self.context = RunContext("", Task(text=f"undo {self.ask.workflow_id}"), self.show)
        self.context.after_end = True
        self.context.taken_over = self.carried is None

    @workflow.run
    async def run(self, ask: Any = None, *more: Any) -> dict[str, Any]:
        """Load the effects, undo them, and return a Result; an open run is refused as `RunOpen`."""
        if self.invalid is not None:
            raise as_application_error(self.invalid)
        try:
            await self._begun()
            await self._undone()
        except Exception as error:
            ended = ended_by(error, cancelled=False)
            # Such as that people do not agree: the people who were asked are told so.
            await self.context.approvals.notices.settled()
            raise as_application_error(ended.error or BackstayError(str(error))) from None
        await self.context.approvals.notices.settled()
        result = fitting(self._result(self.context.state.undo_outcome))
        self.result = result.plain()
        self.context.state.state = State.DONE
        self.show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.result

    async def _begun(self) -> None:
        """Know the effects to undo, and that whoever asks may undo all of them."""
        state = self.context.state
        if self.carried is not None:
            # The store vouches for what the execution before has kept of this very run, which proved it all.
            state.run = f"{self.ask.workflow_id}/{self.ask.run_id}"
            await carrying.take_over(self.context, self.carried)
            return
        load = calls.LoadEffects(
            workflow_id=self.ask.workflow_id,
            workflow_run_id=self.ask.run_id,
            to_step=self.ask.to_step,
            limit=rollback.PAGE,
            parked=self.ask.done,
        )
        loaded = await self.context.activities.execute(
            calls.load_effects, load, summary=f"load effects of {self.ask.workflow_id}"
        )
        state.run = loaded.run
        whose = {"user_id": loaded.user_id or "singleton", "session_id": loaded.session_id}
        state.task = state.task.model_copy(update=whose)
        state.opened = opened = loaded.opened or NOT_OPENED
        if opened.task_line:
            line = one_line(f"undo {self.ask.workflow_id}: {opened.task_line}", 200)
            state.opened = opened.model_copy(update={"task_line": line})
        # The events of the run itself stay as they are.
        state.first_event = state.next_event = loaded.last_event + 1
        stack = _stack(loaded, self.ask.to_step)
        if (refusal := rollback.unseen(stack, self.ask.to_step, self.ask.last_seen)) is not None:
            raise refusal
        # Until it is proven who asks, the update `undo` reaches nothing but these.
        state.undo = UndoStack(slots=stack.slots, below_after=stack.below_after)
        await self._demand_authority(stack)
        state.undo = stack.model_copy(update={"slots": state.undo.slots})

    async def _undone(self) -> None:
        """Undo the effects; from here on the next execution may go on, since it is proven who asks."""
        if self.ask.done is not None:
            await self._undone_by_hand()
            return
        carries = self.carrying = carrying.Carrying(self.context, with_task=True)
        self.context.continues = lambda: carries.wanted
        listening = asyncio.ensure_future(self.listen())
        _, _, first = self.context.state.run.rpartition("/")
        # A later run may bear the same name by then.
        ask = self.ask.model_copy(update={"run_id": first})
        undoing = rollback.Rollback(self.context).undo(self.ask.to_step, self.ask.last_seen, between=self.context.turn)
        undoing = asyncio.ensure_future(undoing)
        try:
            await carries.wait(undoing, ask.model_dump(mode="json", exclude_unset=True))
        finally:
            undoing.cancel()
            listening.cancel()
        await undoing
        await self._told()

    async def _undone_by_hand(self) -> None:
        context, ask = self.context, self.ask
        if not context.state.undo.slots:
            raise DecisionRefused(f"done: effect {ask.done} does not stand any more; look at it again")
        typed = await without_secrets(context.activities, {"comment": ask.comment}, {"by": [ask.by]})
        with context.doing(State.UNDOING):
            (slot,) = context.state.undo.slots
            await rollback.Rollback(context).undone_by_hand(slot, ask.by, str(typed["comment"]))
        await self._told()

    async def _told(self) -> None:
        """Have the last events written, as every call of an activity does for those before it."""
        if not self.context.state.undo_outcome.count:
            return
        ask = calls.LoadEffects(limit=1)
        try:
            await self.context.activities.execute(calls.load_effects, ask, summary="record what was undone")
        except ApplicationError as error:
            workflow.logger.error("the events of the undo could not be stored: %s", error.message)

    async def _demand_authority(self, stack: UndoStack) -> None:
        """Raise NotVerified, DecisionRefused or Rejected unless the people agree who decide about these effects."""
        approvals, ask = self.context.approvals, self.ask
        count = stack.below + len(stack.to_undo(ask.to_step))
        authority = stack.authority(ask.to_step, approvals.authority)
        if not count or not authority.restricts:
            return
        refused = approvers.refused_person(authority, ask.by, ask.proof, approvals.starters)
        if refused is not None:
            raise refused
        # A proof is for the name as it was signed.
        payload = ask.model_dump(mode="json", exclude_unset=True) | self.by_as_sent
        if not await approvals.verify(UNDO_RUN, payload, run=self.context.state.run):
            raise NotVerified("proof: used already; sign again")
        if authority.quorum <= 1:
            return
        first = {"by": ask.by, "verdict": Verdict.APPROVE.value, "verified": True}
        tools = {slot.tool for slot in stack.to_undo(ask.to_step)}
        hold_s = approvers.words_hold_s(self.context.state.opened.policy, tools)
        rule = "engine: several people must agree to an undo"
        decided = await self.context.ask(
            RequestKind.QUESTION,
            _question(ask, count, tools),
            Verdict.APPROVE,
            Verdict.REJECT,
            rule=rule,
            ruling=Ruling(verdict="ask", rule=rule, timeout_s=hold_s, **_of_people(authority)),
            authority=authority,
            key="undo",
            decided=(first,),
        )
        if decided.verdict is None:
            raise Expired("nobody else agreed to the undo in time; ask for it again")
        if decided.verdict is not Verdict.APPROVE:
            raise rejected(decided)

    @property
    def _nothing_left(self) -> str:
        """Say that nothing is there to undo; effects of a step before may stand."""
        after = self.ask.to_step
        return "already undone" if after is None else f"nothing that was done after step {after} is left to undo"

    def _result(self, undone: UndoOutcome) -> Result:
        outcome = Outcome.ROLLED_BACK if undone.compensated else Outcome.COMPLETED
        info = workflow.info()
        effects = counted(undone.compensated, "effect")
        summary = f"{effects} undone, {undone.parked} parked, {undone.kept} cannot be undone"
        if self.ask.done is not None:
            summary = f"effect {self.ask.done} was undone by hand, {one_line(self.ask.by, 200)}{SAYS_SO}"
        return Result(
            outcome=Outcome.ROLLBACK_FAILED if undone.parked else outcome,
            success=not undone.parked,
            final_summary=summary if undone.count else self._nothing_left,
            undone=undone.last,
            **self.context.state.last_events(),
            workflow_id=info.workflow_id,
            run_id=info.run_id,
        )


def _question(ask: UndoRequest, count: int, tools: Iterable[str]) -> str:
    by, run = one_line(ask.by, 200), one_line(ask.workflow_id, 200)
    if ask.done is None:
        return f"{by} asks to undo {count} effects of {run}; agree?"
    return f"{by} says that effect {ask.done} of {run} ({one_line(', '.join(tools), 200)}) was undone by hand; agree?"


def _of_people(authority: Authority) -> dict[str, Any]:
    """Return the fields of a ruling that say who may decide."""
    return authority.model_dump(include={"approvers", "quorum", "no_self_approval"})


def _stack(loaded: calls.LoadedEffects, to_step: int | None) -> UndoStack:
    """Return what there is to undo: the newest effects one by one, and of the others what must be known beforehand."""
    # An effect that was kept because nothing undoes it was dealt with before.
    open_ones = [effect for effect in loaded.effects if effect.state is not EffectState.KEPT or effect.undo is not None]
    slots = tuple(compensation_of(effect) for effect in open_ones)
    stack = UndoStack(slots=slots, below_after=-1 if to_step is None else to_step)
    if not loaded.more:
        return stack
    oldest = min(loaded.effects, key=lambda effect: effect.n)
    update = {
        "below": loaded.count - len(loaded.effects),
        "below_effect": oldest.n - 1,
        "below_step": oldest.step,
        "below_authority": loaded.authority or Authority(),
    }
    return stack.model_copy(update=update)
