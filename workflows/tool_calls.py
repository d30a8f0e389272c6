"""The only door to the world: rule, ask, reserve, call, settle, bind undo, tell."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from backstay import calls
from backstay.approvals.approval import RequestKind
from backstay.budgets.budget import calls_refused
from backstay.effects.compensation import Compensation
from backstay.task.status import State
from backstay.tools.tool import ToolCall, ToolResult
from workflows.consent import Consent, refused
from workflows.reconcile import Reconcile
from workflows.run_context import RunContext
from workflows.sending import Sending, summary_of


@dataclass(frozen=True)
class Performed:
    """Tell what became of one call."""

    call: ToolCall
    result: ToolResult


class ToolCalls:
    """Carry calls through the one path."""

    def __init__(self, context: RunContext) -> None:
        """Work at the run's context."""
        self.context = context
        self.consent = Consent(context)
        self.reconcile = Reconcile(context)
        self.locks: dict[str, asyncio.Lock] = {}

    async def batch(self, batch: Sequence[ToolCall]) -> list[Performed]:
        """Perform calls that were decided together; results come in the order of the calls.

        Raises BudgetExceeded, Expired or Rejected.
        """
        answered = await self.consent.obtain(batch)
        return await self.dispatch([(call, answered[index]) for index, call in enumerate(batch)])

    async def consent_to_plan(self, batch: Sequence[ToolCall]) -> dict[int, ToolCall | ToolResult]:
        """Ask once about all calls of a plan before the first is made."""
        return await self.consent.obtain(batch, kind=RequestKind.PLAN)

    async def dispatch(
        self, answered: Sequence[tuple[ToolCall, ToolCall | ToolResult]], *, deadline_s: float | None = None
    ) -> list[Performed]:
        """Make the calls that may go, in parallel unless their provider is serial."""
        state = self.context.state
        seconds = deadline_s or (30 if state.opened is None else state.opened.deadline_s)
        names = [answer.tool.name for _, answer in answered if isinstance(answer, ToolCall)]
        await self.context.afford(lambda: calls_refused(state.budget, state.usage, names))
        await self.context.gate()
        running = [
            self._made(answer, seconds) if isinstance(answer, ToolCall) else _not_made(call, answer)
            for call, answer in answered
        ]
        self.context.calls_in_flight += 1
        try:
            with self.context.doing(State.CALLING):
                # Every call is waited for, even when one of them fails: nothing may be in flight afterwards.
                done = await asyncio.gather(*running, return_exceptions=True)
        finally:
            self.context.calls_in_flight -= 1
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in done if isinstance(outcome, Performed)]

    def _made(self, call: ToolCall, deadline_s: float) -> "asyncio.Task[Performed]":
        state = self.context.state
        state.usage = state.usage.called(call.tool.name)
        effect: int | None = None
        if call.effectful:
            effect = state.next_effect
            state.next_effect += 1
            self._bind(call, effect)
        return asyncio.ensure_future(self._call(call, effect, deadline_s))

    async def _call(self, call: ToolCall, effect: int | None, deadline_s: float) -> Performed:
        lock = self.locks.setdefault(call.tool.provider, asyncio.Lock()) if call.tool.serial else nullcontext()
        sending = Sending(self.context, call, deadline_s)
        async with lock:
            result = await sending.first(effect)
            if result.error_type == "ToolChanged":
                result = await self._send_changed(sending, effect, result)
        call = sending.call
        if effect is not None:
            result = await self.reconcile.settled(call, effect, result, sending.again)
            self._note(call, effect, result)
        return Performed(call, result)

    async def _send_changed(self, sending: Sending, effect: int | None, result: ToolResult) -> ToolResult:
        """Ask again about a tool that is no longer the one that was ruled on; nothing has been sent yet."""
        state, call = self.context.state, sending.call
        ask = calls.CheckCall(
            run=state.run,
            user_id=state.task.user_id,
            tool=call.tool.name,
            arguments=call.arguments,
            resolved=not state.step_results,
        )
        checked = await self.context.activities.execute(
            calls.check_call, ask, summary=f"look at the changed {call.tool.name}"
        )
        if checked.tool is None or checked.error is not None:
            return result.model_copy(update={"error": checked.error or result.error})
        sending.call = renewed = call.model_copy(update={"tool": checked.tool})
        answer = await self.consent.again(renewed, "the tool's definition has changed since it was ruled on")
        if isinstance(answer, ToolResult):
            return answer
        sending.call = answer
        if effect is not None:
            self._bind(answer, effect)
        return await sending.first(effect)

    def _bind(self, call: ToolCall, effect: int) -> None:
        tool = call.tool
        slot = Compensation(
            effect=effect,
            tool=tool.name,
            step=self.context.state.usage.steps,
            undo_tool=tool.undo_tool,
            shown=tool.undo,
            by_effect_id=tool.undo_by_effect_id,
            verify=tool.verify,
            unknown=True,
        )
        self.context.state.undo = self.context.state.undo.push(slot)

    def _note(self, call: ToolCall, effect: int, result: ToolResult) -> None:
        """Keep in the undo stack what may have happened, drop what certainly did not."""
        state = self.context.state
        slot = next((slot for slot in state.undo.slots if slot.effect == effect), None)
        if slot is None:
            return
        if result.success:
            # What was promised and could not be prepared stays named, for a person to do.
            prepared = result.undo is not None or slot.by_effect_id
            bound = {
                "unknown": False,
                "shown": result.undo or slot.shown,
                "undo_tool": slot.undo_tool if prepared else None,
            }
            state.undo = state.undo.push(slot.model_copy(update=bound))
        elif result.error_type not in {"OutcomeUnknown", "EffectConflict"}:
            state.undo = state.undo.drop(effect)
        self.context.changed()


async def _not_made(call: ToolCall, result: ToolResult) -> Performed:
    return Performed(call, result)


__all__ = ["Performed", "ToolCalls", "refused", "summary_of"]
