"""Find out what became of a call whose answer was lost; never guess."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Literal

from temporalio import workflow

from backstay import calls
from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind, Verdict
from backstay.effects.effect import Effect, EffectState
from backstay.shown import one_line, shown_arguments
from backstay.task.status import State
from backstay.tools.tool import ToolCall, ToolResult
from workflows.run_context import RunContext

Resend = Callable[[int], Awaitable[ToolResult]]
"""Send the effect with this number again; a number of its own begins with its first send."""
VERIFY_BACKOFF_S = (1, 2, 4)
VERIFY_PATIENCE_S = 15
"""For all tries together: a server that is silent is silent for its checks too, and a person is to be asked soon."""


class Reconcile:
    """Settle unknown outcomes by the declared check, else by a person's word."""

    def __init__(self, context: RunContext) -> None:
        """Work at the run's context."""
        self.context = context

    async def settled(self, call: ToolCall, effect: int, result: ToolResult, resend: Resend) -> ToolResult:
        """Return a result that is known; only proof, or a person's word, sends the call again."""
        while result.error_type in {"OutcomeUnknown", "EffectConflict"}:
            verdict, known = await self._verdict(call, effect, result)
            match verdict:
                case "known" if known is not None:
                    return known
                case "resend" if result.error_type == "EffectConflict":
                    # The row of the other call is kept; this one gets a number of its own.
                    effect = self._renumbered(effect)
                    result = await resend(effect)
                case _:
                    result = await resend(effect)
        return result

    async def check(self, tool: str, effect: int) -> ToolResult | None:
        """Run the declared verify up to three times; None when it cannot tell.

        A result with `verified` True: the effect took place. False: every try said that it did not.
        """
        state = self.context.state
        last: ToolResult | None = None
        ends = workflow.now() + timedelta(seconds=VERIFY_PATIENCE_S)
        for number in range(len(VERIFY_BACKOFF_S)):
            if number:
                if workflow.now() + timedelta(seconds=VERIFY_BACKOFF_S[number - 1]) >= ends:
                    break
                await workflow.sleep(timedelta(seconds=VERIFY_BACKOFF_S[number - 1]), summary=f"check {tool} again")
            state.usage = state.usage.model_copy(update={"free_calls": state.usage.free_calls + 1})
            ask = calls.CallTool(
                run=state.run,
                user_id=state.task.user_id,
                purpose="verify",
                tool=tool,
                effect=effect,
                deadline_s=round((ends - workflow.now()).total_seconds(), 3),
            )
            result = await self.context.activities.execute(
                calls.call_tool, ask, summary=f"verify {tool}, effect {effect}"
            )
            if result.verified:
                return result
            last = result if result.verified is False else last
        return last

    async def look(self, effect: int, *, undo: bool = False) -> Effect:
        """Read what the store knows of an effect."""
        return await self.settle(effect, "look", undo=undo)

    async def settle(
        self,
        effect: int,
        verdict: Literal["look", "happened", "did_not_happen", "kept"],
        by: str = "",
        *,
        undo: bool = False,
    ) -> Effect:
        """Record what a check or a person says of an effect."""
        ask = calls.SettleEffect(run=self.context.state.run, effect=effect, verdict=verdict, by=by, undo=undo)
        return await self.context.activities.execute(
            calls.settle_effect, ask, summary=f"effect {effect}: {verdict.replace('_', ' ')}"
        )

    async def wait_out(self, seconds: float, tool: str) -> None:
        """Wait until a request can no longer be under way, and a little longer."""
        opened = self.context.state.opened
        total = seconds + (5 if opened is None else opened.settle_after_s)
        await workflow.sleep(timedelta(seconds=total), summary=f"wait until {tool} has settled")

    async def _verdict(self, call: ToolCall, effect: int, result: ToolResult) -> tuple[str, ToolResult | None]:
        name = call.tool.name
        self.context.record("effect.unknown", f"{name}: {result.error or ''}", effect=effect, type=result.error_type)
        if result.error_type == "OutcomeUnknown":
            await self.wait_out(result.settle_in_s, name)
            if (late := recorded(await self.look(effect))) is not None:
                return "known", late
            checked = await self.check(name, effect) if call.tool.verify else None
            if checked is not None and checked.verified:
                self.context.record("effect.settled", f"{name}: the declared check says it happened", effect=effect)
                return "known", checked
            if checked is not None and call.tool.verify_is_final:
                await self.settle(effect, "did_not_happen", "the declared check")
                self.context.record(
                    "effect.settled", f"{name}: the declared check proves it did not happen", effect=effect
                )
                return "resend", None
        return await self._ask(call, effect, result)

    async def _ask(self, call: ToolCall, effect: int, result: ToolResult) -> tuple[str, ToolResult | None]:
        arguments, clipped = shown_arguments(call.arguments)
        tool = call.tool
        request = ApprovalRequest(
            id="",
            kind=RequestKind.OUTCOME,
            question=_question(call, result, f"{self.context.state.run}/{effect}"),
            calls=(
                RequestedCall(
                    index=0,
                    tool=one_line(tool.name, 200),
                    arguments=arguments,
                    safety=tool.safety,
                    undoable=tool.undo is not None,
                    undo_how=tool.undo,
                    clipped=clipped,
                ),
            ),
            options=(Verdict.HAPPENED.value, Verdict.DID_NOT_HAPPEN.value, Verdict.RETRY.value),
            rule="engine: an unknown outcome asks",
        )
        with self.context.doing(State.WAITING):
            decided = await self.context.approvals.ask(request)
        said = f"{decided.by} says so"
        if decided.verdict is Verdict.RETRY:
            if result.error_type == "OutcomeUnknown":
                await self.settle(effect, "did_not_happen", f"{decided.by} asked for another send")
            return "resend", None
        if result.error_type == "EffectConflict":
            return "known", _known_conflict(decided.verdict is Verdict.HAPPENED, said)
        if decided.verdict is Verdict.HAPPENED:
            settled = await self.settle(effect, "happened", said)
            note = f"it happened ({said}); its answer was lost"
            return "known", ToolResult(success=True, error=note, undo=settled.undo)
        await self.settle(effect, "did_not_happen", said)
        return "known", ToolResult(success=False, error=f"it did not happen ({said})", error_type="DidNotHappen")

    def _renumbered(self, effect: int) -> int:
        state = self.context.state
        slot = next((slot for slot in state.undo.slots if slot.effect == effect), None)
        number = state.next_effect
        state.next_effect += 1
        if slot is not None:
            state.undo = state.undo.drop(effect).push(slot.model_copy(update={"effect": number}))
        return number


def recorded(effect: Effect) -> ToolResult | None:
    """Return the outcome that was recorded while nobody was looking, or None."""
    match effect.state:
        case EffectState.APPLIED | EffectState.COMPENSATED | EffectState.KEPT:
            return ToolResult(success=True, ref=effect.result, undo=effect.undo, recorded=True)
        case EffectState.FAILED:
            return ToolResult(
                success=False, ref=effect.result, error=effect.outcome, error_type="ToolError", recorded=True
            )
        case _:
            return None


def still_unknown(effect: Effect) -> bool:
    """Return whether nobody knows if the effect took place."""
    return effect.state in {EffectState.DISPATCHED, EffectState.UNKNOWN}


def _question(call: ToolCall, result: ToolResult, effect_id: str) -> str:
    name = one_line(call.tool.name, 200)
    why = one_line(result.error or "", 300)
    if result.error_type == "EffectConflict":
        return f"Another call is recorded in the place of {name} ({why}). Did this one happen, or make it now?"
    lost = f"{name} was sent as {one_line(effect_id, 300)} and its answer was lost ({why})"
    return f"{lost}. Did it happen, did it not happen, or send it again?"


def _known_conflict(happened: bool, said: str) -> ToolResult:  # noqa: FBT001  # a verdict, not a switch
    if happened:
        return ToolResult(success=True, error=f"it happened before the run was reset ({said}); its answer is not known")
    return ToolResult(success=False, error=f"it was not made ({said})", error_type="DidNotHappen")
