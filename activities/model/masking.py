"""Take known secrets out of what a model is told, and leave what makes it a request as it is.

A secret may be a word such as `customer`, which is also the name of a field, a tool or a role.
"""

from itertools import chain
from typing import Any

from activities.model.opaque import bare, foreign
from backstay.canonical import canonical, read_json, texts_of
from backstay.redaction.naming import Change, masked_parts, masked_schema
from backstay.redaction.redactor import Redactor

_TOLD = frozenset({"short_description", "reason"})
"""Fields of a hit that are there to be read."""


def masked(request: dict[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """Return a request with a mask for each known secret in its messages and in what functions say of themselves.

    Roles, ids, the model and the engine's own fields stay. A name stays where the secret in it is an ordinary word;
    a function with any other secret in its name is left out.
    """
    return masked_parts(request, redactor, _changed)


def masked_hits(hits: list[dict[str, Any]], redactor: Redactor) -> list[dict[str, Any]]:
    """Return what a search found as `masked` does a request."""
    return masked_parts(hits, redactor, _hits)


def _changed(request: dict[str, Any], change: Change) -> dict[str, Any]:
    found = {**request, "messages": [_message(message, change) for message in request["messages"]]}
    if "tools" in request:
        tools = [(tool, _tool(tool, change)) for tool in request["tools"]]
        found["tools"] = [new for old, new in tools if new["function"]["name"] == old["function"]["name"]]
    return found


def _message(message: dict[str, Any], change: Change) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        content = [{**part, "text": change.prose(part["text"])} if "text" in part else part for part in content]
    elif content:
        content = change.prose(content)
    found = message | ({"content": content} if "content" in message else {})
    if "tool_calls" in message:
        found["tool_calls"] = [_call(call, change) for call in message["tool_calls"]]
    # Additions to a message go as they came, or not at all.
    return found if message["role"] != "assistant" or _is_kept(message, change) else bare(found)


def _call(call: dict[str, Any], change: Change) -> dict[str, Any]:
    function = call["function"]
    given, name = function["arguments"], change.name(function["name"])
    return {**call, "function": {**function, "name": name, "arguments": _arguments(given, change.prose(given))}}


def _arguments(given: str, clean: str) -> str:
    """Return the arguments of a call with masks in them as JSON, as they were before."""
    if clean == given:
        return given
    try:
        read_json(clean)
    except ValueError:
        # A number, or a secret over several values, became a mask.
        return canonical({"arguments": clean})
    return clean


def _is_kept(message: dict[str, Any], change: Change) -> bool:
    calls = message.get("tool_calls", ())
    beside = [foreign(message), *map(foreign, calls), *(foreign(call["function"]) for call in calls)]
    texts = [*chain.from_iterable(map(texts_of, beside))]
    return not texts or change.prose(texts) == texts


def _tool(tool: dict[str, Any], change: Change) -> dict[str, Any]:
    about = tool["function"]
    name, description = change.name(about["name"]), change.prose(about["description"])
    parameters = masked_schema(about["parameters"], change)
    return {**tool, "function": {**about, "name": name, "description": description, "parameters": parameters}}


def _hits(hits: list[dict[str, Any]], change: Change) -> list[dict[str, Any]]:
    pairs = [(hit, _hit(hit, change)) for hit in hits]
    return [new for hit, new in pairs if new["tool"] == hit["tool"]]


def _hit(hit: dict[str, Any], change: Change) -> dict[str, Any]:
    return {key: change.prose(item) if key in _TOLD else masked_schema(item, change) for key, item in hit.items()}
