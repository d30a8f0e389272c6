"""Run a program: every batch of calls it makes goes through the one path."""

import asyncio
from contextlib import suppress

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approval import RequestKind
from backstay.budget import code_runs_refused, program_calls_refused
from backstay.decision import RunProgram
from backstay.halt import Halt
from backstay.program_answer import ProgramAnswer
from backstay.safety import Safety
from backstay.shown import one_line
from backstay.status import State
from backstay.tool import Tool, ToolCall, ToolResult
from workflows.desk import Desk
from workflows.perform import Perform

RUN_PROGRAM = Tool(name="engine.run_program", safety=Safety.READ_ONLY)
"""A program changes nothing by itself: each of its calls is ruled on when it is made."""
_CHECK_S = 30
LOST = frozenset({"WorkerLost", "SandboxLost", "IsolationUnavailable"})


class Programs:
    """Carry programs from their first line to their result."""

    def __init__(self, desk: Desk, perform: Perform) -> None:
        """Work at the run's desk, through its one path."""
        self.desk = desk
        self.perform = perform
        self._kept: tuple[str, str] | None = None
        self._checks: list[asyncio.Task[None]] = []

    async def run(self, action: RunProgram) -> ToolResult:
        """Run one program; what goes wrong in it is an answer for the model.

        Raises BudgetExceeded, Expired or Rejected.
        """
        state = self.desk.state
        await self.desk.afford(lambda: code_runs_refused(state.budget, state.usage))
        call = ToolCall(id=action.call_id, tool=RUN_PROGRAM, arguments={"source": action.source}, reason=action.reason)
        consent = (await self.perform.consent.obtain([call], kind=RequestKind.PROGRAM))[0]
        if isinstance(consent, ToolResult):
            return consent
        state.usage = state.usage.model_copy(update={"code_runs": state.usage.code_runs + 1})
        self.desk.record("program.started", one_line(action.reason or action.source, 120)[0], program=action.program)
        halt = await self._to_its_end(action)
        self.desk.record("program.ended", halt.error or f"finished after {halt.rounds} rounds", rounds=halt.rounds)
        if halt.sampled:
            self._checks.append(asyncio.create_task(self._check(action, halt)))
        return await self._stored(halt)

    async def leave(self) -> None:
        """Leave nothing behind when the run ends: no check under way, and no jail that waits for an answer."""
        if self._checks:
            _, late = await workflow.wait(self._checks, timeout=_CHECK_S)
            for check in late:
                check.cancel()
        if self._kept is not None:
            queue, program = self._kept
            ask = calls.ForgetProgram(run=self.desk.state.run, program=program)
            with suppress(ApplicationError):
                await self.desk.menu.order_once(calls.forget_program, ask, queue=queue, counted=False)

    async def _check(self, action: RunProgram, halt: Halt) -> None:
        """Have a program run again from its journal, beside the run; only a difference is worth a word."""
        state = self.desk.state
        ask = calls.VerifyProgram(run=state.run, program=action.program, journal=halt.journal, image=halt.image)
        queue = "" if state.opened is None else state.opened.sandbox_queue
        with suppress(ApplicationError, asyncio.CancelledError):
            again = await self.desk.menu.order_once(
                calls.verify_program, ask, summary="run the program again", queue=queue, counted=False
            )
            if again.differs:
                told = f"run again from its journal, {again.differs}"
                self.desk.record("program.diverged", told, program=action.program)

    async def _to_its_end(self, action: RunProgram) -> Halt:
        halt = Halt(kind="waiting")
        answers: tuple[ProgramAnswer, ...] = ()
        made = 0
        while True:
            with self.desk.doing(State.COMPUTING):
                try:
                    halt = await self._resumed(action, halt, answers)
                except ApplicationError as error:
                    if error.type not in {"IsolationUnavailable", "ImageMissing", "ProgramDiverged"}:
                        raise
                    return Halt(kind="crashed", error=error.message, error_type=error.type, rounds=halt.rounds)
            self._kept = (halt.queue, action.program) if halt.kind == "waiting" else None
            if halt.kind != "waiting":
                return halt
            await self.desk.gate()
            answers = await self._answers(halt, made)
            made += len(halt.calls)

    async def _resumed(self, action: RunProgram, halt: Halt, answers: tuple[ProgramAnswer, ...]) -> Halt:
        """Go on where the program is kept; anywhere else its journal is fed to a new one first."""
        state = self.desk.state
        ask = calls.ResumeProgram(run=state.run, program=action.program)
        if halt.journal:
            ask = ask.model_copy(update={"journal": halt.journal, "append": answers, "image": halt.image})
        summary = f"program, round {halt.rounds + 1}"
        order = self.desk.menu
        if halt.queue:
            try:
                return await order.order_once(calls.resume_program, ask, summary=summary, queue=halt.queue)
            except ApplicationError as error:
                if error.type not in LOST:
                    raise
        common = "" if state.opened is None else state.opened.sandbox_queue
        # Nothing was done yet in the first round: the model may go another way. Later a person is asked first.
        begin = order.order_once if not halt.journal else order.order
        return await begin(calls.resume_program, ask, summary=summary, queue=common)

    async def _answers(self, halt: Halt, made: int) -> tuple[ProgramAnswer, ...]:
        """Perform one batch; a call that may not be made is answered with its error."""
        answers: dict[int, ProgramAnswer] = {}
        going: list[ToolCall] = []
        for index, call in enumerate(halt.calls):
            refusal = halt.refused.get(index)
            kind = "ArgumentsInvalid"
            if refusal is None:
                refusal = program_calls_refused(self.desk.state.budget, made + index)
                kind = "BudgetExceeded"
            if refusal is None:
                going.append(call)
            else:
                answers[int(call.id)] = ProgramAnswer(i=int(call.id), error=refusal, error_type=kind)
        if going:
            for one in await self.perform.batch(going):
                answers[int(one.call.id)] = _answer(int(one.call.id), one.result)
        return tuple(answers[int(call.id)] for call in halt.calls)

    async def _stored(self, halt: Halt) -> ToolResult:
        if halt.payload is None:
            return ToolResult(success=False, error=halt.error, error_type=halt.error_type)
        ask = calls.DigestPayload(run=self.desk.state.run, label="program", payload=halt.payload)
        kept = await self.desk.menu.order(calls.digest, ask, summary="keep what the program returned")
        if halt.kind == "finished":
            return kept
        return ToolResult(success=False, ref=kept.ref, error=halt.error, error_type=halt.error_type)


def _answer(i: int, result: ToolResult) -> ProgramAnswer:
    if result.success and result.ref is not None:
        return ProgramAnswer(i=i, ref=result.ref)
    if result.success:
        return ProgramAnswer(i=i)
    return ProgramAnswer(i=i, error=result.error or "it failed", error_type=result.error_type or "ToolError")
