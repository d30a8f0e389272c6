"""Render a transcript as a Chat Completions request."""

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from activities.model.functions import functions_for
from activities.model.transcript import Item, Transcript
from backstay.canonical import canonical
from backstay.profile import Profile
from backstay.requests import AskModel
from backstay.settings import Settings
from backstay.task.context import trim
from toolbox.catalog.catalog import Catalog

FOLDER = Path(__file__).parent / "prompts"
_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.md.j2").read_text(encoding="utf-8")


def prompt(name: str, **variables: Any) -> str:
    """Return one prompt, filled in."""
    return _ENVIRONMENT.from_string(_source(name)).render(**variables).strip()


def prompt_hash(profile: Profile) -> str:
    """Return the first 16 hex digits of the hash over all prompt files and what a profile adds to them."""
    together = "\0".join(_source(name) for name in ("planner", "closing", "actions", "following", "ended"))
    added = profile.model_dump(mode="json", include={"strategy", "persona", "markers"}, exclude_defaults=True)
    together += canonical(added) if added else ""
    return hashlib.sha256(together.encode()).hexdigest()[:16]


CLOSING_TOKENS = 6000
CLOSING_OUTPUT = 400
Message = dict[str, Any]


def messages_of(items: Sequence[Item], system_role: str) -> list[Message]:
    """Return the messages that native function calling expects."""
    return [message for item in items if (message := _message(item, system_role)) is not None]


def _message(item: Item, system_role: str) -> Message | None:
    match item["kind"]:
        case "system":
            return {"role": system_role, "content": item["text"]}
        case "task" | "note" | "fact" | "plan" | "earlier":
            return {"role": "user", "content": item["text"]}
        case "message":
            return {"role": "user", "content": f"A person says while you work: {item['text']}"}
        case "said":
            message: Message = {"role": "assistant", "content": item["text"] or None}
            return message | ({"tool_calls": item["calls"]} if item.get("calls") else {})
        case "answer" | "tools" if item.get("call_id") is not None:
            return {"role": "tool", "tool_call_id": item["call_id"], "content": item["text"]}
        case _:
            return None


def request_for(
    ask: AskModel,
    transcript: Transcript,
    catalog: Catalog,
    settings: Settings,
    *,
    cap_tokens: int,
    as_json: bool,
    finish: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], int]:
    """Return the request for the next decision or the closing summary, and how many items trimming left out.

    `finish`: the function of that name, for a task that wants a value of a certain form.
    With `as_json` it suits an endpoint that takes no functions: the answer is one JSON object that holds the calls.
    """
    role = settings.system_role
    most = min(settings.max_completion_tokens, ask.max_completion_tokens or settings.max_completion_tokens)
    request = {"model": ask.model, "max_completion_tokens": most}
    if ask.closing:
        most = min(most, CLOSING_OUTPUT)
        return request | {"messages": _closing(transcript, role), "max_completion_tokens": most}, 0
    items, dropped = trim(list(transcript.items), cap_tokens, total=transcript.weight, forgotten=transcript.forgotten)
    messages = messages_of(items, role)
    if ask.budget:
        # Last, so that the prefix stays the same from step to step and can be cached.
        progress = f"\nLast steps: {ask.progress}." if ask.progress else ""
        messages.append({"role": "user", "content": f"Left: {ask.budget}.{progress}"})
    offers: Any = {"programs": ask.programs, "planning": ask.planning, "finish": finish}
    functions = functions_for(catalog, transcript.visible(), **offers)
    answer = _json_answer(messages, functions, role) if as_json else {"messages": messages, "tools": functions}
    return request | answer, dropped


def _closing(transcript: Transcript, system_role: str) -> list[Message]:
    """Return the messages that ask for a closing summary: everything as plain text, no functions."""
    items, _ = trim([item for item in transcript.items if item["kind"] != "tools"], CLOSING_TOKENS)
    lines = [_line(item) for item in items if item["kind"] not in {"system", "tools"}]
    return [
        {"role": system_role, "content": prompt("closing")},
        {"role": "user", "content": "\n\n".join(lines)},
    ]


def _line(item: Item) -> str:
    if item["kind"] != "said":
        return f"{item['kind']}: {item['text']}"
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in item.get("calls", ())]
    return f"agent: {item['text'] or ''} {' '.join(calls)}".strip()


def _json_answer(messages: list[Message], tools: list[dict[str, Any]], system_role: str) -> dict[str, Any]:
    """Return the part of a request that asks for the calls as one JSON object."""
    functions = [tool["function"] for tool in tools]
    text = prompt("actions", functions="\n".join(canonical(function) for function in functions))
    first, *rest = [_flat(message) for message in messages]
    call = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "enum": [f["name"] for f in functions]},
            "arguments": {"type": "string"},
        },
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "calls": {"type": "array", "items": call, "maxItems": 64}},
        "required": ["reason", "calls"],
        "additionalProperties": False,
    }
    return {
        "messages": [first, {"role": system_role, "content": text}, *rest],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "decision", "strict": True, "schema": schema},
        },
    }


def _flat(message: Message) -> Message:
    match message:
        case {"role": "tool"}:
            return {"role": "user", "content": f"Answer to {message['tool_call_id']}: {message['content']}"}
        case {"role": "assistant", "tool_calls": calls}:
            said = [{"id": call["id"], **call["function"]} for call in calls]
            return {"role": "assistant", "content": canonical({"reason": message["content"] or "", "calls": said})}
        case _:
            return message
