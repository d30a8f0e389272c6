"""Undo effects, the last one first, each as its own visible activity."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Generator
from contextlib import contextmanager

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.effects.compensation import UNDO_DIGEST, Compensation, Undone, UndoOutcome, UndoStack, compensation_of
from backstay.effects.effect import SAYS_SO, UNDONE_BY_HAND, Effect, EffectState, told_of_later
from backstay.errors import DecisionRefused, Expired, Rejected
from backstay.shown import one_line
from backstay.starting import is_below
from backstay.task.status import State
from backstay.tools.stages import Purpose
from backstay.tools.tool import Safety, Tool, ToolCall, ToolResult
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import refused
from workflows.context.calls_in_flight import CallInFlight
from workflows.context.run_context import RunContext

PAGE = 200
"""How many effects are read from the store at once."""
STOPS_AT_EVENTS = 40_000
"""The server ends a run at 51,200 events."""
STOPS_AT_BYTES = 40_000_000
"""The server ends a run at 50 MB of history."""
TOO_LONG = "the history of the run is too long for more; undo again"
DOUBT = "its answer reports an error ({}); check by hand whether it took effect, and undo it by hand if so: {}"
UNDONE_BEFORE = "it was undone before, by another undo or by hand"
UNPROVEN = (
    "its record came after it was decided who may undo the others, and other people may undo this one; "
    "undo the run again, or undo it by hand: {}"
)


def unseen(undo: UndoStack, to_step: int | None, last_seen: int | None) -> DecisionRefused | None:
    """Return why an undo is refused of which the newest effect that was shown is `last_seen`; None where all was."""
    newest = next((slot.effect for slot in undo.to_undo(to_step)), 0)
    if last_seen is None or newest <= last_seen:
        return None
    return DecisionRefused(f"undo: effect {newest} is newer than what was shown; look at what would be undone")


class Rollback:
    """Run compensations in reverse order of dispatch; an effect that cannot be undone is parked, and others go on."""

    def __init__(self, context: RunContext, *, by_itself: bool = False) -> None:
        """Undo effects of one run; `by_itself`: nobody asked for it, so rules of the task hold for it, too."""
        self.context = context
        self.tool_calls = ToolCalls(context)
        self.tool_calls.consent.undoes_by_itself = by_itself
        self.reconcile = self.tool_calls.reconcile

    async def undo(
        self,
        to_step: int | None = None,
        last_seen: int | None = None,
        *,
        between: Callable[[], Awaitable[None]] | None = None,
    ) -> UndoOutcome:
        """Undo effects of steps after `to_step` (all when None); return how many ended how, and the last of them.

        `last_seen`: the newest effect that whoever asks was shown. Raises DecisionRefused when there is a later one.
        `between` is awaited before each one, when nothing is in flight. It may replace the stack by a trimmed one, or
        continue the workflow as a new execution; Rollback goes on there with what the stack and the store hold.
        When it raises Rejected, the effects that are left stay.
        """
        if (refusal := unseen(self.context.state.undo, to_step, last_seen)) is not None:
            raise refusal
        outcome = UndoOutcome()

        def count(undone: Undone) -> None:
            nonlocal outcome
            outcome = outcome.plus(undone)

        try:
            await self._undo_all(to_step, count, between or _nothing)
        finally:
            self.context.settle_plans()
        return outcome

    async def undo_effects(self, effects: Collection[int]) -> None:
        """Undo these effects only, the last one first."""
        state = self.context.state
        with self._within_execution():
            for effect in sorted(effects, reverse=True):
                slot = next((slot for slot in state.undo.slots if slot.effect == effect), None)
                if slot is not None:
                    await self._undo(slot, _unnoted)
                elif (kept := await self._stored(effect)) is not None:
                    await self._undo_stored(compensation_of(kept), _unnoted)
        self.context.settle_plans()

    async def undo_made_by(self, subrun: str, first: int) -> tuple[UndoOutcome, bool]:
        """Undo what a sub-run, and those below it, made from that number on, the last one first; others stay.

        Return what became of them, and whether that was all; an undo stops where the history becomes too long.
        """
        outcome = UndoOutcome()

        def count(undone: Undone) -> None:
            nonlocal outcome
            outcome = outcome.plus(undone)

        with self._within_execution():
            async for slot, stored in self._made_by(subrun, first):
                if await _stopped(_nothing):
                    return outcome, False
                await (self._undo_stored(slot, count) if stored else self._undo(slot, count))
        return outcome, True

    @contextmanager
    def _within_execution(self) -> Generator[None]:
        """Undo in this execution: a next one would not know what is left to undo, nor what comes after that."""
        self.context.bound_undos += 1
        try:
            with self.context.doing(State.UNDOING), self.context.activities.undoing():
                yield
        finally:
            self.context.bound_undos -= 1

    async def _made_by(self, subrun: str, first: int) -> AsyncIterator[tuple[Compensation, bool]]:
        """Yield the effects of a sub-run, and whether only the store holds them; those are read in pages."""

        def theirs(slot: Compensation) -> bool:
            return slot.made_by == subrun or is_below(slot.made_by, subrun)

        for slot in filter(theirs, self.context.state.undo.to_undo()):
            yield slot, False
        before = self.context.state.undo.below_effect + 1
        while before > first:
            page = await self._page(None, before)
            found = [compensation_of(effect) for effect in page.effects if effect.n >= first]
            for slot in filter(theirs, found):
                yield slot, True
            before = found[-1].effect if found and page.more else first

    async def _undo_stored(self, slot: Compensation, note: Callable[[Undone], None]) -> None:
        """Undo an effect that only the store holds; those beside it still wait there."""
        before = self.context.state.undo
        await self._undo(slot, note)
        below = {"below": max(0, before.below - 1), "below_effect": before.below_effect}
        self.context.state.undo = self.context.state.undo.model_copy(update=below)

    async def undone_by_hand(self, slot: Compensation, by: str, comment: str) -> None:
        """Record that a person took an effect back; raises DecisionRefused where it is known not to stand."""
        effect = await self.reconcile.settle(slot.effect, "undone_by_hand", f"{by}{SAYS_SO}")
        if effect.state is not EffectState.COMPENSATED:
            raise DecisionRefused(f"done: effect {slot.effect} is recorded as {effect.state}; look at it again")
        said = f"undone by hand, {one_line(by, 200)}{SAYS_SO}"
        self._ended(slot, "compensated", f"{said}: {one_line(comment, 1000)}" if comment else said)
        self.context.settle_plans()

    async def _stored(self, effect: int) -> Effect | None:
        """Return an effect that only the store holds, if it can still be undone."""
        ask = calls.LoadEffects(before=effect + 1, limit=1)
        page = await self.context.activities.execute(calls.load_effects, ask, summary=f"load effect {effect}")
        return next((found for found in page.effects if found.n == effect), None)

    async def _undo_all(
        self, to_step: int | None, note: Callable[[Undone], None], between: Callable[[], Awaitable[None]]
    ) -> None:
        state = self.context.state
        with self.context.doing(State.UNDOING), self.context.activities.undoing():
            for slot in state.undo.to_undo(to_step):
                if why := await _stopped(between):
                    note(self._left(to_step, why))
                    return
                await self._undo(slot, note)
            more = True
            while more and state.undo.reaches_below(to_step):
                try:
                    page = await self._page(to_step, state.undo.below_effect + 1)
                except ApplicationError as error:
                    note(self._left(to_step, f"they could not be read: {error.type}: {error.message}"))
                    return
                for effect in page.effects:
                    if why := await _stopped(between):
                        note(self._left(to_step, why))
                        return
                    await self._undo(compensation_of(effect), note, stored=True)
                more = page.more
            state.undo = state.undo.dealt_with_below(to_step)

    async def _page(self, to_step: int | None, before: int) -> calls.LoadedEffects:
        """Read the newest of those effects that only the store holds, with lower numbers than `before`."""
        after = max(self.context.state.undo.below_after, -1 if to_step is None else to_step)
        ask = calls.LoadEffects(before=before, to_step=after, limit=PAGE)
        return await self.context.activities.execute(calls.load_effects, ask, summary=f"load effects before {before}")

    def _left(self, to_step: int | None, why: str) -> Undone:
        """Return what stands for all effects that stay for a reason that they share."""
        stack = self.context.state.undo
        slots = stack.to_undo(to_step)
        next_one = slots[0] if slots else Compensation(effect=stack.below_effect, tool="", step=stack.below_step)
        count = len(slots) + (stack.below if stack.reaches_below(to_step) else 0)
        return self._named(next_one, "parked", f"this and the {max(0, count - 1)} effects before it stay; {why}")

    async def _undo(self, slot: Compensation, note: Callable[[Undone], None], *, stored: bool = False) -> None:
        try:
            if stored and not self.context.state.undo.covers(slot):
                undone = self._ended(slot, "parked", UNPROVEN.format(slot.shown))
            else:
                undone = await self._tried(slot)
        except ApplicationError as error:
            # One effect that cannot be undone must not keep the others from it.
            undone = self._ended(slot, "parked", f"{error.type}: {error.message}; to undo it by hand: {slot.shown}")
        if undone is not None:
            note(undone)

    async def _tried(self, slot: Compensation) -> Undone | None:
        """Undo one effect; None when it did not take place."""
        self.reconcile.undone_elsewhere = self.context.after_end or bool(slot.made_by)
        known = await self._known(slot)
        if known is None:
            self.context.state.undo = self.context.state.undo.dealt_with(slot.effect)
            return None
        if isinstance(known, Undone):
            return known
        if isinstance(known, str):
            return self._ended(slot, "parked", known)
        slot = known
        if slot.undo_tool is None and slot.shown is not None:
            return await self._parked(slot, f"its compensation could not be prepared; undo it by hand: {slot.shown}")
        if slot.undo_tool is None:
            kept = await self.reconcile.settle(slot.effect, "kept", "no compensation is declared")
            if kept.state is EffectState.COMPENSATED:
                return self._ended(slot, "compensated", UNDONE_BEFORE)
            return self._ended(slot, "kept", "it cannot be undone: no compensation is declared")
        result = await self._compensated(slot, slot.undo_tool)
        if result.success:
            return self._ended(slot, "compensated", UNDONE_BY_HAND if result.error == UNDONE_BY_HAND else None)
        return await self._parked(slot, f"{result.error}; to undo it by hand: {slot.shown}")

    async def _parked(self, slot: Compensation, why: str) -> Undone:
        """Leave an effect to people, unless it was undone elsewhere meanwhile: nobody is to do that twice."""
        if self.reconcile.undone_elsewhere:
            effect = await self.reconcile.look(slot.effect)
            if effect.state is EffectState.COMPENSATED:
                return self._ended(slot, "compensated", UNDONE_BEFORE)
        return self._ended(slot, "parked", why)

    async def _known(self, slot: Compensation) -> Compensation | Undone | str | None:
        """Return what to undo, or why it must be parked, or how it ended; None when the effect did not take place."""
        if not slot.unknown:
            return slot
        effect = await self.reconcile.look(slot.effect)
        if effect.followed:
            await self._end_task(slot)
            effect = await self.reconcile.look(slot.effect)
        if effect.unknown:
            doubtful = effect.state is EffectState.DOUBTFUL
            if not doubtful:
                await self.reconcile.wait_out(effect.settle_in_s, slot.tool)
            checked = await self.reconcile.check(slot.tool, slot.effect) if slot.verify else None
            if doubtful and checked is None:
                return DOUBT.format(effect.outcome, slot.shown)
            if doubtful and checked is not None and not checked.verified:
                await self.reconcile.settle(slot.effect, "failed", effect.outcome or "")
                return None
            effect = await self.reconcile.look(slot.effect)
            if checked is None or not checked.verified:
                why = f"nobody knows whether {slot.tool} took effect; check by hand, then undo: {slot.shown}"
                return slot.without_answer() if slot.by_effect_id else why
        if effect.state is EffectState.COMPENSATED:
            return self._ended(slot, "compensated", UNDONE_BEFORE)
        if effect.state not in {EffectState.APPLIED, EffectState.KEPT}:
            return None
        return slot.with_answer(effect.undo)

    async def _end_task(self, slot: Compensation) -> None:
        """Have the task end by which a server still works on an effect."""
        call = ToolCall(id=f"task-{slot.effect}", tool=Tool(name=slot.tool))
        await self.tool_calls.tasks.end(CallInFlight(Purpose.CALL, call, 0, slot.step, slot.effect))

    async def _compensated(self, slot: Compensation, undo_tool: str) -> ToolResult:
        # The real arguments stay sealed with the effect; this line names them in short.
        arguments = {"effect": f"{self.context.state.run}/{slot.effect}", "undo": slot.shown}
        tool = Tool(name=undo_tool, safety=Safety.WRITE_SAFE, undoes=slot.tool)
        call = ToolCall(id=f"undo-{slot.effect}", tool=tool, arguments=arguments)
        if self.tool_calls.consent.ruling(call, Purpose.UNDO).verdict == "ask":
            call = await self._with_arguments(call, slot.effect)
        try:
            (performed,) = await self.tool_calls.perform(Purpose.UNDO, [call], effect=slot.effect)
        except (Rejected, Expired) as error:
            return refused(error)
        return performed.result

    async def _with_arguments(self, call: ToolCall, effect: int) -> ToolCall:
        """Return a compensation with all of what it would be called with, for people to decide about."""
        shown = await self.reconcile.settle(effect, "show_undo")
        tool = call.tool.model_copy(update={"name": shown.undo_tool or call.tool.name})
        known = {"arguments": shown.undo_arguments, UNDO_DIGEST: shown.undo_digest}
        return call.model_copy(update={"tool": tool, "arguments": call.arguments | known})

    def _ended(self, slot: Compensation, state: str, detail: str | None) -> Undone:
        self.context.state.undo = self.context.state.undo.dealt_with(slot.effect)
        return self._named(slot, state, detail)

    def _named(self, slot: Compensation, state: str, detail: str | None) -> Undone:
        more = {"arguments": slot.arguments} if slot.arguments else {}
        undone = Undone(
            effect=slot.effect,
            tool=slot.tool,
            state=state,
            shown=slot.shown,
            detail=detail,
            later=slot.later,
            **more,
        )
        self.context.state.record_undone(undone)
        if state == "compensated":
            self.context.state.record_write_ended(slot.effect, None)
        said = [part for part in (detail, told_of_later(slot.later)) if part]
        text = f"{slot.called}: {', '.join([state, *said])}"
        self.context.record("undo.ran", text, effect=slot.effect, state=state)
        return undone


def _unnoted(_undone: Undone) -> None:
    return None


async def _nothing() -> None:
    return None


async def _stopped(between: Callable[[], Awaitable[None]]) -> str:
    """Return why the undo stops here, or an empty string."""
    try:
        await between()
    except Rejected as error:
        return str(error)
    info = workflow.info()
    long = info.get_current_history_length() > STOPS_AT_EVENTS or info.get_current_history_size() > STOPS_AT_BYTES
    return TOO_LONG if long else ""
