"""UndoRun: undo the effects of a run that has ended."""

from typing import Any

from pydantic import Field, ValidationError
from temporalio import workflow

from backstay import calls
from backstay.effects.compensation import Compensation, Undone
from backstay.effects.effect import Effect, EffectState
from backstay.errors import BackstayError, TaskInvalid
from backstay.frozen import Frozen
from backstay.task.result import Outcome, Result
from backstay.task.status import State
from backstay.task.task import Task
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
        return await Rollback(self.context).run(self.ask.to_step)

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
    )
