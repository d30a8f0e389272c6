"""Bring a conversation into the form of the library that writes native requests, and an answer back.

The words and calls of an answer are in the transcript. All else of it, such as signed thoughts, is kept as it came, and
is only shown to the library again together with the message that it belongs to: it would tell a model the thoughts of
others as words of its own.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)

from activities.model.message import MessageExtras
from backstay.canonical import canonical

FIELD = "native"
"""Where the rest of an answer is beside its message."""
_KEPT = ("provider_name", "provider_url", "canonical_system")
_OWN = frozenset({"tool_name", "args", "tool_call_id"})
_NAME, _ID = re.compile(r"[^A-Za-z0-9_-]"), re.compile(r"[A-Za-z0-9_-]{1,40}")
Message = dict[str, Any]


def conversation(messages: Iterable[Message]) -> list[ModelMessage]:
    """Return the messages of a request; those of one side that follow each other are one."""
    found: list[ModelMessage] = []
    names: dict[str, str] = {}
    for message in messages:
        if message["role"] == "assistant":
            if parts := _answer(message):
                found.append(parts)
            names |= {call["id"]: _name(call) for call in message.get("tool_calls", ())}
            continue
        part = _asked(message, names)
        if found and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest(parts=[*found[-1].parts, part])
        else:
            found.append(ModelRequest(parts=[part]))
    return found


def _asked(message: Message, names: Mapping[str, str]) -> ModelRequestPart:
    text = message["content"]
    match message["role"]:
        case "tool":
            given = message["tool_call_id"]
            return ToolReturnPart(names.get(given, "nothing"), text, tool_call_id=_id(given))
        case "user":
            return UserPromptPart(text if isinstance(text, str) else [*map(_shown, text)])
        case _:
            return SystemPromptPart(text)


def _shown(part: Message) -> UserContent:
    """Return a part of a message as the library has it; a placeholder for bytes stays what it is."""
    if part["type"] == "text":
        return part["text"]
    url = part["image_url"]["url"] if part["type"] == "image_url" else part["file"]["file_data"]
    kind, _, data = url.removeprefix("data:").partition(";base64,")
    return BinaryContent(base64.b64decode(data), media_type=kind)


def _answer(message: Message) -> ModelResponse | None:
    text, calls = message.get("content") or "", message.get("tool_calls", ())
    if (kept := message.get(FIELD)) is not None and (whole := _whole(kept, text, calls)) is not None:
        return whole
    parts: list[ModelResponsePart] = [TextPart(text)] if text.strip() else []
    parts += [ToolCallPart(_name(call), _arguments(call), _id(call["id"])) for call in calls]
    return ModelResponse(parts=parts) if parts else None


def _whole(kept: Mapping[str, Any], text: str, calls: Iterable[Message]) -> ModelResponse | None:
    """Return an answer with what was kept of it; None where that does not fit what it says and calls."""
    waiting, words = list(calls), [part for part in kept["parts"] if part["part_kind"] == "text"]
    texts = [text[slice(*part["content"])] for part in words]
    if len(waiting) != sum(part["part_kind"] == "tool-call" for part in kept["parts"]):
        return None
    if "".join(texts) != text:
        # It was changed on its way: the places of its parts are lost, their order is not.
        texts = [text, *("" for _ in words[1:])]
        if text and not words:
            return None
    parts: list[dict[str, Any]] = []
    for part in kept["parts"]:
        match part["part_kind"]:
            case "text":
                parts.append({**part, "content": texts.pop(0)})
            case "tool-call":
                call = waiting.pop(0)
                own = {"tool_name": _name(call), "args": _arguments(call), "tool_call_id": _id(call["id"])}
                parts.append({**part, **own})
            case _:
                parts.append(part)
    read = ModelMessagesTypeAdapter.validate_python([{**kept, "parts": parts, "kind": "response"}])[0]
    return read if isinstance(read, ModelResponse) else None


def _name(call: Message) -> str:
    return _NAME.sub("_", call["function"]["name"])[:64]


def _id(given: str) -> str:
    """Return an id in letters that every vendor takes; most are so."""
    if _ID.fullmatch(given):
        return given
    return hashlib.sha256(given.encode("utf-8", "replace")).hexdigest()[:24]


def _arguments(call: Message) -> str:
    try:
        given = json.loads(call["function"]["arguments"] or "{}")
    except (ValueError, RecursionError):
        given = None
    return canonical(given) if isinstance(given, dict) else "{}"


def message_of(answer: ModelResponse) -> tuple[Message, MessageExtras]:
    """Return an answer as Chat Completions has it, and the rest of it."""
    texts = [part.content for part in answer.parts if isinstance(part, TextPart)]
    calls = [_call(part) for part in answer.parts if isinstance(part, ToolCallPart)]
    message: Message = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        message["tool_calls"] = calls
    if refusal := (answer.provider_details or {}).get("refusal"):
        message["refusal"] = str(refusal)
    rest = _rest(answer)
    nothing: tuple[dict[str, Any], ...] = tuple({} for _ in calls)
    return message, MessageExtras({FIELD: rest} if rest else {}, nothing, nothing)


def _call(part: ToolCallPart) -> Message:
    given = part.args if isinstance(part.args, str) else canonical(part.args or {})
    return {"id": part.tool_call_id, "type": "function", "function": {"name": part.tool_name, "arguments": given}}


def _rest(answer: ModelResponse) -> dict[str, Any] | None:
    """Return what is to be given back of an answer besides what it says and calls; None where there is nothing."""
    given = [part for part in answer.parts if isinstance(part, TextPart | ToolCallPart | ThinkingPart)]
    kept = [part for part in given if not isinstance(part, ThinkingPart) or _is_proven(part)]
    dumped = ModelMessagesTypeAdapter.dump_python([ModelResponse(parts=kept)], mode="json")[0]["parts"]
    parts: list[dict[str, Any]] = []
    at = 0
    for part in dumped:
        found = {name: value for name, value in part.items() if value is not None}
        match found["part_kind"]:
            case "text":
                begun, at = at, at + len(found["content"])
                found["content"] = [begun, at]
            case "tool-call":
                found = {name: value for name, value in found.items() if name not in _OWN}
            case _:
                pass
        if len(kept) < len(given) and found["part_kind"] != "thinking":
            # An item that is named by its id is looked for together with the thoughts before it.
            found.pop("id", None)
        parts.append(found)
    own = {"part_kind", "content", "provider_name"}
    if all(part["part_kind"] != "thinking" and part.keys() <= own for part in parts):
        return None
    return {"parts": parts, **{name: value for name in _KEPT if (value := getattr(answer, name)) is not None}}


def _is_proven(part: ThinkingPart) -> bool:
    """Return whether thoughts can be given back: their endpoint knows by a signature that they are its own."""
    return bool(part.signature or (part.provider_details or {}).get("raw_content"))
