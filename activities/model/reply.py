"""Read what the model answered: actions that may be performed, and errors that go straight back to it."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from activities.model.functions import NAMES
from activities.model.transcript import Item
from activities.offloading import CALLS_BYTES, offload
from activities.resources import facts_of
from activities.tools.arguments import Arguments
from backstay.canonical import canonical
from backstay.clean import clean_text
from backstay.errors import ArgumentsInvalid
from backstay.shown import one_line
from backstay.task.decision import Action, AskPerson, CallTools, Finish, ReadResult, RunProgram, SearchTools
from backstay.tools.tool import ToolCall
from toolbox.catalog.catalog import Catalog

MOST_CALLS = 64
OUTPUT_BYTES = 16_384
SHOWN_SOURCE = 2000
WriteProgram = Callable[[str, str], Awaitable[str]]
"""Takes source and call id, stores the program, returns its ref."""


@dataclass
class Reply:
    """Collect what one answer of the model leads to."""

    items: list[Item] = field(default_factory=list)
    """What is added to the transcript: the answer itself and the refusals."""
    looks: list[Action] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    asked: AskPerson | None = None
    program: RunProgram | None = None
    finish: Finish | None = None
    refused: int = 0
    size: int = 0
    """Bytes of the arguments of `calls`, as history will hold them."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Return the actions in the order in which they are performed."""
        batch: list[Action] = [CallTools(calls=tuple(self.calls))] if self.calls else []
        question: list[Action] = [one for one in (self.program, self.asked) if one is not None]
        end: list[Action] = [self.finish] if self.finish is not None else []
        return (*self.looks, *batch, *question, *end)

    def refuse(self, call_id: str, why: str) -> None:
        """Answer a call with an error instead of performing it."""
        self.refused += 1
        self.items.append({"kind": "answer", "call_id": call_id, "text": canonical({"error": why[:500]})})


class ReplyReader:
    """Turn one message of the model into a Reply."""

    def __init__(
        self, arguments: Arguments, catalog: Catalog, run: str, write_program: WriteProgram | None = None
    ) -> None:
        """Validate against the catalog as it is now; without `write_program` no program is accepted."""
        self.arguments = arguments
        self.catalog = catalog
        self.run = run
        self.write_program = write_program

    async def read(self, message: dict[str, Any], *, started: bool) -> Reply:
        """Return the reply to a message with native function calls, or with plain text."""
        reply = Reply()
        shown = await self.arguments.records.show(self.run, _text(message), "model")
        text = str(shown.payload)
        raw = message.get("tool_calls")
        calls = [call for call in raw if isinstance(call, dict)] if isinstance(raw, list) else []
        if not calls:
            self._plain_text(reply, text, started=started)
            return reply
        if len(calls) > MOST_CALLS:
            reply.refused = len(calls)
            note = f"Your last answer held {len(calls)} calls and none was made; make at most {MOST_CALLS} at once."
            reply.items.append({"kind": "note", "text": note})
            return reply
        said: list[dict[str, Any]] = []
        reply.items.append({"kind": "said", "text": text, "calls": said})
        for index, call in enumerate(calls):
            await self._call(reply, said, call, index, reason=one_line(text, 300)[0])
        reply.items[0]["tools_called"] = [call.tool.name for call in reply.calls]
        if reply.finish is not None and reply.refused:
            reply.refuse(
                reply.finish.call_id or "", "finish was dropped, because a call beside it was refused; decide again"
            )
            reply.finish = None
        return reply

    def _plain_text(self, reply: Reply, text: str, *, started: bool) -> None:
        if started and text.strip():
            reply.items.append({"kind": "said", "text": text})
            reply.finish = Finish(summary=text)
            return
        reply.refused += 1
        reply.items.append({"kind": "said", "text": text or "(nothing)"})
        reply.items.append({"kind": "note", "text": "Act by calling functions: search, call tools, or finish."})

    async def _call(
        self, reply: Reply, said: list[dict[str, Any]], call: dict[str, Any], index: int, *, reason: str
    ) -> None:
        function = call.get("function")
        function = function if isinstance(function, dict) else {}
        given = call.get("id")
        call_id = clean_text(given[:200]) if isinstance(given, str) and given else f"call-{index}"
        if any(other["id"] == call_id for other in said):
            call_id = f"{call_id}-{index}"
        name = clean_text(str(function.get("name") or "")[:64])
        arguments, fault = _parsed(function.get("arguments"))
        called = {"name": name or "nothing", "arguments": "{}"}
        said.append({"id": call_id, "type": "function", "function": called})
        if fault is not None:
            reply.refuse(call_id, fault)
            return
        try:
            offload = await self._dispatched(reply, call_id, name, arguments, reason)
        except ArgumentsInvalid as error:
            reply.refuse(call_id, str(error))
            return
        called["arguments"] = canonical(offload)

    async def _dispatched(
        self, reply: Reply, call_id: str, name: str, arguments: dict[str, Any], reason: str
    ) -> dict[str, Any]:
        if name in NAMES:
            # What a finish holds goes nowhere but into the Result: there it may look like anything.
            shown = await self._shown(name, arguments)
            await self._built_in(reply, call_id, name, shown)
            return shown
        definition = self.catalog.by_function.get(name) or self.catalog.definitions.get(name)
        if definition is None or definition.hidden:
            raise ArgumentsInvalid(f"there is no function {name!r}; search_tools finds what there is")
        offload = await self.arguments.fold(self.run, definition.provider, arguments)
        fault = definition.validate(arguments)
        if fault is not None:
            raise ArgumentsInvalid(f"{name}: {fault}")
        reply.size += len(canonical(offload).encode())
        if reply.size > CALLS_BYTES:
            raise ArgumentsInvalid(
                f"arguments: the calls of one answer may take {CALLS_BYTES} bytes beside their long texts; "
                "make fewer calls at once, or pass fewer values"
            )
        facts = facts_of(self.catalog, definition)
        reply.calls.append(ToolCall(id=call_id, tool=facts, arguments=offload, reason=reason))
        return offload

    async def _shown(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of one of our own functions without their secrets."""
        if name == "finish":
            return (await self.arguments.records.show(self.run, arguments, "model")).payload
        if name != "run_program" or not isinstance(code := arguments.get("code"), str):
            return await self.arguments.show(self.run, "model", arguments)
        # A program runs as it was written or not at all.
        if (found := self.arguments.records.redactor.secret_in(code)) is not None:
            line = code.count("\n", 0, found[0]) + 1
            raise ArgumentsInvalid(
                f"code: line {line}: a secret ({found[2]}) cannot stand in a program; use its handle"
            )
        rest = {key: value for key, value in arguments.items() if key != "code"}
        return {"code": code, **await self.arguments.show(self.run, "model", rest)}

    async def _built_in(self, reply: Reply, call_id: str, name: str, arguments: dict[str, Any]) -> None:
        match name:
            case "search_tools":
                limit = _number(arguments.get("limit"), 10)
                detail = "full" if arguments.get("detail_level") == "full" else "summary"
                query = _required(arguments, "query")[:2000]
                reply.looks.append(
                    SearchTools(call_id=call_id, query=query, detail_level=detail, limit=max(1, min(40, limit)))
                )
            case "read_result":
                offset, limit = _number(arguments.get("offset"), 0), _number(arguments.get("limit"), 20)
                path = str(arguments.get("path") or "")[:500]
                reply.looks.append(
                    ReadResult(
                        call_id=call_id, ref=_required(arguments, "ref")[:100], path=path, offset=offset, limit=limit
                    )
                )
            case "run_program" if reply.program is None and reply.asked is None:
                reply.program = await self._program(call_id, arguments)
            case "ask_person" if reply.asked is None and reply.program is None:
                reply.asked = AskPerson(call_id=call_id, question=_required(arguments, "question")[:4000])
            case "finish" if reply.finish is None:
                reply.finish = await self._finish(call_id, arguments)
            case _:
                raise ArgumentsInvalid(f"{name}: only one at a time, of run_program and ask_person together")

    async def _program(self, call_id: str, arguments: dict[str, Any]) -> RunProgram:
        if self.write_program is None:
            raise ArgumentsInvalid("run_program: programs cannot run here; call the tools directly")
        source = _required(arguments, "code")
        reason = one_line(str(arguments.get("reason") or ""), 300)[0]
        ref = await self.write_program(source, call_id)
        source_shown = (await offload(self.arguments.blobs.of(self.run), {"source": source}))["source"]
        begins = source[:SHOWN_SOURCE] if source_shown != source else ""
        return RunProgram(call_id=call_id, program=ref, source=source_shown, begins=begins, reason=reason)

    async def _finish(self, call_id: str, arguments: dict[str, Any]) -> Finish:
        outputs = arguments.get("outputs")
        outputs = outputs if isinstance(outputs, dict) else {}
        if len(canonical(outputs)) > OUTPUT_BYTES:
            ref = await self.arguments.records.write(self.run, "outputs", outputs)
            outputs = {"ref": ref, "note": f"larger than {OUTPUT_BYTES} bytes; stored whole under ref"}
        success = arguments.get("success", True)
        return Finish(
            call_id=call_id,
            summary=str(arguments.get("summary") or "")[:8000],
            outputs=outputs,
            success=success is True,
        )


def calls_of_json(content: str) -> list[dict[str, Any]] | None:
    """Return the calls of an answer in JSON form, in the native shape; None when it is no such answer."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    calls = data.get("calls") if isinstance(data, dict) else None
    if not isinstance(calls, list):
        return None
    return [
        {"id": f"json-{index}", "function": {"name": call.get("name"), "arguments": call.get("arguments")}}
        for index, call in enumerate(calls)
        if isinstance(call, dict)
    ]


def _parsed(raw: Any) -> tuple[dict[str, Any], str | None]:
    if isinstance(raw, dict):
        return raw, None
    if raw in (None, ""):
        return {}, None
    try:
        arguments = json.loads(raw)
        canonical(arguments).encode()
    except (ValueError, TypeError, RecursionError):
        return {}, "the arguments are not valid JSON; send one JSON object"
    return (arguments, None) if isinstance(arguments, dict) else ({}, "the arguments must be one JSON object")


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    text = content if isinstance(content, str) else ""
    refusal = message.get("refusal")
    return (text or (refusal if isinstance(refusal, str) else "")).encode("utf-8", "replace").decode("utf-8")[:20_000]


def _required(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise ArgumentsInvalid(f"{name}: required; give a text")
    return value


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1_000_000_000 else default
