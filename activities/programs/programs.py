"""Run programs in jails, one round at a time."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from temporalio import activity

from activities.offloading import CALLS_BYTES, offload, refuse_unfit
from activities.payloads import READ, PayloadRecords, apart
from activities.programs.journals import Journal, Journals
from activities.programs.tracing import ProgramTracing
from activities.retrying import implements
from backstay import calls
from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid, Denied, ProgramDiverged
from backstay.plans.rehearsal import tokens_in
from backstay.policies.command_lists import CommandLists
from backstay.profile import marker_of
from backstay.provenance.lookup import Lookup
from backstay.provenance.source import ArgumentSources
from backstay.redaction.handles import handles_in
from backstay.redaction.redactor import Redactor
from backstay.tools.program import RUN_PROGRAM, Halt, Program, ProgramAnswer
from backstay.tools.tool import Tool, ToolCall, tool_result
from sandbox.programs.frames import RESULT, ProgramCall, Round, names_of
from sandbox.programs.sandbox import RoundOutcome, Sandbox
from store.blobs.shown import ShownBlobStore


@dataclass(frozen=True)
class SandboxResources:
    """Hold the open resources of one sandbox worker."""

    sandbox: Sandbox
    blobs: ShownBlobStore
    redactor: Redactor
    queue: str
    """This worker's own task queue, on which the programs that it keeps continue."""
    transient_s: float
    sample_every: int = 20
    """One in this many programs that were never replayed is run again from its journal; 0 for none."""

    async def redactor_of(self, _run: str) -> Redactor:
        """Return the redactor of every run: this role cannot read secrets, and its programs are given none."""
        return self.redactor


LONGEST_S = 240.0
"""How long a program may compute in all. A replay takes up to three times as long, and must fit into an activity."""
AT_A_TIME_S = 60.0
ANSWERS_BYTES = 16 << 20
"""The most bytes in the answers to one batch: the worker and the jail each hold several copies."""
DIVERGED = "backstay_programs_diverged"
LITERAL = "arguments: what looks like a secret cannot be passed; pass the handle that a tool's answer holds"


class ProgramActivities:
    """Implement `resume_program`, `verify_program` and `forget_program`."""

    def __init__(self, resources: SandboxResources) -> None:
        """Share the worker's jails."""
        self.resources = resources
        self.transient_s = resources.transient_s
        self.payloads = PayloadRecords(resources.blobs)
        self.journals = Journals(resources.blobs)
        self.tracing = ProgramTracing(self.payloads, self.journals)
        self._ended_live = 0

    def together(self) -> AbstractAsyncContextManager[None]:
        """Keep what an activity writes together, where its payloads go through the runs role."""
        return self.resources.blobs.together()

    @implements(calls.resume_program)
    async def resume_program(self, ask: calls.ResumeProgram) -> Halt:
        """Run a program in a jail until it waits for calls or ends."""
        program, journal = await self._loaded(ask)
        _refuse_denied(ask, program)
        answers = {answer.i: answer for answer in ask.append}
        image = ask.image or await self.resources.sandbox.image_named(program.image)
        begun = time.monotonic()
        while True:
            if journal.computed_s > LONGEST_S:
                await self.resources.sandbox.forget(f"{ask.program}/")
                return await self._ended(ask, _too_long(journal), journal, image, program)
            frame = None if journal.last is None else await self._frame(ask.run, journal, answers)
            halted = await self._advanced(ask, program, image, journal, frame)
            try:
                journal = await self.journals.extend(ask.run, journal, halted.round, len(halted.calls))
            except BaseException:
                self.resources.sandbox.discard(halted)
                raise
            if halted.kind != "waiting":
                ended = await self._ended(ask, halted, journal, image, program)
                return ended.model_copy(update={"sampled": True}) if self._is_sampled(halted) else ended
            self.resources.sandbox.keep(_key(ask.program, journal), halted)
            # Reads of stored results are not effects and are answered here, but not for ever in one activity.
            if any(call.tool != RESULT for call in halted.calls) or time.monotonic() - begun > AT_A_TIME_S:
                return await self._waiting(ask, program, halted, journal, image)

    @implements(calls.verify_program)
    async def verify_program(self, ask: calls.VerifyProgram) -> calls.Reproduction:
        """Run a program again from its journal, and compare."""
        program = Program.model_validate(await self.resources.blobs.of(ask.run).get_json(ask.program))
        rounds = await self.journals.rounds(ask.run, ask.journal)
        try:
            await self.resources.sandbox.verify(ask.image, _first_frame(program), rounds, tools=program.tools.keys())
        except ProgramDiverged as error:
            activity.metric_meter().create_counter(DIVERGED, "Programs that did not end in the same way twice").add(1)
            return calls.Reproduction(differs=str(error))
        return calls.Reproduction()

    @implements(calls.forget_program)
    async def forget_program(self, ask: calls.ForgetProgram) -> int:
        """End the jail in which a program waits; return how many there were."""
        return await self.resources.sandbox.forget(f"{ask.program}/")

    def _is_sampled(self, halted: RoundOutcome) -> bool:
        """Choose one of a number of the programs that ended without a replay; one that died has no last answer."""
        if halted.replayed or not halted.round.came or not self.resources.sample_every:
            return False
        self._ended_live += 1
        return self._ended_live % self.resources.sample_every == 0

    async def _advanced(
        self, ask: calls.ResumeProgram, program: Program, image: str, journal: Journal, frame: bytes | None
    ) -> RoundOutcome:
        return await self.resources.sandbox.advance(
            image,
            _first_frame(program),
            key=_key(ask.program, journal) if journal.ref else None,
            frame=frame,
            rounds=lambda: self.journals.rounds(ask.run, journal.ref),
            tools=program.tools.keys(),
            first_call=journal.calls,
        )

    async def _loaded(self, ask: calls.ResumeProgram) -> tuple[Program, Journal]:
        bundle = await self.resources.blobs.of(ask.run).get_json(ask.program)
        return Program.model_validate(bundle), await self.journals.load(ask.run, ask.journal)

    async def _frame(self, run: str, journal: Journal, answers: dict[int, ProgramAnswer]) -> bytes:
        """Return the answers to the last batch, as the program gets them."""
        asked: Sequence[dict[str, Any]] = json.loads(journal.last.came)["calls"] if journal.last is not None else ()
        results: list[bytes] = []
        left = ANSWERS_BYTES
        await self.resources.blobs.of(run).expect([answer.ref for answer in answers.values() if answer.ref])
        for call in asked:
            answer = _encoded(await self._result(run, call, answers))
            if len(answer) > left:
                most = f"the answers of one batch may have {ANSWERS_BYTES} bytes"
                large = ProgramAnswer(
                    i=call["i"], error=f"{most}, and this one {len(answer)}; read less", error_type="AnswerTooLarge"
                )
                answer = _encoded(_told(call, large, None))
            left -= len(answer)
            results.append(answer)
        ordered = round(activity.info().scheduled_time.astimezone(UTC).timestamp(), 3)
        return b'{"now":%s,"results":[%s]}' % (json.dumps(ordered).encode(), b",".join(results))

    async def _result(self, run: str, call: dict[str, Any], answers: dict[int, ProgramAnswer]) -> dict[str, Any]:
        i = call["i"]
        if call["tool"] == RESULT:
            try:
                return {"i": i, "ok": await self.payloads.named_by_a_model(run, str(call["args"].get("ref")))}
            except ArgumentsInvalid as error:
                return {"i": i, "error": {"type": "ArgumentsInvalid", "message": str(error)}}
        answer = answers.get(i)
        if answer is None:
            raise ArgumentsInvalid(f"append: call {i} of the program has no answer")
        shown = answer.error is None and answer.ref is not None
        return _told(call, answer, await self.payloads.shown(run, answer.ref or "") if shown else None)

    async def _waiting(
        self, ask: calls.ResumeProgram, program: Program, halted: RoundOutcome, journal: Journal, image: str
    ) -> Halt:
        lookup: Lookup | None = None
        if program.traced and any(_is_traced(program, call) for call in halted.calls):
            lookup = await self.tracing.lookup(ask.run, ask.program, program, journal)
        made: list[ToolCall] = []
        refused: dict[int, str] = {}
        left = CALLS_BYTES
        validators: dict[str, Any] = {}
        for call in halted.calls:
            if call.tool == RESULT:
                continue
            # Nobody knows whether a simulated value is of the right type.
            unknown = ask.rehearsed and tokens_in(call.arguments)
            arguments, fault = await self._arguments(ask.run, program, call, None if unknown else validators)
            size = len(canonical(arguments).encode())
            if fault is None and size > left:
                fault = (
                    f"{call.tool}: the arguments of one batch may take {CALLS_BYTES} bytes beside long texts; pass less"
                )
            if fault is not None:
                arguments, refused[len(made)] = {}, fault
            else:
                left -= size
            asked = ToolCall(id=str(call.i), tool=program.tools[call.tool], arguments=arguments)
            if fault is None and lookup is not None and _is_traced(program, call):
                asked = asked.model_copy(update={"sources": await _sources(lookup, asked.tool, call.arguments)})
            made.append(asked)
        whole = tuple(call.i for call in halted.calls if call.whole)
        more: dict[str, Any] = _position(journal, image) | {"refused": refused, "whole": whole}
        return Halt(kind="waiting", calls=tuple(made), queue=self.resources.queue, **more)

    async def _arguments(
        self, run: str, program: Program, call: ProgramCall, validators: dict[str, Any] | None
    ) -> tuple[dict[str, Any], str | None]:
        """Return the arguments as history holds them, or what is wrong with them; None leaves their schema out."""
        try:
            refuse_unfit(call.arguments)
        except ArgumentsInvalid as error:
            return {}, f"{call.tool}: {error}"
        fault = None
        if validators is not None:
            fault = await asyncio.to_thread(_misfit, validators, program, call)
        if fault is None and (commands := program.commands.get(call.tool)) is not None:
            fault = CommandLists.model_validate(commands).refusal(str(call.arguments.get("command", "")))
        if fault is None and self.resources.redactor.secret_in(canonical(call.arguments)) is not None:
            fault = LITERAL
        if fault is not None:
            return {}, f"{call.tool}: {fault}"
        return await offload(self.resources.blobs.of(run), call.arguments), None

    async def _ended(
        self, ask: calls.ResumeProgram, halted: RoundOutcome, journal: Journal, image: str, program: Program
    ) -> Halt:
        run = ask.run
        printed: dict[str, Any] = {"output": halted.output} if halted.output else {}
        if program.traced and (read := await self.tracing.read(run, ask.program, program, journal)):
            # Not shown to the model: whose words its result may hold.
            printed[READ] = read
        if halted.kind == "finished":
            result = normalised(halted.result) if program.markers else halted.result
            payload = await self.resources.blobs.of(run).put_json({"result": result, **printed})
            marked = program.markers and isinstance(result, str) and await self._marked(run, program, journal, result)
            return Halt(kind="finished", payload=payload, marked=marked, used=halted.used, **_position(journal, image))
        error = halted.error or {"type": "InternalError", "message": "the program ended without a word"}
        line = self.resources.redactor.text(f"{error['type']}: {error['message']}")[:500]
        payload = await self.resources.blobs.of(run).put_json({"error": line, **printed})
        ended: dict[str, Any] = _position(journal, image) | {"used": halted.used}
        return Halt(kind="crashed", payload=payload, error=line, error_type=error["type"], **ended)

    async def _marked(self, run: str, program: Program, journal: Journal, result: str) -> bool:
        """Return whether a string begins with a marker that the program wrote itself, and no answer to it."""
        marker = marker_of(result)
        if not marker or marker not in program.source:
            return False
        rounds = await self.journals.rounds(run, journal.ref)
        return not any(marker.encode() in a_round.sent for a_round in rounds)


def _refuse_denied(ask: calls.ResumeProgram, program: Program) -> None:
    """Raise Denied when a rule denies the source, which was stored apart while the program was ruled on."""
    for denial in ask.denials:
        if denial.holds(RUN_PROGRAM.name, {**ask.shown, "source": program.source}, None):
            raise Denied(f"denied by the policy: {denial.line}")


def _misfit(validators: dict[str, Any], program: Program, call: ProgramCall) -> str | None:
    """Return what is wrong with arguments by the schema of their tool; keep the schema as it is compiled.

    Whether a secret fits is found out where it is known.
    """
    from toolbox.schema import compile_schema, fault_of  # noqa: PLC0415 - slow to load, and no start needs it

    if call.tool not in validators:
        validators[call.tool] = compile_schema(program.parameters.get(call.tool, {}))
    return fault_of(validators[call.tool], call.arguments, unknown=lambda value: bool(handles_in(value)))


def sandbox_activities(resources: SandboxResources) -> list[Callable[..., Any]]:
    """Return the activities of the sandbox role."""
    programs = ProgramActivities(resources)
    return [programs.resume_program, programs.verify_program, programs.forget_program]


def normalised(result: Any) -> Any:
    """Return what a program returned as planners that know markers mean it."""
    match result:
        case {"result": inner}:
            return inner
        case [_, *_] if all(isinstance(part, str) for part in result):
            return " ".join(result)
        case _:
            return result


def _position(journal: Journal, image: str) -> dict[str, Any]:
    """Return the fields of a Halt that say how far the program has come."""
    return {"journal": journal.ref, "image": image, "rounds": journal.rounds}


def _told(call: dict[str, Any], answer: ProgramAnswer, shown: Any) -> dict[str, Any]:
    """Return the answer to a call as the program is given it."""
    i, kind, settled = answer.i, answer.error_type or "ToolError", answer.settled
    if call.get("whole"):
        context = {"effect": answer.effect, "ref": answer.ref, "undo": answer.undo}
        context |= {"cached": answer.cached, "simulated": answer.simulated}
        happened = settled is not None
        whole = tool_result(call["tool"], shown, error=answer.error, kind=kind, happened=happened, **context)
        return {"i": i, "ok": whole, **_made_up(answer)}
    if answer.error is None:
        return {"i": i, "ok": shown, **_made_up(answer)}
    return {"i": i, "error": {"type": kind, "message": answer.error, **({} if settled is None else settled.plain())}}


def _first_frame(program: Program) -> bytes:
    fields = program.model_dump(include={"source", "bindings", "seed", "now"})
    # A program that calls no tool by its name has no use for all their names.
    names = {"tools": names_of(program.tools)} if "call_tool" in program.source else {}
    return _encoded(fields | {"calls_from": 0} | names)


def _is_traced(program: Program, call: ProgramCall) -> bool:
    tool = program.tools.get(call.tool)
    return tool is not None and (tool.effectful or tool.egress)


async def _sources(lookup: Lookup, tool: Tool, arguments: dict[str, Any]) -> ArgumentSources:
    return await apart(arguments, lambda: lookup.sources_of(arguments, tool=tool.name, egress=tool.egress))


def _too_long(journal: Journal) -> RoundOutcome:
    said = f"wall: the program computed for more than {LONGEST_S:g} s in all; leave work to tools, or split it"
    nothing = Round(sent=b"", came=b"", cpu_s=0.0, wall_s=0.0)
    return RoundOutcome(kind="crashed", round=journal.last or nothing, error={"type": "WallLimit", "message": said})


def _key(program: str, journal: Journal) -> str:
    return f"{program}/{journal.ref}"


def _made_up(answer: ProgramAnswer) -> dict[str, Any]:
    return {"simulated": True} if answer.simulated else {}


def _encoded(frame: dict[str, Any]) -> bytes:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
