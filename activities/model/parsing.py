"""Parse what the model answered: actions that may be performed, and errors that go straight back to it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from activities.definitions import input_fault
from activities.model.disguise import without_fence, without_thoughts
from activities.model.ends import MOST_AGAIN, End, why_again, why_failed
from activities.model.functions import FINISH, NAMES, PROGRAM, SCHEMAS
from activities.model.message import NoObject, arguments_in, named
from activities.model.output import NamedTwice, WantedOutput, value_in
from activities.model.planning import PLANS, PlanParser, marked, may_read
from activities.model.transcript import Item
from activities.offloading import CALLS_BYTES, offload, refuse_deep
from activities.payloads import apart
from activities.resources import facts_of
from activities.tools.arguments import Arguments
from backstay.canonical import canonical
from backstay.digests.broken_up import put_together
from backstay.errors import ArgumentsInvalid, Denied, ToolNotFound
from backstay.plans.definition import PlanDefinition
from backstay.profile import FINAL, FURTHER, behind_marker, marker_of
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line
from backstay.strict_json import clean_text
from backstay.task.decision import (
    Action,
    AskPerson,
    CallTools,
    Delegate,
    Delegation,
    Finish,
    ProposePlan,
    ReadResult,
    Recall,
    RunProgram,
    SearchTools,
)
from backstay.tools.program import sandbox_error
from backstay.tools.tool import Tool, ToolCall
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition
from toolbox.meant import as_meant
from toolbox.plugins.arguments import PLUGIN, read_arguments

MOST_CALLS = 64
OUTPUT_BYTES = 16_384
SUMMARY = 8000
SHOWN_SOURCE = 2000
_NOTHING_MADE = frozenset[End]({"filtered", "refused", "broken", "malformed"})
"""Ends of answers of which no call is made: nobody knows what was meant to be there."""


@dataclass
class CompletionParser:
    """Parse one message of the model, validated against the catalog as it is now."""

    arguments: Arguments
    catalog: Catalog
    run: str
    store_program: Callable[[str, str], Awaitable[tuple[str, tuple[str, ...]]]] | None = None
    """Takes the call id and the source, and returns the ref of the program and what people are warned of.

    Without it no program is accepted.
    """
    trace: Callable[[Tool, dict[str, Any]], Awaitable[ArgumentSources | None]] | None = None
    """Returns where the arguments of a call came from, where somebody needs to know."""
    wanted: WantedOutput | None = None
    """The value that the task wants; None when it wants none."""
    planning: bool = False
    """Whether the model may only plan."""
    plans: bool = False
    """Whether the model may propose plans."""
    offered: Mapping[str, PlanDefinition] = field(default_factory=dict)
    """The definitions of plans that are offered, by function."""
    most_steps: int = 20
    """How many steps a plan may have."""
    end: End = "done"
    """How the answer ended."""
    finish_reason: str = ""
    """How the endpoint says that."""
    again: int = 0
    """How many times in a row the model was asked again because of how its answers ended."""
    markers: bool = False
    """Whether a marker at the start of its words means something."""
    memory: bool = False
    """Whether the model may recall earlier runs."""
    delegation: bool = False
    """Whether the model may give parts of its task to sub-runs."""
    items: list[Item] = field(default_factory=list)
    """What is added to the transcript: the message itself and the refusals."""
    looks: list[Action] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    parts: list[Delegation] = field(default_factory=list)
    """What is given to sub-runs."""
    question: RunProgram | ProposePlan | AskPerson | None = None
    finish: Finish | None = None
    output_fault: str = ""
    """Why an answer was not taken that should have held the value which the task wants."""
    refused: int = 0
    fault: str = ""
    """What is wrong with the arguments, or the program, of the first call that was refused for that."""
    size: int = 0
    """Bytes of the arguments of `calls`, as history will hold them."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return the actions in the order in which they are performed."""
        batch = CallTools(calls=tuple(self.calls)) if self.calls else None
        delegate = Delegate(parts=tuple(self.parts)) if self.parts else None
        rest = (batch, delegate, self.question, self.finish)
        return (*self.looks, *(action for action in rest if action is not None))

    async def parse(self, message: dict[str, Any], *, started: bool) -> None:
        """Parse a message with native function calls, or with plain text."""
        shown = await self.arguments.records.show(self.run, _text(message), "model")
        text = str(shown.payload)
        spoken = without_thoughts(text)
        raw = message.get("tool_calls")
        calls = [call for call in raw if isinstance(call, dict)] if isinstance(raw, list) else []
        marker = marker_of(spoken) if self.markers else ""
        if self.end in _NOTHING_MADE or (not calls and self.end not in {"done", "unsaid"}):
            self._ended_badly(text)
            return
        if not calls:
            await self._text_alone(marker, message.get("content"), text, started=started)
            return
        if len(calls) > MOST_CALLS:
            self.refused = len(calls)
            self.fault = f"{len(calls)} calls in one answer, at most {MOST_CALLS} are made"
            note = f"Your last answer held {len(calls)} calls and none was made; make at most {MOST_CALLS} at once."
            self.items.append({"kind": "note", "text": note})
            return
        made: list[dict[str, Any]] = []
        self.items.append({"kind": "said", "text": text, "calls": made})
        for index, call in enumerate(calls):
            # Of an answer that was cut off, more may have been meant for the last call, though it can be read.
            is_cut = self.end == "cut" and index == len(calls) - 1
            await self._call(made, call, index, reason=one_line(text, 300), is_cut=is_cut)
        self.items[0]["tools_called"] = [call.tool.name for call in self.calls]
        if marker == FINAL and self.finish is None and self.wanted is None and self.end == "done":
            self.finish = Finish(summary=put_together(spoken)[:SUMMARY])
        if self.finish is not None and self.finish.success and self.end not in {"done", "unsaid"}:
            self._not_finished(text)
        if self.finish is not None and self.refused and self.finish.success:
            if self.finish.call_id is not None:
                why = "finish was dropped, because a call beside it was refused; decide again"
                self._refuse(self.finish.call_id, why)
            self.finish = None

    async def _text_alone(self, marker: str, content: Any, text: str, *, started: bool) -> None:
        """Take an answer that is text without calls."""
        spoken = without_thoughts(text)
        if marker == FURTHER:
            said = behind_marker(spoken) or "Go on."
            self.items += [{"kind": "said", "text": text}, {"kind": "note", "text": said}]
        elif marker == FINAL and self.wanted is None and self.end == "done":
            self.items.append({"kind": "said", "text": text})
            self.finish = Finish(summary=put_together(spoken)[:SUMMARY])
        else:
            value = without_thoughts(content) if isinstance(content, str) else content
            value = behind_marker(value) if marker and isinstance(value, str) else value
            if self.wanted is None or not await self._value_in_text(self.wanted, value, text):
                self._plain_text(text, started=started)

    async def _value_in_text(self, wanted: WantedOutput, content: Any, text: str) -> bool:
        """Take text that is the wanted value as a finish; return whether it was one."""
        try:
            value = await apart(content, lambda: value_in(content if isinstance(content, str) else ""))
            refuse_deep({"output": value})
        except (ValueError, ArgumentsInvalid) as error:
            said = "the answer is text without the value"
            if isinstance(error, NamedTwice):
                said = await self.arguments.records.text(self.run, str(error))
            self.output_fault = f"output: {said}{self._was_cut}; call `finish` with the value as `output`"
            return False
        self.items.append({"kind": "said", "text": text})
        try:
            shown = (await self.arguments.records.show(self.run, value, "model")).payload
            self.finish = await self._with_output(wanted, Finish(summary=text[:SUMMARY]), value, shown)
        except ArgumentsInvalid as error:
            self.refused += 1
            self.output_fault = str(error)
            self.items.append({"kind": "note", "text": f"Your answer was not taken: {error}. Call `finish`."})
        return True

    async def _with_output(self, wanted: WantedOutput, finish: Finish, value: Any, shown: Any) -> Finish:
        """Return the finish with its value; raises ArgumentsInvalid when it is not the one that the task wants.

        What is checked is what the Result will hold: the value without its secrets.
        """
        if (fault := await wanted.fault(shown)) is not None:
            hidden = shown != value and await wanted.fault(value) is None
            raise ArgumentsInvalid(f"{fault}{'; leave out the secret that was there' if hidden else ''}")
        if len(canonical(shown)) <= OUTPUT_BYTES:
            return finish.model_copy(update={"output": shown})
        ref = (await self.arguments.records.write(self.run, "output", shown)).ref
        return finish.model_copy(update={"output": _stored(ref), "output_ref": ref})

    @property
    def _was_cut(self) -> str:
        return ", and it was cut off at the limit of its length: give a shorter one" if self.end == "cut" else ""

    def _plain_text(self, text: str, *, started: bool) -> None:
        spoken = without_thoughts(text)
        if started and spoken and self.wanted is None and self.end == "unsaid":
            self._ended_badly(text)
            return
        self.items.append({"kind": "said", "text": text if text.strip() else "(nothing)"})
        if started and spoken and self.wanted is None:
            self.finish = Finish(summary=put_together(spoken))
            return
        self.refused += 1
        note = "Act by calling functions: search, call tools, or finish."
        self.items.append({"kind": "note", "text": f"{note} {self.output_fault}".strip()})

    def _ended_badly(self, text: str) -> None:
        """Take nothing of an answer because of how it ended: ask again, or give up in honesty."""
        self.items.append({"kind": "said", "text": text if text.strip() else "(nothing)", "end": self.end})
        self.refused += 1
        if self.wanted is not None:
            self.output_fault = f"output: the answer is text without the value{self._was_cut}"
        if self.again >= MOST_AGAIN:
            self._give_up(text)
        else:
            self.items.append({"kind": "note", "text": why_again(self.end, self.finish_reason)})

    def _not_finished(self, text: str) -> None:
        """Do not take a finish that is in an answer which is not whole, or may not be."""
        finish, self.finish = self.finish, None
        why = why_again(self.end, self.finish_reason)
        if finish is not None and finish.call_id is not None:
            self._refuse(finish.call_id, why)
        if self.calls or self.looks or self.parts or self.question is not None:
            return
        self.items[0]["end"] = self.end
        if self.again >= MOST_AGAIN:
            self._give_up(text or (finish.summary if finish is not None else ""))

    def _give_up(self, text: str) -> None:
        words = why_failed(self.end, self.finish_reason, without_thoughts(text)[:1000])
        self.finish = Finish(summary=words[:SUMMARY], success=False)

    def _refuse(self, call_id: str, why: str) -> None:
        """Answer a call with an error instead of performing it."""
        self.refused += 1
        self.items.append({"kind": "answer", "call_id": call_id, "text": canonical({"error": why[:500]})})

    async def _call(
        self, made: list[dict[str, Any]], call: dict[str, Any], index: int, *, reason: str, is_cut: bool
    ) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        given = call.get("id")
        call_id = clean_text(given[:200]) if isinstance(given, str) and given else f"call-{index}"
        if any(other["id"] == call_id for other in made):
            call_id = f"{call_id}-{index}"
        name = clean_text(named(str(function.get("name") or "")[:200], self._is_function)[:64])
        called = {"name": name or "nothing", "arguments": "{}"}
        made.append({"id": call_id, "type": "function", "function": called})
        try:
            given = function.get("arguments")
            arguments = await apart(given, lambda: self._parsed(given, is_cut=is_cut and name != FINISH))
            shown = await self._add(call_id, name, arguments, reason)
            called["arguments"] = _kept(shown) if name == FINISH else canonical(shown)
            if name == FINISH:
                await self._finish_with_output(arguments, shown)
        except (ArgumentsInvalid, Denied, ToolNotFound) as error:
            # It may name what the model has written.
            why = await self.arguments.records.text(self.run, str(error))
            if name == FINISH and self.wanted is not None:
                self.output_fault = why
            elif isinstance(error, ArgumentsInvalid):
                self.fault = self.fault or why
            self._refuse(call_id, sandbox_error(why[:480]) if self.markers and name == PROGRAM else why)

    async def _finish_with_output(self, given: dict[str, Any], shown: dict[str, Any]) -> None:
        """Take the value from the arguments of finish; raises ArgumentsInvalid, and then nothing is finished."""
        finish = self.finish
        if self.wanted is None or finish is None or not finish.success:
            return
        self.finish = None
        name = "outputs" if "output" not in given and "outputs" in given else "output"
        if name not in given:
            raise ArgumentsInvalid("output: required; give the value that the task wants, or `success` false")
        self.finish = await self._with_output(self.wanted, finish, given[name], shown.get(name))

    def _parsed(self, raw: Any, *, is_cut: bool) -> dict[str, Any]:
        try:
            arguments = arguments_in(raw)
        except NamedTwice as error:
            raise ArgumentsInvalid(f"the arguments cannot be read: {error}") from None
        except NoObject:
            raise ArgumentsInvalid("the arguments must be one JSON object") from None
        except (ValueError, TypeError, RecursionError):
            raise ArgumentsInvalid(f"the arguments are not valid JSON{self._was_cut}; send one JSON object") from None
        if is_cut:
            raise ArgumentsInvalid(why_again("cut"))
        return put_together(arguments)

    def _is_function(self, name: str) -> bool:
        return name in NAMES or name in self.offered or self._definition(name) is not None

    def _definition(self, name: str) -> Definition | None:
        definition = self.catalog.by_function.get(name) or self.catalog.definitions.get(name)
        return None if definition is None or definition.hidden else definition

    async def _add(self, call_id: str, name: str, arguments: dict[str, Any], reason: str) -> dict[str, Any]:
        """Add the action that a call asks for, and return its arguments as they may be shown."""
        if name in NAMES:
            shown = await self._shown(name, as_meant(arguments, SCHEMAS[name]))
            await self._add_built_in(call_id, name, shown, reason)
            return shown
        if (kept := self.offered.get(name)) is not None:
            return await self._add_defined(call_id, kept, arguments)
        definition = self._definition(name)
        if definition is None:
            raise ToolNotFound(f"there is no function {name!r}; search_tools finds what there is")
        if self.planning and not may_read(definition):
            raise Denied(f"{name}: nothing is done before a plan is approved; put the call into propose_plan")
        shown = await self.arguments.show(self.run, definition.provider, arguments)
        checked = await self._checked(name, definition, arguments)
        if checked is not arguments:
            arguments, shown = checked, await self.arguments.show(self.run, definition.provider, checked)
        folded = await self.arguments.fold_shown(self.run, shown)
        if (refusal := definition.refusal(arguments)) is not None:
            raise Denied(f"{name}: {refusal}")
        self.size += len(canonical(folded).encode())
        if self.size > CALLS_BYTES:
            raise ArgumentsInvalid(
                f"arguments: the calls of one answer may take {CALLS_BYTES} bytes beside their long texts; "
                "make fewer calls at once, or pass fewer values"
            )
        facts = facts_of(self.catalog, definition)
        call = ToolCall(id=call_id, tool=facts, arguments=folded, reason=reason)
        sources = None if self.trace is None else await self.trace(facts, shown)
        self.calls.append(call if sources is None else call.model_copy(update={"sources": sources}))
        return folded

    async def _checked(self, name: str, definition: Definition, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments that fit; a value that stands as text where no text fits is taken for what it says.

        What is looked at is what the tool gets: a handle fits where its value does.
        """
        fault = await definition.check(await self.arguments.revealed(self.run, arguments))
        if fault is None:
            return arguments
        meant = await asyncio.to_thread(self._meant, definition, arguments)
        real = await self.arguments.revealed(self.run, meant)
        if meant == arguments or await definition.check(real) is not None:
            raise ArgumentsInvalid(f"{name}: {fault}")
        return meant

    def _meant(self, definition: Definition, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.catalog.kinds.get(definition.provider) == PLUGIN:
            # A value under two names is refused, with the name that is not known.
            with suppress(ValueError):
                arguments = read_arguments(arguments, definition.parameters)
        return as_meant(arguments, definition.parameters)

    async def _add_defined(self, call_id: str, kept: PlanDefinition, arguments: dict[str, Any]) -> dict[str, Any]:
        """Take a call of a definition as a plan that the model proposes."""
        if self.question is not None:
            raise ArgumentsInvalid(f"{kept.id}: it is a plan; only one at a time, of programs, plans and questions")
        shown = await self.arguments.show(self.run, "model", arguments)
        real = await self.arguments.revealed(self.run, shown)
        if (fault := await asyncio.to_thread(input_fault, kept, real)) is not None:
            raise ArgumentsInvalid(f"{kept.id}: {fault}")
        self.question = await self._plans().defined(call_id, kept, shown)
        return shown

    def _plans(self) -> PlanParser:
        return PlanParser(self.arguments, self.catalog, self.run, self.most_steps, self.trace)

    async def _shown(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a built-in function without their secrets."""
        if name == FINISH:
            # The arguments of finish only reach the Result, so they may have any form.
            refuse_deep(arguments)
            return (await self.arguments.records.show(self.run, arguments, "model")).payload
        if name != PROGRAM or not isinstance(code := arguments.get("code"), str):
            return await self.arguments.show(self.run, "model", arguments)
        # A program runs as it was written or not at all.
        known = await self.arguments.records.secrets.of(self.run)
        if (found := known.redactor.secret_in(code)) is not None:
            line = code.count("\n", 0, found[0]) + 1
            raise ArgumentsInvalid(f"code: line {line}: a secret ({found[2]}) cannot be in a program; use its handle")
        rest = {key: value for key, value in arguments.items() if key != "code"}
        return {"code": code, **await self.arguments.show(self.run, "model", rest)}

    async def _add_built_in(self, call_id: str, name: str, arguments: dict[str, Any], reason: str) -> None:
        self._require_offered(name)
        arguments = {key: value for key, value in arguments.items() if value is not None}
        match name:
            case "search_tools":
                limit = max(1, min(40, _number(arguments, "limit", 10)))
                detail = "full" if arguments.get("detail_level") == "full" else "summary"
                query = _required(arguments, "query")[:2000]
                self.looks.append(SearchTools(call_id=call_id, query=query, detail_level=detail, limit=limit))
            case "read_result":
                offset, limit = _number(arguments, "offset", 0), _number(arguments, "limit", 20)
                ref, path = _required(arguments, "ref")[:100], str(arguments.get("path") or "")[:500]
                self.looks.append(ReadResult(call_id=call_id, ref=ref, path=path, offset=offset, limit=limit))
            case "recall":
                self.looks.append(Recall(call_id=call_id, query=_required(arguments, "query")[:2000]))
            case "mark_step":
                self.looks.append(marked(call_id, arguments))
            case "delegate":
                self.parts.append(Delegation.asked(call_id, arguments, reason))
            case "run_program" if self.planning:
                raise ArgumentsInvalid("run_program: nothing is done before a plan is approved; propose one")
            case "run_program" if self.question is None:
                self.question = await self._program(call_id, arguments)
            case "propose_plan" | "create_plan" | "update_plan" if self.question is None:
                self.question = await self._plans().proposed(call_id, name, arguments)
            case "ask_person" if self.question is None:
                self.question = AskPerson(call_id=call_id, question=_required(arguments, "question")[:4000])
            case "finish" if self.finish is None:
                self.finish = await self._finish(call_id, arguments)
            case "finish":
                raise ArgumentsInvalid("finish: called twice in one answer; call it once")
            case _:
                raise ArgumentsInvalid(f"{name}: only one at a time, of run_program, propose_plan and ask_person")

    def _require_offered(self, name: str) -> None:
        """Raise Denied for a built-in function that this run is not offered."""
        if name in PLANS and not (self.plans or self.planning):
            raise Denied(f"{name}: this run makes no plans; call the tools directly")
        if name == "recall" and not self.memory:
            raise Denied("recall: this run has no memory; go on without it")
        if name == "delegate" and (self.planning or not self.delegation):
            why = "nothing is done before a plan is approved" if self.planning else "this run delegates nothing"
            raise Denied(f"delegate: {why}; go on without it")

    async def _program(self, call_id: str, arguments: dict[str, Any]) -> RunProgram:
        if self.store_program is None:
            raise ArgumentsInvalid("run_program: programs cannot run here; call the tools directly")
        source = without_fence(_required(arguments, "code"))
        reason = one_line(str(arguments.get("reason") or ""), 300)
        ref, warnings = await self.store_program(call_id, source)
        shown = await offload(self.arguments.blobs.of(self.run), source)
        begins = source[:SHOWN_SOURCE] if shown != source else ""
        action = RunProgram(call_id=call_id, program=ref, source=shown, begins=begins, reason=reason)
        return action.model_copy(update={"warnings": warnings}) if warnings else action

    async def _finish(self, call_id: str, arguments: dict[str, Any]) -> Finish:
        outputs = arguments.get("outputs")
        outputs = outputs if isinstance(outputs, dict) else {}
        if len(canonical(outputs)) > OUTPUT_BYTES:
            outputs = _stored((await self.arguments.records.write(self.run, "outputs", outputs)).ref)
        summary = str(arguments.get("summary") or "")[:SUMMARY]
        success = arguments.get("success", True)
        if not isinstance(success, bool):
            raise ArgumentsInvalid("success: give true or false")
        return Finish(call_id=call_id, summary=summary, outputs=outputs, success=success)


def _kept(shown: dict[str, Any]) -> str:
    """Return the arguments of finish as the transcript keeps them: a value that is sent back must not fill it."""
    text = canonical(shown)
    return text if len(text) <= OUTPUT_BYTES else canonical({"note": f"{len(text)} characters, not kept here"})


def _stored(ref: str) -> dict[str, str]:
    """Return what stands for what is stored."""
    return {"ref": ref, "note": f"larger than {OUTPUT_BYTES} bytes; stored whole under ref"}


def _text(message: dict[str, Any]) -> str:
    texts = (message.get("content"), message.get("refusal"))
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return text.encode("utf-8", "replace").decode("utf-8")[:20_000]


def _required(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ArgumentsInvalid(f"{name}: required; give a string")
    return value


def _number(arguments: dict[str, Any], name: str, default: int) -> int:
    value = as_meant({name: arguments.get(name, default)}, {"properties": {name: {"type": "number"}}})[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1_000_000_000 or value % 1:
        raise ArgumentsInvalid(f"{name}: give a whole number from 0 on")
    return int(value)
