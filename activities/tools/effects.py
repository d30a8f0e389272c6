"""Send effects at most once, and read and settle what is recorded of them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import structlog
from temporalio import activity

from activities.records import Records
from activities.retrying import retry_while_unavailable, scheduled_at
from activities.tools.questions import Questions
from backstay.effects.effect import EffectState
from backstay.errors import OutcomeUnknown, StoreUnavailable, ToolUnavailable
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.tools.tool import ToolResult
from store.effects.types import Begun, BoundUndo, EffectRow, Intent
from store.store import Store
from toolbox.providers.answer import Answer, refused
from toolbox.providers.elicitation import InputRequired
from toolbox.providers.provider import NotSent

IDEMPOTENT_ATTEMPTS = 3
REPAIR_S = 600
LONGEST_IN_FLIGHT_S = 30
"""For how long an activity waits for another attempt by being tried again; longer would count as a lasting fault."""
FIRST_LATE = 1_000_000_000
"""The workflow numbers its own events from 1 and may be past this activity; late ones are numbered far beyond."""

log = structlog.get_logger("backstay.effects")


class InFlight(ToolUnavailable):
    """Another attempt may still be sending this effect."""


class _Held(Exception):
    """The intent was not granted; nothing was sent."""

    def __init__(self, begun: Begun) -> None:
        self.begun = begun


@dataclass(frozen=True)
class Send:
    """Say what is to be sent, and how its outcome is recorded."""

    intent: Intent
    label: str
    provider: str
    idempotency_ttl: float | None
    call: Callable[[Callable[[], Awaitable[None]]], Awaitable[Answer]]
    """Sends the request; awaits its argument immediately before."""
    bind: Callable[[Any], Awaitable[BoundUndo | None]]
    """Renders the compensation from the tool's answer."""


class Effects:
    """Carry one effect from intent to outcome."""

    def __init__(self, store: Store, records: Records) -> None:
        """Record everything in the store."""
        self.store = store
        self.records = records
        self.questions = Questions(records)
        self.repairs: set[asyncio.Task[None]] = set()

    async def send(self, send: Send, *, epoch_differs: bool) -> ToolResult:
        """Send unless it was sent before; once the intent is recorded, cancellation waits for the outcome."""
        begun: list[Begun] = []
        intending = asyncio.Event()

        async def before_send() -> None:
            intending.set()
            answer = await self.store.effects.begin(
                send.intent,
                idempotency_ttl=send.idempotency_ttl,
                attempt=activity.info().attempt,
                epoch_differs=epoch_differs,
            )
            if answer.kind != "go":
                raise _Held(answer)
            begun.append(answer)
            if time.time() >= send.intent.lease:
                # The process was stopped meanwhile; another attempt may own the effect by now.
                raise OutcomeUnknown("the lease ended before the request was sent")

        task = asyncio.ensure_future(self._sent(send, before_send, begun))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not intending.is_set():
                task.cancel()
            await asyncio.wait([task])
            if task.cancelled():
                raise
            return task.result()

    async def _sent(self, send: Send, before_send: Callable[[], Awaitable[None]], begun: list[Begun]) -> ToolResult:
        try:
            answer = await send.call(before_send)
        except _Held as held:
            return self._held(held.begun)
        except NotSent as error:
            if not begun:
                raise ToolUnavailable(str(error)) from error
            await self._settle(send, begun[0], EffectState.NOT_SENT, outcome=str(error))
            raise ToolUnavailable(str(error), retry_after=getattr(error, "retry_after_s", None)) from error
        except OutcomeUnknown as error:
            if not begun:
                raise ToolUnavailable(str(error)) from error
            return self._unknown(send, begun[0], error)
        return await self._answered(send, begun[0], answer)

    async def _answered(self, send: Send, begun: Begun, answer: Answer) -> ToolResult:
        if answer.question is not None and not send.intent.undo:
            return await self._asked(send, begun, answer, answer.question)
        if answer.question is not None and not answer.question.in_call:
            answer = refused("its server asks a question, and nobody can be asked while effects are taken back")
        said = answer.data if answer.success else answer.error
        ref = await retry_while_unavailable(
            lambda: self.records.keep(send.intent.run, send.label, said, send.provider, answer.files),
            until=_until(send),
        )
        if not answer.success:
            error = await self._shown_line(send, answer.error or "")
            result = ToolResult(success=False, ref=ref, error=error, error_type="ToolError")
            if not await self._settle(send, begun, EffectState.FAILED, outcome=error, result_ref=ref):
                await self._late(send, EffectState.FAILED)
            return result
        bound = await retry_while_unavailable(lambda: send.bind(answer.data), until=_until(send))
        if not await self._settle(send, begun, EffectState.APPLIED, result_ref=ref, undo=bound):
            await self._late(send, EffectState.APPLIED)
        return _result(ref, bound)

    async def _asked(self, send: Send, begun: Begun, answer: Answer, question: InputRequired) -> ToolResult:
        """Record that the server asks; what an older one did meanwhile is for a person to judge."""
        shown = await retry_while_unavailable(
            lambda: self.questions.keep(send.intent.run, send.provider, question), until=_until(send)
        )
        if not question.in_call:
            await self._settle(send, begun, EffectState.NOT_SENT, outcome="its server asks first")
            return ToolResult(success=False, error="its server asks first", question=shown)
        said = answer.data if answer.success else answer.error
        ref = await retry_while_unavailable(
            lambda: self.records.keep(send.intent.run, send.label, said, send.provider, answer.files),
            until=_until(send),
        )
        bound = (
            await retry_while_unavailable(lambda: send.bind(answer.data), until=_until(send))
            if answer.success
            else None
        )
        outcome = f"its server asked and went on: {shown.said}"
        await self._settle(send, begun, EffectState.UNKNOWN, outcome=outcome, result_ref=ref, undo=bound)
        result = _result(ref, bound)
        error = None if answer.success else shown.said
        return result.model_copy(update={"success": answer.success, "error": error, "question": shown})

    async def _late(self, send: Send, came: EffectState) -> None:
        """Tell the timeline of an outcome that came when another was recorded already; that one stands."""
        intent = send.intent
        row = await self.store.effects.get(intent.effect_id)
        recorded = "nothing" if row is None else row.state.value
        log.warning("effect.late", effect=intent.effect_id, came=came.value, recorded=recorded)
        event = Event(
            n=FIRST_LATE + 2 * intent.n + intent.undo,
            name="effect.late",
            at=scheduled_at(),
            step=intent.step,
            text=f"{one_line(send.label, 80)}: {came.value}, said late; {recorded} is recorded and stands",
            data={"effect": intent.n, "came": came.value, "recorded": recorded},
        )
        with contextlib.suppress(StoreUnavailable):
            await retry_while_unavailable(lambda: self.store.events.append(intent.run, [event]), until=_until(send))

    async def _settle(self, send: Send, begun: Begun, state: EffectState, **values: Any) -> bool:
        """Record the outcome; while the store is locked keep trying, and at last in the background."""

        async def settle() -> bool:
            return await self.store.effects.settle(send.intent.effect_id, begun.token, state, **values)

        try:
            return await retry_while_unavailable(settle, until=_until(send))
        except StoreUnavailable:
            log.warning("effect.unsettled", effect=send.intent.effect_id, state=state)
            repair = asyncio.create_task(self._repair(send, settle))
            self.repairs.add(repair)
            repair.add_done_callback(self.repairs.discard)
            return True

    async def _repair(self, send: Send, settle: Callable[[], Awaitable[bool]]) -> None:
        try:
            await retry_while_unavailable(settle, until=time.time() + REPAIR_S)
        except StoreUnavailable:
            log.exception("effect.unrepaired", effect=send.intent.effect_id)

    async def _shown_line(self, send: Send, text: str) -> str:
        shown = await retry_while_unavailable(
            lambda: self.records.show(send.intent.run, text, send.provider), until=_until(send)
        )
        return str(shown.payload)[:500]

    def _unknown(self, send: Send, begun: Begun, error: OutcomeUnknown) -> ToolResult:
        harmless = send.idempotency_ttl is not None and time.time() < begun.row.first_sent_at + send.idempotency_ttl
        wait = max(0.0, send.intent.lease - time.time())
        reason = self.records.redactor.text(str(error))
        # Who said nothing until the deadline would say nothing again: that is for the check, or for a person.
        if harmless and not error.facts.get("timed_out") and activity.info().attempt < IDEMPOTENT_ATTEMPTS:
            raise InFlight(f"{reason}; declared idempotent, so it is sent again", retry_after=wait + 0.2)
        return ToolResult(success=False, error=reason[:500], error_type="OutcomeUnknown", settle_in_s=round(wait, 3))

    def _held(self, begun: Begun) -> ToolResult:
        row = begun.row
        match begun.kind:
            case "wait" if row.lease - time.time() <= LONGEST_IN_FLIGHT_S:
                raise InFlight(retry_after=max(0.0, row.lease - time.time()) + 0.2)
            case "recorded":
                return recorded_result(row)
            case "conflict":
                error = f"{row.tool} is recorded as {row.state} under this number, with other arguments"
                return ToolResult(success=False, error=error, error_type="EffectConflict")
            case _:
                # The workflow waits until the lease has ended, looks again, and then checks or asks.
                return ToolResult(
                    success=False,
                    error="an earlier attempt sent it and was lost",
                    error_type="OutcomeUnknown",
                    settle_in_s=round(max(0.0, row.lease - time.time()), 3),
                )


def recorded_result(row: EffectRow) -> ToolResult:
    """Return the outcome that is recorded, as if it had just come."""
    if row.state is EffectState.FAILED:
        return ToolResult(success=False, ref=row.result_ref, error=row.outcome, error_type="ToolError", recorded=True)
    if row.state is EffectState.NOT_SENT:
        return ToolResult(
            success=False, error=row.outcome or "it did not happen", error_type="DidNotHappen", recorded=True
        )
    note = None if row.result_ref else row.outcome
    return ToolResult(success=True, ref=row.result_ref, error=note, undo=row.undo_shown, recorded=True)


def _until(send: Send) -> float:
    """Return until when the store is waited for: a little past the lease, and never long."""
    return min(send.intent.lease + 5, time.time() + 30)


def _result(ref: str, bound: BoundUndo | None) -> ToolResult:
    return (
        ToolResult(success=True, ref=ref, undo=bound.shown) if bound is not None else ToolResult(success=True, ref=ref)
    )
