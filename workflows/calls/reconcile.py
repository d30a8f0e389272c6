"""Find out what happened to a call whose answer was lost, without guessing."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Literal, NamedTuple

from temporalio import workflow

from backstay import calls
from backstay.approvals.approval import RequestKind, Verdict
from backstay.approvals.notice import NoticeKind
from backstay.approvals.undo_words import undo_told
from backstay.effects.effect import DOUBTFUL, SAYS_SO, Effect, EffectState
from backstay.shown import one_line
from backstay.tools.server_task import WORKING
from backstay.tools.stages import Purpose
from backstay.tools.tool import OutcomeSource, Safety, Tool, ToolCall, ToolResult
from workflows.consent.asked_calls import shown_call
from workflows.consent.changing import commented
from workflows.context.calls_in_flight import CallInFlight
from workflows.context.run_context import RunContext

VERIFY_BACKOFF_S = (1, 2)
VERIFY_TIMEOUT_S = 15
"""For all tries together: a server that does not answer calls rarely answers checks, so a person is asked soon."""
UNDO_BACKOFF_S = (1, 2)


class CallWithResult(NamedTuple):
    """Hold one call and its result."""

    call: ToolCall
    result: ToolResult
    effect: int | None = None
    """The number of its effect; None for a read, and for what was never sent."""


Send = Callable[[CallInFlight], Awaitable[ToolResult]]
Perform = Callable[..., Awaitable[Sequence[CallWithResult]]]


class Reconcile:
    """Settle unknown outcomes by the declared check, or else by asking a person."""

    def __init__(self, context: RunContext, perform: Perform) -> None:
        """Work at the run's context; `perform` makes the declared checks."""
        self.context = context
        self.perform = perform
        self.undone_elsewhere = False
        """Whether another workflow may have tried to undo the effect that is undone next."""

    async def settled(self, flight: CallInFlight, result: ToolResult, send: Send) -> ToolResult:
        """Return a result that is known; only proof, or a person's word, sends the call again."""
        while result.error_type in {"OutcomeUnknown", "EffectConflict"}:
            conflict = result.error_type == "EffectConflict"
            if result.free_number:
                # Nobody needs to be asked: it was never sent under that number.
                self._renumber(flight, result.free_number)
                result = await send(flight)
                continue
            checked = flight.call.tool.verify and not conflict
            self._record_unknown(flight, flight.call.tool.name, result, checked=checked)
            if result.ended:
                # Finding out whether it took effect may take long; its process holds nothing up any more.
                self.context.approvals.step_aside()
            known = None if conflict else await self._found(flight, result)
            if known is not None and known.error_type == WORKING:
                # The record of its task came late.
                result = await send(flight)
                continue
            if known is None:
                known = await self._ask(flight, result)
            elif known.verified is False:
                known = None
            if known is not None:
                return known
            if conflict:
                # The row of the other call is kept; this one gets a number of its own.
                self._renumber(flight)
            else:
                flight.send += 1
            result = await send(flight)
        if result.error_type == DOUBTFUL and flight.call.tool.verify:
            return await self._verified(flight, result)
        return result

    async def undone(self, flight: CallInFlight, result: ToolResult, send: Send) -> ToolResult:
        """Return the outcome of a compensation; one that failed, or provably was not made, is tried again.

        One whose outcome stays unknown or doubtful is not: a person must look.
        """
        name = flight.call.tool.name
        for pause in (*UNDO_BACKOFF_S, None):
            if result.error_type == "OutcomeUnknown":
                self._record_unknown(flight, f"undo by {name}", result)
                found = await self._found(flight, result) or result
                result = await send(flight) if found.error_type == WORKING else found
            if result.error_type == DOUBTFUL:
                result = await self._verified(flight, result)
            if result.success or result.error_type in {DOUBTFUL, "OutcomeUnknown"} or pause is None:
                break
            await workflow.sleep(timedelta(seconds=pause), summary=f"{name} again")
            flight.send += 1
            result = await send(flight)
        return result

    async def check(self, tool: str, effect: int, *, undo: bool = False) -> ToolResult | None:
        """Run the declared verify up to three times; None when it cannot tell.

        A result with `verified` True: the effect, or with `undo` its compensation, took place. False: every try said
        that it did not.
        """
        purpose = Purpose.VERIFY_UNDO if undo else Purpose.VERIFY
        call = ToolCall(id=f"verify-{effect}", tool=Tool(name=tool, safety=Safety.READ_ONLY))
        last: ToolResult | None = None
        ends = workflow.now() + timedelta(seconds=VERIFY_TIMEOUT_S)
        for pause in (0, *VERIFY_BACKOFF_S):
            if pause:
                if workflow.now() + timedelta(seconds=pause) >= ends:
                    break
                await workflow.sleep(timedelta(seconds=pause), summary=f"check {tool} again")
            left = round((ends - workflow.now()).total_seconds(), 3)
            (performed,) = await self.perform(purpose, [call], effect=effect, deadline_s=left)
            result = performed.result
            if result.verified or (undo and result.error_type == "ToolNotFound"):
                # Only the toolbox knows whether the tool of a compensation declares a check.
                return result if result.verified else None
            last = result if result.verified is False else last
        return last

    async def look(self, effect: int, *, undo: bool = False) -> Effect:
        """Read what the store knows of an effect, or with `undo` of its compensation."""
        return await self.settle(effect, "look", undo=undo)

    async def sends_before(self, effect: int) -> int:
        """Return how many sends of the compensation of an effect have ended that other workflows have made."""
        return (await self.look(effect, undo=True)).sends_settled if self.undone_elsewhere else 0

    async def settle(
        self,
        effect: int,
        verdict: Literal["look", "show_undo", "happened", "did_not_happen", "failed", "kept", "undone_by_hand"],
        by: str = "",
        *,
        undo: bool = False,
    ) -> Effect:
        """Record what a check or a person says of an effect."""
        ask = calls.SettleEffect(effect=effect, verdict=verdict, by=by, undo=undo)
        return await self.context.activities.execute(
            calls.settle_effect, ask, summary=f"effect {effect}: {verdict.replace('_', ' ')}"
        )

    async def wait_out(self, seconds: float, tool: str) -> None:
        """Wait until a request can no longer be under way, and a little longer."""
        total = seconds + self.context.state.opened.settle_after_s
        await workflow.sleep(timedelta(seconds=total), summary=f"wait until {tool} has settled")

    async def _found(self, flight: CallInFlight, result: ToolResult) -> ToolResult | None:
        """Return what the store or the declared check knows of a lost call; None when neither does.

        A result with `verified` False: the check proves that the call did not take place, and the store says so now.
        """
        effect, tool, undo = flight.effect or 0, flight.call.tool, flight.purpose is Purpose.UNDO
        await self.wait_out(result.settle_in_s, tool.name)
        late = await self.look(effect, undo=undo)
        if late.followed and flight.progress is None:
            return ToolResult(success=False, error_type=WORKING)
        if late.recorded is not None and late.state is not EffectState.NOT_SENT:
            return late.recorded
        checked = await self.check(tool.name, effect, undo=undo) if undo or tool.verify else None
        if checked is None:
            return None
        if checked.verified:
            self.context.record("effect.settled", f"{tool.name}: the declared check says it happened", effect=effect)
            return checked
        if not (checked.verify_is_final if undo else tool.verify_is_final):
            return None
        await self.settle(effect, "did_not_happen", "the declared check", undo=undo)
        proof = "the declared check proves it did not happen"
        self.context.record("effect.settled", f"{tool.name}: {proof}", effect=effect)
        return ToolResult(success=False, error=proof, error_type="DidNotHappen", verified=False)

    async def _verified(self, flight: CallInFlight, result: ToolResult) -> ToolResult:
        """Return what the declared check says of a call whose answer reports an error, or that answer."""
        effect, tool, undo = flight.effect or 0, flight.call.tool.name, flight.purpose is Purpose.UNDO
        checked = await self.check(tool, effect, undo=undo)
        if checked is None:
            return result
        if checked.verified:
            self.context.record("effect.settled", f"{tool}: the declared check says it happened", effect=effect)
            return checked
        await self.settle(effect, "failed", result.error or "", undo=undo)
        return result.model_copy(update={"error_type": "ToolError"})

    async def _ask(self, flight: CallInFlight, result: ToolResult) -> ToolResult | None:
        """Return what a person says of a call; None: it is to be sent again."""
        effect, conflict = flight.effect or 0, result.error_type == "EffectConflict"
        decided = await self.context.ask(
            RequestKind.OUTCOME,
            _question(flight.call, result, f"{self.context.state.run}/{effect}"),
            Verdict.HAPPENED,
            Verdict.DID_NOT_HAPPEN,
            Verdict.RETRY,
            rule="engine: an unknown outcome asks",
            authority=flight.authority,
            key=f"outcome {effect} {flight.send}",
            calls=(shown_call(flight.call, undo=undo_told(flight.call.tool, self.context.state.opened.policy)),),
        )
        flight.call = commented(flight.call, decided)
        said, happened = f"{decided.by}{SAYS_SO}", decided.verdict is Verdict.HAPPENED
        if decided.verdict is Verdict.RETRY:
            if not conflict:
                await self.settle(effect, "did_not_happen", f"{decided.by} asked for another send")
            return None
        known = OutcomeSource(effect=effect, by=decided.by)
        if conflict and happened:
            error = f"it happened before the run was reset ({said}); its answer is not known"
            return ToolResult(success=True, error=error, settled=known)
        if conflict:
            return ToolResult(success=False, error=f"it was not made ({said})", error_type="DidNotHappen")
        settled = await self.settle(effect, "happened" if happened else "did_not_happen", said)
        if settled.state is not (EffectState.APPLIED if happened else EffectState.NOT_SENT) and settled.recorded:
            # The answer came meanwhile after all, and stands.
            return settled.recorded
        if happened:
            error = f"it happened ({said}); its answer was lost"
            return ToolResult(success=True, error=error, undo=settled.undo, settled=known)
        return ToolResult(success=False, error=f"it did not happen ({said})", error_type="DidNotHappen")

    def _renumber(self, flight: CallInFlight, least: int = 0) -> None:
        state = self.context.state
        state.next_effect = max(state.next_effect, least)
        before = flight.effect or 0
        slot = next((slot for slot in state.undo.slots if slot.effect == before), None)
        flight.effect, flight.send = state.take_effect_number(), 1
        state.renumber_write(before, flight.effect)
        if slot is not None:
            state.undo = state.undo.drop(slot.effect).push(slot.model_copy(update={"effect": flight.effect}))

    def _record_unknown(self, flight: CallInFlight, what: str, result: ToolResult, *, checked: bool = False) -> None:
        text = f"{what}: {result.error or ''}"
        more = {"timed_out": True} if result.timed_out else {}
        more |= {"checked": True} if checked else {}
        self.context.record("effect.unknown", text, effect=flight.effect, type=result.error_type, **more)
        told = {
            "id": f"{self.context.state.run}/{flight.effect}",
            "what": what,
            "why": one_line(result.error or "", 500),
        }
        self.context.approvals.notices.add(NoticeKind.EFFECT_UNKNOWN, data=told)


def _question(call: ToolCall, result: ToolResult, effect_id: str) -> str:
    name = one_line(call.tool.name, 200)
    why = one_line(result.error or "", 300)
    if result.error_type == "EffectConflict":
        return f"Another call is recorded in the place of {name} ({why}). Did this one happen, or make it now?"
    lost = f"{name} was sent as {one_line(effect_id, 300)} and its answer was lost ({why})"
    return f"{lost}. Did it happen, did it not happen, or send it again?"
