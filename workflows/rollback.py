"""Take effects back, last first, each as its own visible activity."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.effects.compensation import Compensation, Undone
from backstay.effects.effect import EffectState
from backstay.errors import CompensationFailed, Expired, Rejected
from backstay.task.status import State
from backstay.tools.tool import Safety, Tool, ToolCall, ToolResult
from workflows.consent import Consent, refused
from workflows.reconcile import Reconcile, still_unknown
from workflows.run_context import RunContext

TRIES_BACKOFF_S = (1, 2, 4)


class Rollback:
    """Run compensations in reverse order of dispatch; what cannot be undone is parked while the others go on."""

    def __init__(self, context: RunContext, *, again: bool = False) -> None:
        """Undo effects of one run; `again`: another workflow may have tried some compensations before."""
        self.context = context
        self.again = again
        self.consent = Consent(context)
        self.reconcile = Reconcile(context)

    async def run(self, to_step: int | None = None) -> list[Undone]:
        """Undo effects of steps after `to_step` (all when None); return what became of each, in order of undoing."""
        slots = self.context.state.undo.to_undo(to_step)
        undone: list[Undone] = []
        with self.context.doing(State.UNDOING):
            for slot in slots:
                undone.extend(await self._one(slot))
        return undone

    async def _one(self, slot: Compensation) -> Sequence[Undone]:
        try:
            return await self._tried(slot)
        except ApplicationError as error:
            # One effect that cannot be undone must not keep the others from it.
            return self._ended(slot, "parked", f"{error.type}: {error.message}; to undo it by hand: {slot.shown}")

    async def _tried(self, slot: Compensation) -> Sequence[Undone]:
        slot, happened, why = await self._known(slot)
        state = self.context.state
        if not happened:
            state.undo = state.undo.drop(slot.effect)
            return ()
        if why is not None:
            return self._ended(slot, "parked", why)
        if slot.undo_tool is None and slot.shown is not None:
            return self._ended(slot, "parked", f"its compensation could not be prepared; undo it by hand: {slot.shown}")
        if slot.undo_tool is None:
            await self.reconcile.settle(slot.effect, "kept", "no compensation is declared")
            return self._ended(slot, "kept", "it cannot be undone: no compensation is declared")
        answer = await self._consented(slot)
        if isinstance(answer, ToolResult):
            return self._ended(slot, "parked", f"{answer.error}; to undo it by hand: {slot.shown}")
        result = await self._compensated(slot)
        if result.success:
            return self._ended(slot, "compensated", None)
        error = CompensationFailed(f"{result.error}; to undo it by hand: {slot.shown}")
        return self._ended(slot, "parked", str(error))

    async def _known(self, slot: Compensation) -> tuple[Compensation, bool, str | None]:
        """Return whether the effect took place; the text says why it must be parked."""
        if not slot.unknown:
            return slot, True, None
        effect = await self.reconcile.look(slot.effect)
        if still_unknown(effect):
            await self.reconcile.wait_out(effect.settle_in_s, slot.tool)
            checked = await self.reconcile.check(slot.tool, slot.effect) if slot.verify else None
            effect = await self.reconcile.look(slot.effect)
            if checked is None or not checked.verified:
                if slot.by_effect_id:
                    return slot, True, None
                return (
                    slot,
                    True,
                    f"nobody knows whether {slot.tool} took effect; check by hand, then undo: {slot.shown}",
                )
        if effect.state in {EffectState.APPLIED, EffectState.KEPT}:
            if effect.undo is None and slot.by_effect_id:
                return slot, True, None
            prepared = {"shown": effect.undo or slot.shown, "undo_tool": slot.undo_tool if effect.undo else None}
            return slot.model_copy(update=prepared), True, None
        return slot, False, None

    async def _consented(self, slot: Compensation) -> ToolCall | ToolResult:
        tool = Tool(name=slot.undo_tool or "", safety=Safety.WRITE_SAFE)
        # The real arguments stay sealed with the effect; people see what they amount to.
        arguments = {"effect": f"{self.context.state.run}/{slot.effect}", "undo": slot.shown}
        call = ToolCall(id=f"undo-{slot.effect}", tool=tool, arguments=arguments)
        try:
            return (await self.consent.obtain([call], purpose="undo"))[0]
        except (Rejected, Expired) as error:
            return refused(error)

    async def _compensated(self, slot: Compensation) -> ToolResult:
        state = self.context.state
        result = ToolResult(success=False, error="not tried")
        sent = await self._sends_before(slot)
        for number, pause in enumerate((0, *TRIES_BACKOFF_S[:2]), sent):
            if pause:
                await workflow.sleep(timedelta(seconds=pause), summary=f"undo {slot.tool} again")
            state.usage = state.usage.model_copy(update={"free_calls": state.usage.free_calls + 1})
            ask = calls.CallTool(
                run=state.run, user_id=state.task.user_id, purpose="undo", tool=slot.tool, effect=slot.effect
            )
            ask = ask.model_copy(update={"send": number + 1}) if number else ask
            summary = f"undo {slot.tool}: {slot.shown}"[:200]
            result = await self.context.activities.execute(calls.call_tool, ask, summary=summary)
            if result.success or result.error_type == "OutcomeUnknown":
                break
        return result

    async def _sends_before(self, slot: Compensation) -> int:
        """Return how often the compensation was sent and failed, so that the next send counts on from there."""
        earlier = await self.reconcile.look(slot.effect, undo=True) if self.again else None
        return earlier.send if earlier is not None and earlier.state is EffectState.FAILED else 0

    def _ended(self, slot: Compensation, state: str, detail: str | None) -> Sequence[Undone]:
        undone = Undone(effect=slot.effect, tool=slot.tool, state=state, shown=slot.shown, detail=detail)
        self.context.state.undo = self.context.state.undo.drop(slot.effect)
        self.context.state.undone = [*self.context.state.undone, undone]
        self.context.record(
            "undo.ran",
            f"{slot.tool}: {state}{'' if detail is None else ', ' + detail}",
            effect=slot.effect,
            state=state,
        )
        return (undone,)
