"""Perform tool calls: the one way to the world, steered by the table of purposes and stages."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import chain
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals import admission
from backstay.approvals.approval import RequestKind, Verdict
from backstay.approvals.undo_words import undo_told
from backstay.canonical import canonical, digest_of
from backstay.effects.compensation import UNDO_DIGEST, compensation_by
from backstay.effects.effect import DOUBTFUL
from backstay.plans.rehearsal import RehearsedCall
from backstay.policies.denials import denials_of
from backstay.shown import brief_arguments, one_line
from backstay.task.context import ContextItem
from backstay.task.event import call_drafts
from backstay.task.plan import has_references
from backstay.task.result import Failure
from backstay.task.status import State
from backstay.tools.stages import Purpose, Stage, applies
from backstay.tools.tool import DECIDED_BY, Elicitation, ToolCall, ToolResult
from workflows.asking.reminders import never
from workflows.calls.model_calls import ModelCalls
from workflows.calls.questions import Ahead
from workflows.calls.reconcile import CallWithResult, Reconcile
from workflows.calls.task_polls import TaskPolls
from workflows.consent.asked_calls import shown_call
from workflows.consent.changing import commented
from workflows.consent.consent import Answered, Consent, refused, rejected, ruling_of
from workflows.context.calls_in_flight import BatchInFlight, CallInFlight, parts_of
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import TooLarge
from workflows.state.work import RequestOutcome

QUESTIONS = 10
"""How often in a row a server may ask; a server that never has enough gets no answer."""
USUAL_S = 30
"""Characters of the arguments of an effect that are kept for those who are told what stands."""
BAD = "AnswerInvalid"
"""The type of a result that only says what is wrong with a person's answer; the question still stands."""

Made = TypeVar("Made")


class ToolCalls:
    """Carry calls of every purpose through their stages."""

    def __init__(self, context: RunContext) -> None:
        """Work at the run's context."""
        self.context = context
        self.consent = Consent(context)
        self.reconcile = Reconcile(context, self.perform)
        self.tasks = TaskPolls(context, self._ask)
        self.locks: dict[str, asyncio.Lock] = {}

    async def perform(
        self,
        purpose: Purpose,
        batch: Sequence[ToolCall],
        *,
        effect: int | None = None,
        deadline_s: float | None = None,
        usual: bool = False,
        most_s: float | None = None,
        answered: Answered | None = None,
        unless: Callable[[], bool] = never,
        rehearsal: RehearsedCall | None = None,
        results: dict[int, str] | None = None,
        steps: Mapping[str, int] | None = None,
        then: ModelCalls | None = None,
    ) -> list[CallWithResult]:
        """Run calls that were decided together through the stages of their purpose; results keep the order of calls.

        `effect` is the one that a check or a compensation is about, `answered` the verdict on a plan as a whole; a
        tool's own time stands against a `usual` deadline only, and none against `most_s`; when `unless` becomes true,
        questions to people are withdrawn, and no call begins. In a `rehearsal` calls refer to its own `results`.
        `steps`: by its id, the step that a call is, where not all are of the present one. `then` asks the model what
        is next as soon as all have ended, where nothing speaks against it. Raises BudgetExceeded, Expired or Rejected.
        """

        def flight(call: ToolCall) -> CallInFlight:
            seconds = self._deadline(call, deadline_s, most_s, usual=usual)
            step = (steps or {}).get(call.id, self.context.state.usage.step)
            more: dict[str, Any] = {"unless": unless, "rehearsal": rehearsal, "results": results}
            more["most_s"] = most_s if usual or deadline_s is None else seconds
            return CallInFlight(purpose, call, seconds, step, effect, **more)

        if not applies(purpose, Stage.RESERVE):
            answered = answered or await self.consent.obtain(batch, purpose, unless=unless)
            flights = BatchInFlight(_refused_in(answered), [flight(call) for call in _going(answered)])
            made = iter([await self._made(self._bind(call)) for call in flights.calls])
        else:
            flights = self._begun_before(flight) or await self._begun(batch, purpose, answered, flight, unless)
            made = iter(await self._all_made(flights, then))
        return self._ended(_in_order(batch, flights.refused, made))

    def _ended(self, ended: list[CallWithResult]) -> list[CallWithResult]:
        self.context.state.note_private(done.call.tool.provider for done in ended if done.result.private)
        return ended

    async def _all_made(self, flights: BatchInFlight, then: ModelCalls | None) -> list[CallWithResult]:
        """Make calls that were begun; an execution that ends meanwhile hands them on."""
        self.context.batch = flights
        keep_order(flights.calls)
        ahead = None if then is None or not _fit_for_one_activity(flights) else then.reserve_ahead()
        self.context.calls_in_flight += 1
        try:
            with self.context.doing(State.CALLING):
                if then is not None and ahead is not None:
                    await self._act_and_ask(flights.calls, then, ahead)
                return await self._each_made(flights.calls)
        finally:
            self.context.calls_in_flight -= 1
            self.context.batch = None

    async def _act_and_ask(self, flights: Sequence[CallInFlight], then: ModelCalls, ahead: Ahead) -> None:
        """Make calls, and ask the model what comes next, in one activity; calls left undone by it are made as usual."""
        asks = [self._request_for(flight) for flight in flights]
        answers = [answer_to(flight.call) for flight in flights]
        ordered = tuple(place for place, flight in enumerate(flights) if flight.ordered)
        summary = one_line("; ".join(_summary(flight) for flight in flights), 120)
        acted = await then.ask_after(
            ahead,
            calls.ActAndAsk(calls=tuple(asks), answers=tuple(answers), ordered=ordered, ask=ahead.ask),
            summary=summary,
            deadline_s=sum(flight.deadline_s for flight in flights),
        )
        _go_on(flights, asks, acted)

    async def _each_made(self, flights: Sequence[CallInFlight]) -> list[CallWithResult]:
        """Make calls at the same time, in as few activities as may be; results keep the order of calls."""
        parts = parts_of(flights)
        made = await self._together([self._part_made([flights[place] for place in part]) for part in parts])
        places = [place for part in parts for place in part]
        by_place = dict(zip(places, chain.from_iterable(made), strict=True))
        return [by_place[place] for place in range(len(flights))]

    async def _part_made(self, flights: Sequence[CallInFlight]) -> list[CallWithResult]:
        """Make calls that travel together; calls that their activity leaves undone are made as usual."""
        if len(flights) == 1:
            return [await self._made(flights[0])]
        await self._call_together(flights)
        return await self._together([self._made(flight) for flight in flights])

    async def _call_together(self, flights: Sequence[CallInFlight]) -> None:
        """Make reads in one activity, which takes as long as the slowest of them may."""
        asks = [self._request_for(flight) for flight in flights]
        summary = one_line(f"{len(flights)} reads: {'; '.join(map(_summary, flights))}", 120)
        seconds, activities = max(flight.deadline_s for flight in flights), self.context.activities
        called = None
        try:
            together = calls.CallTogether(calls=tuple(asks))
            called = await activities.execute_once(calls.call_together, together, summary=summary, deadline_s=seconds)
        except ApplicationError as error:
            if not isinstance(error, TooLarge):
                await activities.ask_whether_again(calls.call_together, error)
        _go_on(flights, asks, called)

    def _deadline(self, call: ToolCall, given: float | None, most: float | None, *, usual: bool) -> float:
        """Return how long a call may take; its own time stands against usual ones only, which nobody chose."""
        seconds = given or self.context.state.opened.deadline_s
        if usual or (given is None and seconds == USUAL_S):
            seconds = call.deadline_s or seconds
        return min(seconds, most or seconds)

    async def _begun(
        self,
        batch: Sequence[ToolCall],
        purpose: Purpose,
        answered: Answered | None,
        flight: Callable[[ToolCall], CallInFlight],
        unless: Callable[[], bool],
    ) -> BatchInFlight:
        """Return the calls that may be made, counted and numbered; nothing is sent yet."""
        try:
            if answered is None:
                answered = await self.consent.obtain(batch, purpose, unless=unless)
            await self.consent.afford(_going(answered))
            await self.context.gate()
        finally:
            # An agreement is about these calls only.
            self.context.forget_agreed()
        if unless():
            answered = {**dict.fromkeys(answered, refused(errors.ProgramCancelled())), **_refused_in(answered)}
        flights = [flight(call) for call in _going(answered)]
        for call in flights:
            self.context.state.usage = self.context.state.usage.called(call.call.tool.name)
            self._bind(call)
        not_made = _refused_in(answered)
        for index, result in not_made.items():
            self.tell(flight(batch[index]), result)
        return BatchInFlight(not_made, flights)

    def _begun_before(self, flight: Callable[[ToolCall], CallInFlight]) -> BatchInFlight | None:
        """Return the batch that the execution before began, or None."""
        work = self.context.state.work
        batch, work.batch = work.batch, None
        if batch is None:
            return None
        return BatchInFlight(batch.refused, [flight(begun.call).go_on(begun) for begun in batch.calls])

    async def _together(self, running: Sequence[Coroutine[Any, Any, Made]]) -> list[Made]:
        # Every call is waited for, even when one of them fails: nothing may be in flight afterwards.
        done = await asyncio.gather(*running, return_exceptions=True)
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in done if not isinstance(outcome, BaseException)]

    async def _made(self, flight: CallInFlight) -> CallWithResult:
        """Run one call from its intent to its outcome."""
        if flight.raised is not None:
            raise flight.raised.error()
        if flight.done and flight.result is not None:
            return CallWithResult(flight.call, flight.result, flight.effect)
        try:
            result = await self._outcome(flight)
        except errors.BackstayError as error:
            flight.raised = Failure.of(error)
            raise
        flight.result, flight.done = result, True
        self.tell(flight, result)
        return CallWithResult(flight.call, result, flight.effect)

    async def _outcome(self, flight: CallInFlight) -> ToolResult:
        tool = flight.call.tool
        if flight.purpose is Purpose.UNDO:
            flight.send += await self.reconcile.sends_before(flight.effect or 0)
        waits = tool.serial or flight.ordered
        async with self.locks.setdefault(tool.provider, asyncio.Lock()) if waits else nullcontext():
            result = await self._sent(flight)
            if result.error_type == "ToolChanged" and tool.definition:
                result = await self._send_changed(flight, result)
        if applies(flight.purpose, Stage.SETTLE, reads=flight.effect is None):
            settled = self.reconcile.undone if flight.purpose is Purpose.UNDO else self.reconcile.settled
            result = await settled(flight, result, self._sent)
        if flight.effect is not None and applies(flight.purpose, Stage.BIND_UNDO):
            self._note(flight.effect, result)
        return result

    async def _sent(self, flight: CallInFlight) -> ToolResult:
        """Send a call, and again with each answer that a person gives to its server's questions."""
        result = flight.answer_before() or await self._order(flight)
        for _ in range(QUESTIONS):
            if result.task is not None:
                return await self.tasks.followed(flight, result)
            question, effect = result.question, flight.effect
            if question is None:
                return result
            decided = await self._ask(flight.call, question, result)
            flight.call = commented(flight.call, decided)
            if decided.stop:
                raise rejected(decided)
            if decided.verdict is Verdict.ANSWER or (question.said is None and decided.verdict is not None):
                if question.said is not None and effect is not None:
                    # Answering means that the call is to be made again.
                    await self.reconcile.settle(effect, "did_not_happen", f"{decided.by} answered its question")
                    flight.send += 1
                flight.question = question.sealed
                flight.reply = decided.answer if decided.verdict is Verdict.ANSWER else None
                result = await self._order(flight)
            elif question.said is None:
                return refused(errors.Expired(f"nobody answered {flight.call.tool.name} in time"))
            else:
                return await self._left(effect, result)
        return ToolResult(success=False, error="its server asks without end", error_type="ToolError")

    async def _order(self, flight: CallInFlight) -> ToolResult:
        """Run the activity `call_tool`; this is the only place that does."""
        summary = _summary(flight)
        ask = self._request_for(flight)
        # An execution that takes over meanwhile goes on with this send: the answer to the last one says nothing of it.
        flight.result = None
        flight.result = result = await self.context.activities.execute(
            calls.call_tool, ask, summary=summary, deadline_s=flight.deadline_s
        )
        flight.question, flight.reply, flight.told = "", None, (ask, result)
        return result

    def _request_for(self, flight: CallInFlight) -> calls.CallTool:
        """Return what is asked for a call, which counts as made with it."""
        state, call, effect, purpose = self.context.state, flight.call, flight.effect, flight.purpose
        more: dict[str, Any] = {}
        if applies(purpose, Stage.EVENT):
            more |= {"draft": state.take_draft_number(), "step": flight.step}
        if applies(purpose, Stage.RESERVE) or flight.rehearsal is not None:
            more |= {"definition": call.tool.definition, "arguments": call.arguments, "sources": call.sources}
            more |= {"args_digest": digest_of(call.arguments)} if effect is not None else {}
            # Only the steps of a plan refer to results; in other calls a string that looks so is a string.
            if purpose is Purpose.PLAN_STEP or flight.results is not None:
                more |= {"of_plan": True, "results": state.step_results if flight.results is None else flight.results}
            more |= {"denials": denials_of(state.opened.policy, call)}
            more |= {"rehearsal": flight.rehearsal, "limits": call.limits}
        if not applies(purpose, Stage.RESERVE):
            # The arguments of a check and of a compensation are sealed in the store, with the effect.
            more |= {"purpose": purpose.value, "args_digest": call.arguments.get(UNDO_DIGEST, "")}
            state.count_free_call()
        if applies(purpose, Stage.RULE):
            more["ruling"] = self.consent.ruling(call, purpose).told
        more |= {"asked_again": True} if flight.asked_again else {}
        if call.tool.changed and applies(purpose, Stage.RULE):
            # The call would not be under way without a person's word, which holds for the definition.
            self.consent.accepted.add((call.tool.name, call.tool.definition))
            more["accepted"] = True
        if flight.authority is not None and flight.authority.restricts:
            more["authority"] = flight.authority
        more |= {"effect": effect, "send": flight.send, "tried": flight.tried, "deadline_s": flight.deadline_s}
        return calls.CallTool(tool=call.tool.name, question=flight.question, reply=flight.reply, **more)

    def tell(self, flight: CallInFlight, result: ToolResult) -> None:
        """Add the event of a call whose outcome is known."""
        if not applies(flight.purpose, Stage.EVENT):
            return
        call, step = flight.call, flight.step
        if flight.purpose is not Purpose.PROGRAM:
            self.context.state.record_progress(call.tool.name, success=result.success)
        if flight.told is not None and flight.told[1] is result and not result.untold:
            ask = flight.told[0]
            self.context.record_drafts(ask.happened(result), kept_as=ask.draft)
        else:
            drafts = call_drafts(
                call.tool.name, call.arguments, result, effect=flight.effect, sources=call.sources, step=step
            )
            self.context.record_drafts(drafts)

    async def _left(self, effect: int | None, result: ToolResult) -> ToolResult:
        """Return what an older server did without an answer, as it stands."""
        if effect is not None:
            happened = "happened" if result.success else "did_not_happen"
            await self.reconcile.settle(effect, happened, "its server went on")
        kind = None if result.success else "ToolError"
        return result.model_copy(update={"question": None, "error_type": kind})

    async def _ask(
        self, call: ToolCall, question: Elicitation, result: ToolResult, unless: Callable[[], bool] = never
    ) -> RequestOutcome:
        ruling = ruling_of(self.context.state.opened.policy, call)

        async def check_answer(answer: Any) -> None:
            ask = calls.CheckCall(tool=call.tool.name, question=question.sealed, reply=answer)
            checked = await self.context.activities.execute_in_handler(
                calls.check_call, ask, summary=f"check the answer for {one_line(call.tool.name, 80)}"
            )
            if checked.error is not None:
                raise admission.DecisionInvalid(checked.error)

        return await self.context.ask(
            RequestKind.ELICITATION,
            _words(call, question, result),
            Verdict.ANSWER,
            Verdict.REJECT,
            rule="engine: the tool's server asks",
            # The person who had to decide about the call answers for it, too; without such a rule it never expires.
            ruling=ruling if ruling.verdict == "ask" else None,
            unless=unless,
            key=f"elicitation {call.id} {question.sealed}",
            whole=call,
            check_answer=check_answer,
            calls=(shown_call(call, undo=undo_told(call.tool, self.context.state.opened.policy)),),
            schema=question.form,
        )

    async def _send_changed(self, flight: CallInFlight, result: ToolResult) -> ToolResult:
        """Ask again about a tool that is no longer the one that was ruled on; nothing has been sent yet."""
        call, name = flight.call, flight.call.tool.name
        # Only what a step of a plan still refers to cannot be checked yet.
        of_plan = flight.purpose is Purpose.PLAN_STEP or flight.results is not None
        resolved = not (of_plan and has_references(call.arguments))
        checked = await self.context.check_call(
            name, call.arguments, resolved=resolved, of_plan=of_plan, summary=f"look at the changed {name}"
        )
        if checked.tool is None or checked.error is not None:
            return result.model_copy(update={"error": checked.error or result.error})
        flight.call = call.model_copy(update={"tool": checked.tool})
        same = checked.tool.is_defined_by(call.tool.definition)
        why = f"the tool's {'program' if same else 'definition'} has changed since it was ruled on"
        answer = await self.consent.again(flight.call, flight.purpose, why, flight.unless)
        if isinstance(answer, ToolResult):
            return answer
        flight.call, flight.asked_again = answer, True
        self._bind(flight)
        return await self._sent(flight)

    def _bind(self, flight: CallInFlight) -> CallInFlight:
        """Number an effect and add it to the undo stack, before it is sent."""
        tool = flight.call.tool
        if flight.effect is None and applies(flight.purpose, Stage.INTENT, reads=not flight.call.effectful):
            flight.effect = self.context.state.take_effect_number()
        if flight.effect is None or not applies(flight.purpose, Stage.BIND_UNDO):
            return flight
        self.context.state.record_write(flight.call, flight.effect, workflow.now())
        # A task that names who may make its calls must not decide who may undo them.
        flight.authority = ruling_of(self.context.state.opened.policy.operators, flight.call).authority
        arguments = brief_arguments(flight.call.arguments).arguments
        slot = compensation_by(tool, flight.effect, flight.step, arguments, flight.authority)
        self.context.state.undo = self.context.state.undo.push(slot)
        return flight

    def _note(self, effect: int, result: ToolResult) -> None:
        """Keep in the undo stack what may have happened, drop what certainly did not."""
        state = self.context.state
        uncertain = result.error_type in {"OutcomeUnknown", "EffectConflict", DOUBTFUL}
        stands = result.success or uncertain
        state.record_write_ended(effect, one_line(result.error or "it succeeded", 200) if stands else None)
        slot = next((slot for slot in state.undo.slots if slot.effect == effect), None)
        if slot is None:
            return
        if result.success:
            state.undo = state.undo.push(slot.with_answer(result.undo))
        elif not uncertain:
            state.undo = state.undo.drop(effect)
        self.context.changed()


def answer_to(call: ToolCall) -> ContextItem:
    """Return the answer of a call for the model, still without its result, with what people did to the call."""
    by_person = None if call.by_person is None else canonical({DECIDED_BY: call.by_person.told()})
    return ContextItem(kind="answer", call_id=call.id, text=by_person)


def _fit_for_one_activity(flights: BatchInFlight) -> bool:
    """Return whether calls can be made in one activity: none was refused or begun before, or waits for others."""
    return bool(flights.calls) and not (
        flights.refused
        or any(
            flight.begun_before or flight.done or flight.raised or flight.call.tool.serial for flight in flights.calls
        )
    )


def _go_on(flights: Sequence[CallInFlight], asks: Sequence[calls.CallTool], called: calls.CallOutcomes | None) -> None:
    """Go on with what an activity for several calls brought; without it each call is made by itself."""
    results = [None] * len(asks) if called is None else called.results
    for flight, ask, result in zip(flights, asks, results, strict=True):
        flight.go_on_with(ask, result)


def keep_order(flights: Sequence[CallInFlight]) -> None:
    """Have the writes to one provider made one after the other, in the order in which they were decided."""
    writes = [flight for flight in flights if flight.call.effectful and not flight.call.tool.parallel]
    many = {name for name, count in Counter(flight.call.tool.provider for flight in writes).items() if count > 1}
    for flight in writes:
        flight.ordered = flight.call.tool.provider in many


def _in_order(
    batch: Sequence[ToolCall], refused: dict[int, ToolResult], made: Iterator[CallWithResult]
) -> list[CallWithResult]:
    return [
        CallWithResult(call, refused[index]) if index in refused else next(made) for index, call in enumerate(batch)
    ]


def _going(answered: Answered) -> list[ToolCall]:
    return [answer for _, answer in sorted(answered.items()) if isinstance(answer, ToolCall)]


def _refused_in(answered: Answered) -> dict[int, ToolResult]:
    return {index: answer for index, answer in answered.items() if isinstance(answer, ToolResult)}


def _words(call: ToolCall, question: Elicitation, result: ToolResult) -> str:
    name = one_line(call.tool.name, 200)
    fault = f"The last answer does not fit ({one_line(result.error or '', 300)}). " if result.error_type == BAD else ""
    visit = f" It wants you to visit {one_line(question.url, 500)}." if question.url else ""
    then = "Your answer lets the call go on; reject to decline."
    if question.said is not None:
        then = (
            f"It went on without an answer and said: {one_line(question.said, 300)}. "
            "Your answer makes the call again; reject to leave it at that."
        )
    return f"{fault}{name} asks: {question.message}{visit} {then}"


def _summary(flight: CallInFlight) -> str:
    """Return a one-line summary for operators: the tool, its most telling argument, how the call is undone."""
    call, name = flight.call, one_line(flight.call.tool.name, 80)
    if flight.purpose is Purpose.UNDO:
        return f"undo: {call.arguments['undo']}"[:200]
    if not applies(flight.purpose, Stage.RULE):
        return f"{flight.purpose.replace('_', ' ')} {name}, effect {flight.effect}"
    argument = next((str(value) for value in call.arguments.values() if isinstance(value, str | int | float)), "")
    telling = f" -> {one_line(argument, 60)}" if argument else ""
    undoable = ", undoable" if call.tool.undo_declared else ", cannot be undone"
    return f"{name}{telling}{undoable if call.effectful else ''}"
