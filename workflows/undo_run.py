"""UndoRun: undo the effects of a run that has ended."""

from typing import Any

from pydantic import Field, ValidationError
from temporalio import workflow

from backstay import calls
from backstay.approvals import deciding
from backstay.approvals.approval import RequestKind, Verdict
from backstay.approvals.proof import UNDO_RUN
from backstay.effects.compensation import Compensation, Undone, authority_over
from backstay.effects.effect import Effect, EffectState
from backstay.errors import BackstayError, NotVerified, TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.result import Outcome, Result
from backstay.task.status import State
from backstay.task.task import Task
from workflows.approvals import ONE_AUTHORITY
from workflows.consent import rejected
from workflows.ending import ended_by
from workflows.handlers import Handlers, as_application_error
from workflows.rollback import Rollback
from workflows.run_context import RunContext


class UndoRequest(Frozen):
    """Name the run whose effects are to be undone."""

    workflow_id: str
    run_id: str | None = None
    to_step: int | None = Field(default=None, strict=True, ge=0)
    by: str = ""
    proof: str | None = None
    """Proves `by`: signed for the update `UndoRun` of the run that is taken back."""


@workflow.defn(name="UndoRun")
class UndoRun(Handlers):
    """Undo an ended run, last effect first."""

    @workflow.init
    def __init__(self, ask: Any = None) -> None:
        """Validate what is asked."""
        self.invalid: BackstayError | None = None
        try:
            self.ask = UndoRequest.admit(ask)
        except (TaskInvalid, ValidationError) as error:
            self.invalid, self.ask = TaskInvalid(str(error)), UndoRequest(workflow_id="")
        self.prepare_handlers()
        self.context = RunContext("", Task(text=f"undo {self.ask.workflow_id}"), self.show)
        self.context.after_end = True

    @workflow.run
    async def run(self, ask: Any = None) -> dict[str, Any]:
        """Load the effects, undo them, and return a Result; an open run is refused as `RunOpen`."""
        if self.invalid is not None:
            raise as_application_error(self.invalid)
        load = calls.LoadEffects(
            run="", open_only=True, workflow_id=self.ask.workflow_id, workflow_run_id=self.ask.run_id
        )
        try:
            loaded = await self.context.activities.execute(
                calls.load_effects, load, summary=f"load effects of {self.ask.workflow_id}"
            )
            undone = await self._undone(loaded)
        except Exception as error:
            ended = ended_by(error, cancelled=False)
            raise as_application_error(ended.error or BackstayError(str(error))) from None
        result = self._result(undone)
        self.result = result.plain()
        self.context.state.state = State.DONE
        self.show()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self.result

    async def _undone(self, loaded: calls.LoadedEffects) -> list[Undone]:
        state = self.context.state
        state.run = loaded.run
        state.task = state.task.model_copy(update={"user_id": loaded.user_id or "singleton"})
        state.opened = loaded.opened or calls.NOT_OPENED
        for effect in loaded.effects:
            # What was kept because nothing takes it back was dealt with before.
            if effect.state is not EffectState.KEPT or effect.undo is not None:
                state.undo = state.undo.push(_slot(effect))
        await self._demand_authority()
        return await Rollback(self.context).run(self.ask.to_step)

    async def _demand_authority(self) -> None:
        """Raise NotVerified, DecisionRefused or Rejected unless the people agree who decide about these effects."""
        approvals, ask = self.context.approvals, self.ask
        slots = self.context.state.undo.to_undo(ask.to_step)
        authority = authority_over(slots, approvals.authority)
        if not slots or not authority.restricts or not workflow.patched(ONE_AUTHORITY):
            return
        refused = deciding.refused_person(authority, ask.by, ask.proof, approvals.starters)
        if refused is not None:
            raise refused
        payload = ask.model_dump(mode="json", exclude_unset=True)
        if not await approvals.verify(UNDO_RUN, payload, run=self.context.state.run):
            raise NotVerified("proof: used already; sign again")
        if authority.quorum <= 1:
            return
        first = {"by": ask.by, "verdict": Verdict.APPROVE.value, "verified": True}
        decided = await self.context.ask(
            RequestKind.QUESTION,
            f"{one_line(ask.by, 200)} asks to undo {len(slots)} effects of {one_line(ask.workflow_id, 200)}; agree?",
            Verdict.APPROVE,
            Verdict.REJECT,
            rule="engine: several people must agree to an undo",
            authority=authority,
            key="undo",
            decided=(first,),
        )
        if decided.verdict is not Verdict.APPROVE:
            raise rejected(decided)

    def _result(self, undone: list[Undone]) -> Result:
        parked = [effect for effect in undone if effect.state == "parked"]
        compensated = [effect for effect in undone if effect.state == "compensated"]
        info = workflow.info()
        kept = len(undone) - len(parked) - len(compensated)
        summary = f"{len(compensated)} effects undone, {len(parked)} parked, {kept} cannot be undone"
        summary = summary if undone else "already undone"
        return Result(
            outcome=Outcome.ROLLBACK_FAILED if parked else Outcome.ROLLED_BACK if compensated else Outcome.COMPLETED,
            success=not parked,
            final_summary=summary,
            undone=tuple(undone[-100:]),
            events=tuple(self.context.state.events),
            workflow_id=info.workflow_id,
            run_id=info.run_id,
        )


def _slot(effect: Effect) -> Compensation:
    return Compensation(
        effect=effect.n,
        tool=effect.tool,
        step=effect.step,
        undo_tool=effect.undo_tool,
        shown=effect.undo,
        by_effect_id=effect.undo_by_effect_id,
        verify=effect.verify,
        unknown=effect.unknown,
        authority=effect.authority,
    )
