"""Render a transcript as a Chat Completions request."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import SandboxedEnvironment

from activities.endpoints.endpoints import Target
from activities.media.parts import MediaParts
from activities.model.functions import functions_for
from activities.model.message import MessageExtras
from activities.model.observations import Way
from activities.model.opaque import FIELD, masked, with_beside
from activities.model.transcript import Item, Transcript
from backstay.canonical import canonical, with_texts
from backstay.digests.broken_up import break_up, break_up_own
from backstay.digests.told import told
from backstay.plans.definition import PlanDefinition
from backstay.plans.review import PlanWork
from backstay.profile import Profile
from backstay.redaction.redactor import Redactor
from backstay.requests import AskModel
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.task.context import BYTES_PER_TOKEN, MEDIA, SENT, trim, weight
from backstay.task.decision import Perception
from toolbox.catalog.catalog import Catalog

FOLDER = Path(__file__).parent / "prompts"
_ENVIRONMENT = SandboxedEnvironment(undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True)


@cache
def _source(name: str) -> str:
    return (FOLDER / f"{name}.md.j2").read_text(encoding="utf-8")


@cache
def _template(name: str) -> Template:
    return _ENVIRONMENT.from_string(_source(name))


def prompt(name: str, **variables: Any) -> str:
    """Return one prompt, filled in."""
    return _template(name).render(**variables).strip()


def prompt_hash(profile: Profile) -> str:
    """Return the first 16 hex digits of the hash over all prompt files and what a profile adds to them."""
    names = ("planner", "closing", "actions", "following", "ended", "perception", "review", "subrun")
    together = "\0".join(_source(name) for name in names)
    added = profile.model_dump(mode="json", include={"strategy", "persona", "markers"}, exclude_defaults=True)
    together += canonical(added) if added else ""
    return hashlib.sha256(together.encode()).hexdigest()[:16]


CLOSING_TOKENS = 6000
CLOSING_OUTPUT = 400
PERCEPTION_OUTPUT = 1500
VERDICT_BYTES = 48_000
"""How long the question may be that asks for a verdict on the work of a plan."""
_WORK_BYTES = 40_000
MOST_SERVERS = 100
NAMED_TOOLS = 12
_LISTS = frozenset({"entities", "tags", "selected_servers"})
_OWN_WORDS = frozenset({"system", "task", "message", "said", "tools"})
_REF = re.compile(r'"(?:storage_)?ref":"[0-9a-f]{40}"')
Message = dict[str, Any]
_NOTHING: Mapping[str, MessageExtras] = {}


def messages_of(
    items: Sequence[Item],
    system_role: str,
    beside: Mapping[str, MessageExtras] = _NOTHING,
    media: MediaParts | None = None,
) -> list[Message]:
    """Return the messages that native function calling expects, with what was beside them, by ref.

    Media in answers comes behind the last of them, as nothing may come between calls and their answers; without
    `media`, no message holds it.
    """
    found: list[Message] = []
    waiting: list[dict[str, Any]] = []
    told: set[str] = set()
    for item in items:
        if (message := _message(item, system_role)) is None:
            continue
        if waiting and message["role"] != "tool":
            found.append({"role": "user", "content": waiting})
            waiting = []
        stood = beside.get(item[FIELD]["ref"]) if FIELD in item else None
        found.append(message if stood is None else with_beside(message, stood))
        if media is not None and MEDIA in item:
            waiting += media.parts_of(item, _whose(item), told)
    return [*found, *([{"role": "user", "content": waiting}] if waiting else [])]


def _whose(item: Item) -> str:
    return f"the answer to {item['call_id']}" if item.get("call_id") else "the task"


def _message(item: Item, system_role: str) -> Message | None:
    match item["kind"]:
        case "system":
            return {"role": system_role, "content": break_up(item["text"])}
        case "task" | "note" | "fact" | "plan" | "earlier":
            return {"role": "user", "content": break_up(item["text"])}
        case "message":
            return {"role": "user", "content": f"A person says while you work: {break_up(item['text'])}"}
        case "said":
            text, calls = break_up_own(item["text"]), [*map(_made, item.get("calls", ()))]
            # Some models write line breaks alone before calls, which some endpoints refuse.
            message: Message = {"role": "assistant", "content": text if text.strip() or not calls else None}
            return message | ({"tool_calls": calls} if calls else {})
        case "answer" | "tools" if item.get("call_id") is not None:
            return {"role": "tool", "tool_call_id": item["call_id"], "content": told(item["text"])}
        case _:
            return None


def _made(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call as the model is shown again that it made it."""
    function = call["function"]
    return {**call, "function": {**function, "arguments": break_up_own(function["arguments"])}}


def request_for(
    ask: AskModel,
    transcript: Transcript,
    catalog: Catalog,
    settings: Settings,
    *,
    target: Target,
    cap_tokens: int,
    way: Way,
    offered: Mapping[str, PlanDefinition],
    finish: dict[str, Any] | None = None,
    beside: Mapping[str, MessageExtras] = _NOTHING,
    results: Mapping[int, str] = MappingProxyType({}),
    media: MediaParts | None = None,
    redactor: Redactor | None = None,
) -> tuple[dict[str, Any], int]:
    """Return the request for the next decision or for something else, and how many items trimming left out.

    `beside`: what was beside the messages of this very model, which alone is given it back.
    `offered`: the plans that are offered as functions, and `finish` that function for a task that wants a value.
    Asked for functions or not, the answer says the same: without them it is one JSON object that holds the calls.
    """
    role, room, most = settings.system_role, target.context_tokens, _most_tokens(target, settings)
    request = {"model": target.model, "max_completion_tokens": most}
    if ask.closing:
        most, cap = min(most, CLOSING_OUTPUT), CLOSING_TOKENS if room is None else min(CLOSING_TOKENS, room // 2)
        closing = request | {"messages": _closing(transcript, role, cap), "max_completion_tokens": most}
        return masked(closing, redactor), 0
    if ask.perception:
        return masked(_short(request | _perceiving(transcript, catalog, role, way)), redactor), 0
    if ask.work is not None:
        return masked(_short(request | _reviewing(ask.work, results, transcript, role, way)), redactor), 0
    offers = _offers(ask, transcript)
    functions = _broken_up(functions_for(catalog, transcript.visible(), offered=offered, finish=finish, **offers))
    items, dropped = _trimmed(transcript, beside, _room(cap_tokens, room, most, functions))
    # The rest of the budget comes last, so that the prefix stays the same from step to step and can be cached.
    messages = [*messages_of(items, role, beside, media), *([_left(ask)] if ask.budget else [])]
    asked = masked({"messages": messages, "tools": functions}, redactor)  # while names are not words of a message
    more = asked if way == "functions" else _json_answer(asked["messages"], asked["tools"], role, way)
    return request | more, dropped


def _trimmed(transcript: Transcript, beside: Mapping[str, MessageExtras], cap_tokens: int) -> tuple[list[Item], int]:
    """Return the items that there is room for, and how many were left out."""
    sent = [*map(partial(_with_own, beside), transcript.items)]
    more = sum(weight(mine) - weight(item) for mine, item in _changed(sent, transcript.items))
    return trim(sent, cap_tokens, total=transcript.weight + more, forgotten=transcript.forgotten)


def _short(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request whose answer is one small JSON object."""
    return request | {"max_completion_tokens": min(request["max_completion_tokens"], PERCEPTION_OUTPUT)}


def _offers(ask: AskModel, transcript: Transcript) -> dict[str, bool]:
    """Return which functions of the engine a model is offered beside those that it always has."""
    known = {"programs": ask.programs, "planning": ask.planning, "plans": ask.plans, "memory": ask.memory}
    return known | {"delegation": ask.delegation, "reading": _may_read_on(transcript)}


def _may_read_on(transcript: Transcript) -> bool:
    """Return whether a model may have to read more of what it was told."""
    return transcript.forgotten > 0 or "read_result" in transcript.called or any(map(_is_part, transcript.items))


def _is_part(item: Item) -> bool:
    """Return whether there is more to read than an item tells: it names a ref, and is not a whole answer."""
    text = str(item.get("text") or "")
    return item["kind"] not in _OWN_WORDS and '"data":' not in text[:8] and _REF.search(text) is not None


def _left(ask: AskModel) -> Message:
    """Return what says how much of the budget is left, and how the last steps went."""
    progress = f"\nLast steps: {ask.progress}." if ask.progress else ""
    return {"role": "user", "content": break_up(f"Left: {ask.budget}.{progress}")}


def _with_own(beside: Mapping[str, MessageExtras], item: Item) -> Item:
    """Return an item, marked where it is sent with what was beside it: then that has to have room as well."""
    if FIELD not in item or item[FIELD]["ref"] not in beside:
        return item
    return {**item, FIELD: {**item[FIELD], SENT: True}}


def _changed(marked: Sequence[Item], items: Sequence[Item]) -> Iterator[tuple[Item, Item]]:
    return ((mine, item) for mine, item in zip(marked, items, strict=True) if mine is not item)


def _broken_up(functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return functions with what servers and others say in them broken up; mostly there is nothing to break up."""
    said = canonical(functions)
    return functions if break_up(said) == said else with_texts(functions, break_up, names=True)


def _room(cap_tokens: int, room: int | None, most: int, functions: list[dict[str, Any]]) -> int:
    """Return how much of a transcript there is room for beside its functions and the answer."""
    if room is None:
        return cap_tokens
    return min(cap_tokens, max(room - most - int(weight(functions) / BYTES_PER_TOKEN), room // 8))


def _most_tokens(target: Target, settings: Settings) -> int:
    """Return how long the answer may be; half of what the model takes is left for what it is told."""
    half = None if target.context_tokens is None else target.context_tokens // 2
    return settings.max_completion_tokens if not half else min(settings.max_completion_tokens, half)


def _perceiving(transcript: Transcript, catalog: Catalog, system_role: str, way: Way) -> dict[str, Any]:
    """Return the part of a request that asks what the task is about, and which servers are needed."""
    named: dict[str, list[str]] = {}
    for definition in catalog.definitions.values():
        if definition.is_found:
            named.setdefault(definition.provider, []).append(definition.name.partition(".")[2])
    # A definition that has changed since it was first read, or last accepted, is not shown before somebody accepts it.
    spoken = {name: one_line(text, 300) for name, text in catalog.instructions.items() if name not in catalog.changed}
    servers = [
        f"{one_line(provider, 60)}: {one_line(', '.join(names[:NAMED_TOOLS]), 400)} ({len(names)} tools)"
        + (f", which says of itself: {json.dumps(spoken[provider], ensure_ascii=False)}" if provider in spoken else "")
        for provider, names in sorted(named.items())[:MOST_SERVERS]
    ]
    task = next((item["text"] for item in reversed(transcript.items) if item["kind"] == "task"), "")
    messages = [
        {"role": system_role, "content": break_up(prompt("perception", servers=servers))},
        {"role": "user", "content": break_up(task)},
    ]
    texts = {"type": "array", "items": {"type": "string"}}
    fields = {name: texts if name in _LISTS else {"type": "string"} for name in Perception.model_fields}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"messages": messages} | _by_schema(schema, "perception", way)


def _reviewing(
    work: PlanWork, results: Mapping[int, str], transcript: Transcript, system_role: str, way: Way
) -> dict[str, Any]:
    """Return the part of a request that asks for a verdict; others' words are data, and long answers are cut."""
    task = next((item["text"] for item in reversed(transcript.items) if item["kind"] == "task"), "")
    room = _WORK_BYTES // (2 * max(1, len(work.steps)))
    lines = [f"Task: {task[: _WORK_BYTES // 4]}", f"Plan: {work.name}"]
    for place, step in enumerate(work.steps):
        lines += [f"Step {place}: {step[:room]}", *([f"Answer: {results[place][:room]}"] if place in results else [])]
    messages = [
        {"role": system_role, "content": prompt("review")},
        {"role": "user", "content": break_up("\n".join(lines).encode()[:_WORK_BYTES].decode(errors="ignore"))},
    ]
    fields: dict[str, Any] = {
        "approved": {"type": "boolean"},
        "confidence": {"type": "number"},
        "problems": {"type": "array", "items": {"type": "string"}},
    }
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    return {"messages": messages} | _by_schema(schema, "verdict", way)


def _by_schema(schema: dict[str, Any], name: str, way: Way) -> dict[str, Any]:
    """Return the field of a request that asks for JSON by a schema, if the endpoint may be given one."""
    if way == "free":
        return {}
    asked = {"name": name, "schema": schema} | ({"strict": True} if way == "strict" else {})
    return {"response_format": {"type": "json_schema", "json_schema": asked}}


def _closing(transcript: Transcript, system_role: str, cap_tokens: int) -> list[Message]:
    """Return the messages that ask for a closing summary: everything as plain text, no functions."""
    items, _ = trim([item for item in transcript.items if item["kind"] != "tools"], cap_tokens)
    lines = [_line(item) for item in items if item["kind"] not in {"system", "tools"}]
    return [
        {"role": system_role, "content": prompt("closing")},
        {"role": "user", "content": "\n\n".join(lines)},
    ]


def _line(item: Item) -> str:
    if item["kind"] != "said":
        return f"{item['kind']}: {told(item['text']) if item['kind'] == 'answer' else break_up(item['text'])}"
    calls = [f"{call['function']['name']}({call['function']['arguments']})" for call in item.get("calls", ())]
    return break_up_own(f"agent: {item['text'] or ''} {' '.join(calls)}".strip())


def _json_answer(messages: list[Message], tools: list[dict[str, Any]], system_role: str, way: Way) -> dict[str, Any]:
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
    return {"messages": [first, {"role": system_role, "content": text}, *rest]} | _by_schema(schema, "decision", way)


def _flat(message: Message) -> Message:
    match message:
        case {"role": "tool"}:
            return {"role": "user", "content": f"Answer to {message['tool_call_id']}: {message['content']}"}
        case {"role": "assistant", "tool_calls": calls}:
            said = [
                {"id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]}
                for call in calls
            ]
            rest = {name: value for name, value in message.items() if name != "tool_calls"}
            return rest | {"content": canonical({"reason": message["content"] or "", "calls": said})}
        case _:
            return message
