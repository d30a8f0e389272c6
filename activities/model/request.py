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


def prompt_hash() -> str:
    """Return the first 16 hex digits of the hash over all prompt files."""
    together = "\0".join(_source(name) for name in ("planner", "closing", "actions"))
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
        case "task" | "note" | "fact" | "plan":
            return {"role": "user", "content": item["text"]}
        case "said":
            message: Message = {"role": "assistant", "content": item["text"] or None}
            return message | ({"tool_calls": item["calls"]} if item.get("calls") else {})
        case "answer" | "tools" if item.get("call_id") is not None:
            return {"role": "tool", "tool_call_id": item["call_id"], "content": item["text"]}
        case _:
            return None


def request_for(
    transcript: Transcript,
    catalog: Catalog,
    *,
    model: str,
    cap_tokens: int,
    most_output: int,
    system_role: str,
    budget: str,
    programs: bool = False,
) -> tuple[dict[str, Any], int]:
    """Return a request for the next decision, and how much trimming left out."""
    items, dropped = trim(list(transcript.items), cap_tokens, total=transcript.weight)
    messages = messages_of(items, system_role)
    if budget:
        # Last, so that the prefix stays the same from step to step and can be cached.
        messages.append({"role": "user", "content": f"Left: {budget}."})
    visible = transcript.visible()
    return {
        "model": model,
        "messages": messages,
        "tools": functions_for(catalog, visible, programs=programs),
        "max_completion_tokens": most_output,
    }, dropped


def closing_request(transcript: Transcript, *, model: str, most_output: int, system_role: str) -> dict[str, Any]:
    """Return a request for a closing summary: everything as plain text, no functions."""
    items, _ = trim([item for item in transcript.items if item["kind"] != "tools"], CLOSING_TOKENS)
    lines = [_line(item) for item in items if item["kind"] not in {"system", "tools"}]
    return {
        "model": model,
        "messages": [
            {"role": system_role, "content": prompt("closing")},
            {"role": "user", "content": "\n\n".join(lines)},
        ],
        "max_completion_tokens": min(most_output, CLOSING_OUTPUT),
    }


def _line(item: Item) -> str:
    if item["kind"] != "said":
        return f"{item['kind']}: {item['text']}"
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in item.get("calls", ())]
    return f"agent: {item['text'] or ''} {' '.join(calls)}".strip()


def json_request(request: dict[str, Any], system_role: str) -> dict[str, Any]:
    """Return the same request for an endpoint that takes no functions: one JSON object holds the calls."""
    functions = [tool["function"] for tool in request["tools"]]
    text = prompt("actions", functions="\n".join(canonical(function) for function in functions))
    messages = [_flat(message) for message in request["messages"]]
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
        "model": request["model"],
        "messages": [messages[0], {"role": system_role, "content": text}, *messages[1:]],
        "max_completion_tokens": request["max_completion_tokens"],
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
