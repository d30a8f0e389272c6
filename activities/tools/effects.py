"""Send effects at most once, and record their outcomes."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog
from temporalio import activity

from activities.payloads import StoredRecord
from activities.records import Records
from activities.retrying import retry_while_unavailable, scheduled_at
from activities.tools.elicitations import Elicitations
from backstay.effects.effect import DOUBTFUL, UNDONE_BY_HAND, EffectState
from backstay.errors import ArgumentsInvalid, OutcomeUnknown, StoreUnavailable, ToolUnavailable
from backstay.policies.network import ARGUMENT, NETWORKED
from backstay.provenance.echo import UNKNOWN
from backstay.requests import CallTool
from backstay.shown import message_line, one_line
from backstay.task.event import Event
from backstay.tools.server_task import WORKING, ServerTask
from backstay.tools.tool import ToolResult
from store.effects.types import BoundUndo, EffectRow, Intent, IntentAnswer
from system.clock import uptime
from toolbox.catalog.definition import Definition
from toolbox.configuration.meaning import AnswerMeaning, Meaning, told
from toolbox.providers.answer import Answer, TaskState, refused
from toolbox.providers.elicitation import InputRequired
from toolbox.providers.provider import NotSent

IDEMPOTENT_ATTEMPTS = 3
REPAIR_S = 600
LONGEST_IN_FLIGHT_S = 30
"""For how long an activity waits for another attempt by being tried again; longer would count as a lasting fault."""
FIRST_LATE = 1_000_000_000
"""The workflow numbers its own events from 1 and may be past this activity; late ones are numbered far beyond."""

Value = TypeVar("Value")

log = structlog.get_logger("backstay.effects")


class InFlight(ToolUnavailable):
    """Another attempt may still be sending this effect."""


class _NotGranted(Exception):
    """The intent was not granted; nothing was sent."""

    def __init__(self, begun: IntentAnswer) -> None:
        self.begun = begun


class EffectIntents:
    """Open the intents of effects."""

    def __init__(self, records: Records) -> None:
        """Record everything in the store."""
        self.records = records
        self.elicitations = Elicitations(records)
        self.repairs: set[asyncio.Task[None]] = set()

    async def _with_label(self, run: str, result: ToolResult) -> ToolResult:
        """Return what an earlier send came to, with what its server had said of who may read it."""
        if result.ref is None or not await self.records.private_of(run, result.ref):
            return result
        return result.model_copy(update={"private": True})

    def again(self, row: EffectRow, within_s: float) -> "Send":
        """Return the send of an effect whose answer comes later than it, such as at the end of a task."""
        common = {name: getattr(row, name) for name in Intent.model_fields.keys() & EffectRow.model_fields.keys()}
        send = Send(self, Intent(**common, lease_s=within_s), idempotency_ttl=None, epoch_differs=False, tried=False)
        send.begun = IntentAnswer(kind="go", token=row.token, row=row)
        return send

    @contextlib.asynccontextmanager
    async def intent(
        self, intent: Intent, *, idempotency_ttl: float | None, epoch_differs: bool, tried: bool = False
    ) -> "AsyncGenerator[Send]":
        """Give out one send of an effect; `result` tells afterwards how it ended, or why it was not made.

        `tried`: whether another activity has tried it before.
        Raises ToolUnavailable when nothing was sent, and when a repeat is harmless.
        """
        send = Send(self, intent, idempotency_ttl=idempotency_ttl, epoch_differs=epoch_differs, tried=tried)
        try:
            yield send
        except _NotGranted as held:
            send.result = await self._with_label(intent.run, _result_of(held.begun))
        except NotSent as error:
            if send.begun is not None:
                await send.record(EffectState.NOT_SENT, outcome=await self.records.text(intent.run, str(error)))
            raise ToolUnavailable(str(error), retry_after=error.retry_after_s) from error
        except OutcomeUnknown as error:
            if send.begun is None:
                raise ToolUnavailable(str(error)) from error
            send.result = await send.unknown(error, send.begun.row)


class Send:
    """One send of one effect, from its intent to its outcome."""

    result: ToolResult

    def __init__(
        self, effects: EffectIntents, intent: Intent, *, idempotency_ttl: float | None, epoch_differs: bool, tried: bool
    ) -> None:
        """Prepare to send; nothing is recorded yet."""
        self.records, self.store = effects.records, effects.records.store
        self.elicitations, self.repairs = effects.elicitations, effects.repairs
        self.intent = intent
        self.provider = intent.tool.partition(".")[0]
        self.idempotency_ttl = idempotency_ttl
        self.epoch_differs = epoch_differs
        self.attempt = activity.info().attempt + tried
        self.intending = False
        self.unsettled = False
        """Whether the outcome could not be recorded, and is recorded in the background."""
        self.begun: IntentAnswer | None = None
        self.answer: Answer | None = None
        self.asked: dict[str, Any] | None = None
        """The arguments, where the answer vouches for what it does not repeat of them."""
        self._ends_at = uptime() + intent.lease_s
        self._begun_at = 0.0

    @property
    def left_s(self) -> float:
        """Return for how long this attempt may still be sending; no clock that anybody sets has a say in it."""
        return max(0.0, self._ends_at - uptime())

    @property
    def told(self) -> ToolResult:
        """Return the result; where the store cannot be written to, the workflow tells the event."""
        result = self.result if self.answer is None else used_by(self.answer, self.result)
        return result.model_copy(update={"untold": True}) if self.unsettled else result

    async def begin(self) -> None:
        """Record the intent; awaited immediately before the request leaves.

        The lease in the store counts from later than this process's own deadline, so it also ends later.
        """
        self.intending = True
        self._begun_at = uptime()
        begun = await self.store.effects.begin(
            self.intent.model_copy(update={"lease_s": self.left_s}),
            idempotency_ttl=self.idempotency_ttl,
            attempt=self.attempt,
            epoch_differs=self.epoch_differs,
        )
        if begun.kind != "go":
            raise _NotGranted(begun)
        self.begun = begun
        if not self.left_s:
            # The process was stopped meanwhile; another attempt may own the effect by now.
            raise OutcomeUnknown("the lease ended before the request was sent")

    async def carry(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Do a part of the send; once the intent is being recorded, a cancellation waits for its end."""
        task = asyncio.ensure_future(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not self.intending:
                task.cancel()
            await asyncio.wait([task])
            return task.result()

    async def stored(self, work: Callable[[], Awaitable[Value]]) -> Value:
        """Do something in the store, again while it is locked; raises StoreUnavailable."""
        return await self.carry(retry_while_unavailable(work, for_s=_patience_s(self.left_s)))

    async def settle(self, answer: Answer, judged: AnswerMeaning, undo: BoundUndo | None) -> None:
        """Record what the tool answered and what that means, together with what takes the effect back."""
        self.answer = answer
        question = None if self.intent.undo else answer.question
        if question is None and answer.question is not None and not answer.question.in_call:
            answer = refused("its server asks a question, and nobody can be asked during an undo")
            judged = AnswerMeaning(Meaning.FAILED)
        if question is not None:
            self.result = await self._asked(answer, question, undo)
            return
        kept = await self._kept(answer)
        if judged.meaning is Meaning.APPLIED:
            self.result = _applied(kept, undo)
            await self.record(EffectState.APPLIED, result_ref=kept.ref, undo=undo)
            return
        said = answer.reason or answer.error or answer.data
        shown = (await self.stored(lambda: self.records.show(self.intent.run, said, self.provider))).payload
        words = str(shown) if answer.error else one_line(told(shown), 400)
        error = told_error(f"{judged.why}: {words}" if judged.why else words)
        kind = DOUBTFUL if judged.meaning is Meaning.DOUBTFUL else "ToolError"
        self.result = ToolResult(success=False, ref=kept.ref, private=kept.private, **error, error_type=kind)
        await self.record(EffectState(judged.meaning), outcome=error["error"], result_ref=kept.ref)

    async def hand_over(self, sealed: Callable[[], Awaitable[str]], state: TaskState) -> None:
        """Record the task by which the server answers later; while the store is locked keep trying, as `record` does.

        Without that record nobody can ask about the task, so that the outcome is unknown.
        """

        async def record() -> bool:
            token = "" if self.begun is None else self.begun.token
            return await self.store.effects.hand_over(self.intent.effect_id, token, await sealed())

        try:
            recorded = await self.stored(record)
            said = await self.stored(lambda: self.records.text(self.intent.run, state.said))
        except StoreUnavailable:
            self.result = _lost("the task by which its server answers could not be recorded", self.left_s)
            self._repair_later(record)
            return
        task = ServerTask(poll_s=state.poll_s, ttl_s=state.ttl_s, said=said)
        self.result = working(task) if recorded else _lost("another outcome was recorded meanwhile", 0)

    async def _asked(self, answer: Answer, question: InputRequired, undo: BoundUndo | None) -> ToolResult:
        """Record that the server asks; the effects of an older one meanwhile are for a person to judge."""
        try:
            shown = await self.stored(lambda: self.elicitations.keep(self.intent.run, self.provider, question))
        except ArgumentsInvalid as error:
            return await self._asked_too_much(str(error), answer, question, undo)
        if not question.in_call:
            await self.record(EffectState.NOT_SENT, outcome="its server asks first")
            return ToolResult(success=False, error="its server asks first", question=shown)
        kept = await self._kept(answer)
        outcome = f"its server asked and went on: {shown.said}"
        await self.record(EffectState.UNKNOWN, outcome=outcome, result_ref=kept.ref, undo=undo)
        error = None if answer.success else shown.said
        return _applied(kept, undo).model_copy(update={"success": answer.success, "error": error, "question": shown})

    async def _asked_too_much(
        self, why: str, answer: Answer, question: InputRequired, undo: BoundUndo | None
    ) -> ToolResult:
        """Record that the server asks what nobody can be shown; what an older one did meanwhile is not known."""
        if not question.in_call:
            await self.record(EffectState.NOT_SENT, outcome=why)
            return ToolResult(success=False, error=why, error_type="ToolError")
        said = await self.stored(lambda: self.records.text(self.intent.run, question.said or ""))
        outcome = message_line(f"{why}; it went on without an answer and said: {said}", 500)
        kept = await self._kept(answer)
        await self.record(EffectState.UNKNOWN, outcome=outcome, result_ref=kept.ref, undo=undo)
        return _lost(outcome, 0)

    async def _kept(self, answer: Answer) -> StoredRecord:
        said = answer.data if answer.success else answer.error
        intent = self.intent
        asked = self.asked if answer.success else UNKNOWN
        more: dict[str, Any] = {"asked": asked, "said_of": answer.label}
        keep = self.records.keep
        return await self.stored(lambda: keep(intent.run, intent.tool, said, self.provider, answer.files, **more))

    async def record(self, state: EffectState, **values: Any) -> None:
        """Record the outcome; while the store is locked keep trying, and at last in the background."""

        async def settle() -> bool:
            token = "" if self.begun is None else self.begun.token
            return await self.store.effects.settle(self.intent.effect_id, token, state, **values)

        try:
            settled = await self.stored(settle)
        except StoreUnavailable:
            self.unsettled = True
            await self.carry(self.store.blobs.spill())
            log.warning("effect.unsettled", effect=self.intent.effect_id, state=state)
            self._repair_later(settle)
            return
        if not settled and state in {EffectState.APPLIED, EffectState.DOUBTFUL, EffectState.FAILED}:
            await self._tell_late(state)

    def _repair_later(self, settle: Callable[[], Awaitable[bool]]) -> None:
        repair = asyncio.create_task(self._repair(settle))
        self.repairs.add(repair)
        repair.add_done_callback(self.repairs.discard)

    async def _repair(self, settle: Callable[[], Awaitable[bool]]) -> None:
        try:
            await retry_while_unavailable(settle, for_s=REPAIR_S)
        except StoreUnavailable:
            log.exception("effect.unrepaired", effect=self.intent.effect_id)

    async def _tell_late(self, came: EffectState) -> None:
        """Add an event for an answer that came after another outcome was recorded; that outcome does not change."""
        intent = self.intent
        row = await self.carry(self.store.effects.get(intent.effect_id))
        recorded = "nothing" if row is None else row.state.value
        log.warning("effect.late", effect=intent.effect_id, came=came.value, recorded=recorded)
        event = Event(
            n=FIRST_LATE + 2 * intent.n + intent.undo,
            name="effect.late",
            at=scheduled_at(),
            step_index=intent.step,
            text=f"{one_line(intent.tool, 80)}: {came.value}, said late; {recorded} is recorded and stands",
            data={"effect": intent.n, "came": came.value, "recorded": recorded},
        ).of(intent.run, intent.user_id, None)
        with contextlib.suppress(StoreUnavailable):
            await self.stored(lambda: self.store.events.append(intent.run, [event]))

    async def unknown(self, error: OutcomeUnknown, row: EffectRow) -> ToolResult:
        """Return an unknown outcome; raises InFlight where a repeat is harmless."""
        ttl = self.idempotency_ttl
        # What time it is in the database at most: that of the row, and all that has passed since it was asked for.
        now = row.read_at + uptime() - self._begun_at
        harmless = ttl is not None and now < row.first_sent_at + ttl
        wait = max(0.0, row.lease - now)
        reason = await self.stored(lambda: self.records.text(self.intent.run, str(error)))
        # A server that said nothing until the deadline would say nothing again: that is for the check, or for a person.
        if harmless and not error.facts.get("timed_out") and activity.info().attempt < IDEMPOTENT_ATTEMPTS:
            raise InFlight(f"{reason}; declared idempotent, so it is sent again", retry_after=wait + 0.2)
        known = {name: True for name in ("ended", "timed_out") if error.facts.get(name)}
        return _lost(reason[:500], wait).model_copy(update=known)


def _result_of(begun: IntentAnswer) -> ToolResult:
    """Return what an intent that was not granted found; raises InFlight while another attempt may soon be done."""
    row, wait = begun.row, begun.row.lease_left_s
    match begun.kind:
        case "followed":
            # Where it stands, its server is asked.
            return working(ServerTask())
        case "wait" if wait <= LONGEST_IN_FLIGHT_S:
            raise InFlight(retry_after=wait + 0.2)
        case "undone":
            return ToolResult(success=True, error=UNDONE_BY_HAND, recorded=True)
        case "recorded" if (recorded := row.effect().recorded) is not None:
            return recorded
        case "conflict":
            error = f"{row.tool} is recorded as {row.state} under this number, with other arguments"
            return ToolResult(success=False, error=error, error_type="EffectConflict")
        case "taken":
            error = f"an effect of {row.made_by} has this number, from before the run was reset"
            return ToolResult(success=False, error=error, error_type="EffectConflict", free_number=begun.free)
        case _:
            # The workflow waits until the lease has ended, looks again, and then checks or asks.
            return _lost("an earlier attempt sent it and was lost", wait)


def _lost(reason: str, wait: float) -> ToolResult:
    return ToolResult(success=False, error=reason, error_type="OutcomeUnknown", settle_in_s=round(wait, 3))


def working(task: ServerTask) -> ToolResult:
    """Return that a server works on a call as a task."""
    return ToolResult(success=False, error="its server works on it as a task", error_type=WORKING, task=task)


def told_error(text: str) -> dict[str, Any]:
    """Return the fields of a result that tell an error: one line, and more of it where it says more."""
    line = message_line(text)
    return {"error": line, "reason": None if line == text else text}


def _applied(kept: StoredRecord, undo: BoundUndo | None) -> ToolResult:
    applied = ToolResult(success=True, **kept.facts)
    return applied if undo is None else applied.model_copy(update={"undo": undo.shown})


def used_by(answer: Answer, result: ToolResult) -> ToolResult:
    """Return the result of a call with what its jail used, where it ran in one."""
    return result if answer.used is None else result.model_copy(update={"used": answer.used})


def harmless_again_s(definition: Definition, arguments: dict[str, Any]) -> float | None:
    """Return for how long after its first send a call can be repeated without harm; None if it never can.

    The data that a command told other hosts is not undone with its files.
    """
    declared = definition.declaration
    if not declared.idempotent or (definition.name == NETWORKED and arguments.get(ARGUMENT)):
        return None
    return declared.idempotency_ttl or float("inf")


def _patience_s(left_s: float) -> float:
    """Return for how long the store is waited for: a little past the lease, and never long."""
    return min(left_s + 5, 30)


def intent_of(ask: CallTool, n: int, tool: str, args_digest: str, step: int, *, sealed: str | None = None) -> Intent:
    """Return what a call, or an undo, is about to do, as the ledger keeps it."""
    undo = ask.purpose == "undo"
    return Intent(
        effect_id=f"{ask.run}/{n}{'/undo' if undo else ''}",
        run=ask.run,
        n=n,
        undo=undo,
        tool=tool,
        args_digest=args_digest,
        step=step,
        send=ask.send,
        lease_s=ask.deadline_s,
        user_id=ask.user_id,
        arguments_sealed=sealed,
        authority=ask.authority,
        decisions=ask.decisions,
        ruling=ask.ruling,
    )
