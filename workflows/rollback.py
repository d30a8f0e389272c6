"""Take effects back, last first, each as its own visible activity."""

from collections.abc import Sequence

from temporalio.exceptions import ApplicationError

from backstay.effects.compensation import Compensation, Undone
from backstay.effects.effect import EffectState
from backstay.errors import Expired, Rejected
from backstay.task.status import State
from backstay.tools.stages import Purpose
from backstay.tools.tool import Safety, Tool, ToolCall, ToolResult
from workflows.consent import refused
from workflows.run_context import RunContext
from workflows.tool_calls import ToolCalls


class Rollback:
    """Run compensations in reverse order of dispatch; what cannot be undone is parked while the others go on."""

    def __init__(self, context: RunContext) -> None:
        """Undo effects of one run."""
        self.context = context
        self.tool_calls = ToolCalls(context)
        self.reconcile = self.tool_calls.reconcile

    async def run(self, to_step: int | None = None) -> list[Undone]:
        """Undo effects of steps after `to_step` (all when None); return what became of each, in order of undoing."""
        slots = self.context.state.undo.to_undo(to_step)
        undone: list[Undone] = []
        with self.context.doing(State.UNDOING):
            for slot in slots:
                undone.extend(await self._undo(slot))
        return undone

    async def _undo(self, slot: Compensation) -> Sequence[Undone]:
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
        result = await self._compensated(slot, slot.undo_tool)
        if result.success:
            return self._ended(slot, "compensated", None)
        return self._ended(slot, "parked", f"{result.error}; to undo it by hand: {slot.shown}")

    async def _known(self, slot: Compensation) -> tuple[Compensation, bool, str | None]:
        """Return whether the effect took place; the text says why it must be parked."""
        if not slot.unknown:
            return slot, True, None
        effect = await self.reconcile.look(slot.effect)
        if effect.unknown:
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

    async def _compensated(self, slot: Compensation, undo_tool: str) -> ToolResult:
        # The real arguments stay sealed with the effect; people see what they amount to.
        arguments = {"effect": f"{self.context.state.run}/{slot.effect}", "undo": slot.shown}
        tool = Tool(name=undo_tool, safety=Safety.WRITE_SAFE)
        call = ToolCall(id=f"undo-{slot.effect}", tool=tool, arguments=arguments)
        try:
            (performed,) = await self.tool_calls.perform(Purpose.UNDO, [call], effect=slot.effect)
        except (Rejected, Expired) as error:
            return refused(error)
        return performed.result

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
