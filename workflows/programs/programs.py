"""Run a program: every batch of calls it makes goes through the one path."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.approval import RequestKind
from backstay.budgets.budget import code_runs_refused, first_limit_hit, program_calls_refused
from backstay.effects.compensation import standing
from backstay.errors import ProgramCancelled
from backstay.plans.rehearsal import Rehearsal, RehearsedCall
from backstay.policies.denials import denials_of
from backstay.shown import one_line
from backstay.task.decision import RunProgram
from backstay.task.event import summary_drafts
from backstay.task.status import State
from backstay.tools.program import RUN_PROGRAM, Halt, ProgramAnswer, sandbox_error
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from workflows.calls.reconcile import CallWithResult
from workflows.calls.tool_calls import ToolCalls
from workflows.consent.consent import Consented, refused
from workflows.context.calls_in_flight import CallInFlight
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import LOST, TRANSIENT
from workflows.programs.rehearsals import (
    MOST_REHEARSED,
    ProgramForecast,
    as_foretold,
    ask_about_forecast,
    end_rehearsal,
    rehearse_call,
)
from workflows.state.work import ProgramWork

REFUSED = frozenset({"Denied", "IsolationUnavailable", "ImageMissing", "ProgramDiverged"})
"""What ends a program and not its run; what can be mended does so once a person has given up waiting for that."""
LOSSES = frozenset({"SandboxLost", LOST})
_CHECK_S = 30
MOST_TOLD = 20
"""Of how many calls of a program the model is told what people did to them."""


class Programs:
    """Carry programs from their first line to their result."""

    def __init__(self, context: RunContext, tool_calls: ToolCalls) -> None:
        """Work at the run's context, through its one way to the world."""
        self.context = context
        self.tool_calls = tool_calls
        self._kept: set[tuple[str, str]] = set()
        self._checks: list[asyncio.Task[None]] = []

    async def run(self, action: RunProgram) -> ToolResult:
        """Run one program; an error in it is an answer for the model.

        Raises BudgetExceeded, Expired or Rejected.
        """
        self.tool_calls.consent.program = _as_call(action)
        try:
            return await self._run(action)
        finally:
            self.tool_calls.consent.program = None

    async def _run(self, action: RunProgram) -> ToolResult:
        state = self.context.state
        if state.work.program is None:
            refused = await self._begun(action)
            if refused is not None:
                state.record_progress(RUN_PROGRAM.name, success=False)
                return refused
        halt = await self._lived(action)
        if isinstance(halt, ToolResult):
            return halt
        result = await self._stored(halt)
        if halt.kind == "crashed" and halt.payload is not None:
            # An end that the engine itself brought about is not a fault of the program.
            state.work.fault = f"{RUN_PROGRAM.name}: {halt.error}"
        state.work.said = result.marked
        state.record_progress(RUN_PROGRAM.name, success=result.success)
        said = result.snippet or result.size
        text = halt.error or f"finished after {halt.rounds} rounds{f' -> {said}' if said else ''}"
        success, more = halt.kind == "finished", {} if result.ref is None else {"summary_ref": result.ref}
        used = {} if halt.used is None else {"used": halt.used.plain()}
        self.context.record("program.ended", text, rounds=halt.rounds, success=success, **more, **used)
        self.context.record_drafts(summary_drafts("program", result, self.context.state.usage.step))
        if halt.sampled:
            self._checks.append(asyncio.create_task(self._check(action, halt)))
        return result

    async def _begun(self, action: RunProgram) -> ToolResult | None:
        """Count a program that may run, or return why it may not."""
        state = self.context.state
        if not state.work.ran:
            await self.context.afford(lambda: code_runs_refused(state.budget, state.usage))
        call, warned = _as_call(action), {"warnings": list(action.warnings)} if action.warnings else {}
        consent = (await self.tool_calls.consent.obtain([call], Purpose.PROGRAM, kind=RequestKind.PROGRAM))[0]
        if isinstance(consent, ToolResult):
            self.tool_calls.tell(CallInFlight(Purpose.PROGRAM, call, 0, self.context.state.usage.step), consent)
            return consent
        if not state.work.ran:
            state.usage = state.usage.model_copy(update={"code_runs": state.usage.code_runs + 1})
            state.work.ran = True
        why = one_line(action.reason or action.begins or str(action.source), 120)
        self.context.record("program.started", why, program=action.program, **warned)
        self.context.forget_agreed()
        begun = ProgramWork(halt=Halt(kind="waiting"), first_effect=state.next_effect, undos=state.undos, answers=())
        state.work.program = begun.model_copy(update={"rehearsal": Rehearsal()}) if state.task.rehearse else begun
        return None

    async def _lived(self, action: RunProgram) -> Halt | ToolResult:
        """Return how it ended, or why it may not run for real after it was rehearsed."""
        work = self.context.state.work
        halt = await self._to_its_end(action)
        at = work.program
        if at is None or at.rehearsal is None or at.approved:
            return halt
        at = work.program = await self._rehearsal_over(at, at.rehearsal)
        rehearsal = at.rehearsal or Rehearsal()
        if not rehearsal.simulated:
            # Everything that it did was done for real.
            return halt
        if self._withdrawn():
            return await self._cancelled()
        if halt.kind == "crashed":
            return halt.model_copy(update={"error": f"in the rehearsal, before anything was changed: {halt.error}"})
        foretold = ProgramForecast(rehearsal, action.program, action.reason)
        try:
            answered = await ask_about_forecast(self.tool_calls.consent, at.foretold, foretold, self._withdrawn)
            await self.context.gate()
        finally:
            self.context.forget_agreed()
        if self._withdrawn():
            return await self._cancelled()
        refusal = next((answer for answer in answered.values() if isinstance(answer, ToolResult)), None)
        if refusal is not None:
            call = ToolCall(id=action.call_id, tool=RUN_PROGRAM, arguments={}, reason=action.reason)
            self.tool_calls.tell(CallInFlight(Purpose.PROGRAM, call, 0, self.context.state.usage.step), refusal)
            return refusal
        again = {"halt": Halt(kind="waiting"), "made": 0, "answers": (), "approved": True}
        work.program = at.model_copy(update=again)
        return await self._to_its_end(action)

    async def _rehearsal_over(self, at: ProgramWork, rehearsal: Rehearsal) -> ProgramWork:
        """Leave nothing of a rehearsal behind but what it foretells."""
        if not rehearsal.done:
            await end_rehearsal(self.context, rehearsal)
            writes = sum(entry.writes for entry in rehearsal.forecast)
            said = f"{len(rehearsal.forecast)} calls, of which {writes} would change something"
            self.context.record("program.rehearsed", said, calls=len(rehearsal.forecast), writes=writes)
        return at.model_copy(update={"rehearsal": rehearsal.model_copy(update={"done": True})})

    def effects(self) -> list[str]:
        """Return what the program under way, or just ended, has done that stands, one line for each effect."""
        work, state = self.context.state.work.program, self.context.state
        return [] if work is None else standing(state.undo, state.undone, work.first_effect)

    def people(self) -> list[dict[str, Any]]:
        """Return what people changed of its calls, and what they said; the program is not told."""
        work = self.context.state.work.program
        return [] if work is None else list(work.people)

    def _keep_people(self, call: ToolCall) -> None:
        work = self.context.state.work
        if call.by_person is None or work.program is None or len(work.program.people) >= MOST_TOLD:
            return
        told = {"call": int(call.id), "tool": one_line(call.tool.name, 200), **call.by_person.told()}
        work.program = work.program.model_copy(update={"people": (*work.program.people, told)})

    async def leave(self, *, patient: bool) -> None:
        """Leave nothing behind when the run ends: no check under way, and no jail that waits for an answer."""
        if self._checks:
            _, late = await workflow.wait(self._checks, timeout=_CHECK_S if patient else 0)
            for check in late:
                check.cancel()
        await self._forget()

    async def _forget(self) -> None:
        """End the jails in which a program may still wait, wherever it was kept."""
        kept, self._kept = sorted(self._kept), set()
        for queue, program in kept:
            ask = calls.ForgetProgram(program=program)
            with suppress(ApplicationError):
                await self.context.activities.execute_once(calls.forget_program, ask, queue=queue, counted=False)

    async def _check(self, action: RunProgram, halt: Halt) -> None:
        """Run a program again from its journal, in parallel to the run; record an event only if it differs."""
        state = self.context.state
        ask = calls.VerifyProgram(program=action.program, journal=halt.journal, image=halt.image)
        with suppress(ApplicationError, asyncio.CancelledError):
            again = await self.context.activities.execute_once(
                calls.verify_program,
                ask,
                summary="run the program again",
                queue=state.opened.sandbox_queue,
                counted=False,
            )
            if again.differs:
                told = f"run again from its journal, {again.differs}"
                self.context.record("program.diverged", told, program=action.program)

    async def _to_its_end(self, action: RunProgram) -> Halt:
        work = self.context.state.work
        while True:
            at = work.program or ProgramWork(halt=Halt(kind="waiting"), answers=())
            if at.answers is not None:
                gone_on = await self._gone_on(action, at.halt, at.answers)
                at = work.program = at.model_copy(update={"halt": gone_on, "answers": None})
            halt = at.halt
            if halt.kind != "waiting":
                return halt
            self._kept.add((halt.queue, action.program))
            await self.context.gate()
            await self.context.turn()
            await self.context.afford(self._time_refused)
            if self._withdrawn() and work.batch is None:
                # Calls that an execution before has begun are heard out first.
                return await self._cancelled()
            answers = await self._answers(halt, at.made)
            if self._withdrawn():
                return await self._cancelled()
            at = work.program or at
            work.program = at.model_copy(update={"made": at.made + len(halt.calls), "answers": answers})

    def _withdrawn(self) -> bool:
        """Return whether a person had effects undone since the program under way began."""
        state = self.context.state
        return state.work.program is not None and state.work.program.undos != state.undos

    async def _cancelled(self) -> Halt:
        """End a program since what it has read no longer holds."""
        await self._forget()
        return Halt(kind="crashed", error=str(ProgramCancelled()), error_type="ProgramCancelled")

    async def _gone_on(self, action: RunProgram, halt: Halt, answers: tuple[ProgramAnswer, ...]) -> Halt:
        """Return where it halts next; a fault that ends the program and not the run is one way to halt."""
        with self.context.doing(State.COMPUTING):
            try:
                halt_now = await self._resumed(action, halt, answers)
            except ApplicationError as error:
                if error.type in TRANSIENT:
                    self.context.state.programs_fault = one_line(error.message, 300)
                # In the first round nothing was done yet, so the model may go another way.
                refused = error.type in REFUSED or (error.type in TRANSIENT and not halt.journal)
                if not refused and error.type not in LOSSES:
                    raise
                return Halt(kind="crashed", error=error.message, error_type=error.type, rounds=halt.rounds)
            self.context.state.programs_fault = ""
            return halt_now

    def _time_refused(self) -> str | None:
        state = self.context.state
        return first_limit_hit(state.budget, state.usage, self.context.stopwatch.seconds, decisions=False)

    async def _resumed(self, action: RunProgram, halt: Halt, answers: tuple[ProgramAnswer, ...]) -> Halt:
        """Go on where the program is kept; anywhere else its journal is fed to a new one first."""
        state = self.context.state
        rehearsed = state.work.program is not None and state.work.program.rehearsing
        ask = calls.ResumeProgram(program=action.program, rehearsed=rehearsed)
        call = _as_call(action)
        if not halt.journal and (denials := denials_of(state.opened.policy, call)):
            ask = ask.model_copy(update={"denials": denials, "shown": call.arguments})
        if halt.journal:
            ask = ask.model_copy(update={"journal": halt.journal, "append": answers, "image": halt.image})
        summary = f"program, round {halt.rounds + 1}"
        activities = self.context.activities
        if halt.queue:
            try:
                gone_on = await activities.execute_once(calls.resume_program, ask, summary=summary, queue=halt.queue)
            except ApplicationError as error:
                # Another worker may go on, whatever keeps this one from it; only a person waits out what lasts.
                if error.type == "ProgramDiverged":
                    raise
            else:
                self._kept.discard((halt.queue, action.program))
                return gone_on
        # Later than in the first round a person is asked before it is given up.
        begin = activities.execute_once if not halt.journal else activities.execute
        return await begin(calls.resume_program, ask, summary=summary, queue=state.opened.sandbox_queue)

    async def _answers(self, halt: Halt, made: int) -> tuple[ProgramAnswer, ...]:
        """Perform one batch; a call that may not be made is answered with its error."""
        answers: dict[int, ProgramAnswer] = {}
        going: list[ToolCall] = []
        for index, call in enumerate(halt.calls):
            refusal = halt.refused.get(index)
            kind = "ArgumentsInvalid"
            if refusal is None:
                refusal = program_calls_refused(self.context.state.budget, made + index)
                kind = "BudgetExceeded"
            if refusal is None:
                going.append(call)
            else:
                answers[int(call.id)] = ProgramAnswer(i=int(call.id), error=refusal, error_type=kind)
        if going:
            for call, result, effect in await self._performed(going):
                answer = _answer(int(call.id), call.tool.name, result)
                if answer.i in halt.whole:
                    answer = answer.model_copy(update={"effect": effect, "undo": result.undo})
                answers[answer.i] = answer
                self._keep_people(call)
        return tuple(answers[int(call.id)] for call in halt.calls)

    async def _performed(self, batch: list[ToolCall]) -> Sequence[CallWithResult]:
        """Make the calls of one batch, or rehearse them; after a rehearsal only as it foretold them."""
        work = self.context.state.work
        at = work.program
        if at is None or at.rehearsal is None:
            return await self.tool_calls.perform(Purpose.PROGRAM, batch, unless=self._withdrawn)
        if not at.approved:
            return [await self._rehearsed(call) for call in batch]
        if work.batch is None:
            answered = {index: await self._as_foretold(call, at, at.rehearsal) for index, call in enumerate(batch)}
        else:
            # It was begun before this execution; the verdict on it was given then.
            answered = dict[int, Consented](enumerate(batch))
        made = await self.tool_calls.perform(Purpose.PROGRAM, batch, answered=answered, unless=self._withdrawn)
        refs = {int(call.id): result.ref for call, result, _ in made if result.ref is not None and result.success}
        work.program = at.model_copy(update={"results": at.results | refs})
        return made

    async def _as_foretold(self, call: ToolCall, at: ProgramWork, rehearsal: Rehearsal) -> Consented:
        number, consent = int(call.id), self.tool_calls.consent
        given: dict[str, Any] = {"approved": at.foretold.get(number), "unless": self._withdrawn}
        return await as_foretold(consent, call, number, rehearsal, at.results, **given)

    async def _rehearsed(self, call: ToolCall) -> CallWithResult:
        """Make a read that the policy allows, and foretell any other call."""
        work, number = self.context.state.work, int(call.id)
        at = work.program or ProgramWork(halt=Halt(kind="waiting"))
        rehearsal = at.rehearsal or Rehearsal()
        ruling = self.tool_calls.consent.ruling(call, Purpose.PROGRAM)
        if not rehearsal.knows(number):
            await self.context.gate()
            if self._withdrawn():
                return CallWithResult(call, refused(ProgramCancelled()))
            foretold = at.foretold
            if ruling.verdict == "deny":
                rehearsal = rehearsal.without(number, f"Denied: denied by the policy: {ruling.rule}")
            elif len(rehearsal.forecast) >= MOST_REHEARSED:
                rehearsal = rehearsal.without(number, f"BudgetExceeded: a rehearsal holds {MOST_REHEARSED} calls")
            else:
                asks = ruling.verdict == "ask" or call.effectful
                known = RehearsedCall(
                    idx=number, name=f"program {self.context.state.usage.step} {self.context.state.usage.code_runs}"
                )
                purpose = Purpose.SIMULATE if asks else Purpose.PROGRAM
                unless = self._withdrawn
                rehearsal, _ = await rehearse_call(self.tool_calls, rehearsal, call, known, purpose, unless=unless)
                foretold = {**foretold, number: call} if asks else foretold
            work.program = at.model_copy(update={"rehearsal": rehearsal, "foretold": foretold})
        return CallWithResult(call, rehearsal.answer(number))

    async def _stored(self, halt: Halt) -> ToolResult:
        if halt.payload is None:
            return ToolResult(success=False, error=halt.error, error_type=halt.error_type)
        ask = calls.DigestPayload(label="program", payload=halt.payload)
        if halt.marked:
            ask = ask.model_copy(update={"marked": True})
        kept = await self.context.activities.execute(calls.digest, ask, summary="keep what the program returned")
        if halt.kind == "finished":
            return kept
        error = halt.error or ""
        error = sandbox_error(error) if self.context.state.opened.profile.markers else error
        return kept.model_copy(update={"success": False, "error": error, "error_type": halt.error_type})


def _as_call(action: RunProgram) -> ToolCall:
    """Return a program as a call: a policy and a person see and approve the whole source."""
    shown: dict[str, Any] = {"source": action.source, **({"begins_with": action.begins} if action.begins else {})}
    shown |= {"warnings": list(action.warnings)} if action.warnings else {}
    return ToolCall(id=action.call_id, tool=RUN_PROGRAM, arguments=shown, reason=action.reason)


def _answer(i: int, tool: str, result: ToolResult) -> ProgramAnswer:
    if result.success and result.settled is not None:
        known = result.settled
        error = (
            f"{tool} took place (effect {known.effect}, {known.by} says so), but its answer is lost; do not do it again"
        )
        return ProgramAnswer(i=i, error=error, error_type="OutcomeSettled", settled=known)
    if result.success and result.ref is not None:
        known = {"cached": result.cached, "simulated": result.simulated}
        answer = ProgramAnswer(i=i, ref=result.ref)
        return answer.model_copy(update={name: True for name, holds in known.items() if holds})
    if result.success:
        return ProgramAnswer(i=i)
    return ProgramAnswer(i=i, error=result.error or "it failed", error_type=result.error_type or "ToolError")
