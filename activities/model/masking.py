"""Take known secrets out of what a model is told, and leave what makes it a request as it is.

A secret may be a word such as `customer`, which is also the name of a field, a tool or a role.
"""

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from activities.model.opaque import bare, foreign
from backstay.canonical import canonical, read_json, texts_of
from backstay.redaction.entropy import is_worded
from backstay.redaction.known_secrets import KnownSecrets
from backstay.redaction.redactor import Redactor

_PROSE = frozenset({"description", "title", "$comment", "default", "example", "examples"})
"""Fields of a schema that are there to be read."""
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Fields that hold a schema for each name."""
_TOLD = frozenset({"short_description", "reason"})
"""Fields of a hit that are there to be read."""
_NAME = "REDACTED"
"""Stands for a name; endpoints take no brackets there."""


_Given = TypeVar("_Given")


class _Change(NamedTuple):
    """Hold the changes to the parts of a request, which are always asked for in the same order."""

    prose: Callable[[Any], Any]
    """Takes what may say anything: a string, or an example in JSON."""
    choice: Callable[[str], str]
    """Takes a value that a model may choose."""
    name: Callable[[str], str]


def masked(request: dict[str, Any], redactor: Redactor | None) -> dict[str, Any]:
    """Return a request with a mask for each known secret in its messages and in what functions say of themselves.

    Roles, ids, the model and the engine's own fields stay. A name stays where the secret in it is an ordinary word;
    a function with any other secret in its name is left out.
    """
    return _masked(request, redactor, _changed)


def masked_hits(hits: list[dict[str, Any]], redactor: Redactor) -> list[dict[str, Any]]:
    """Return what a search found as `masked` does a request."""
    return _masked(hits, redactor, _hits)


def _masked(given: _Given, redactor: Redactor | None, changed: Callable[[_Given, _Change], _Given]) -> _Given:
    if redactor is None or not redactor.known:
        return given
    known = redactor.known
    prose: list[Any] = []
    names: list[str] = []
    changed(given, _Change(partial(_noted, prose), partial(_noted, prose), partial(_noted, names)))
    clean = redactor.without_known(prose)
    if clean is prose and not known.occur_in(" ".join(names)):
        return given
    parts = iter(clean)

    def choice(text: str) -> str:
        shown = next(parts)
        return text if shown != text and _in_words(text, known) else shown

    return changed(given, _Change(lambda _: next(parts), choice, partial(_name, known)))


def _noted(noted: list[Any], part: Any) -> Any:
    noted.append(part)
    return part


def _in_words(text: str, known: KnownSecrets) -> bool:
    """Return whether all secrets in a name are ordinary words, which tell nobody that they are secrets."""
    found = [text[start:end] for start, end in known.places_in(text)]
    return bool(found) and not any(any(map(str.isdecimal, part)) or not is_worded(part) for part in found)


def _name(known: KnownSecrets, text: str) -> str:
    return _NAME if known.places_in(text) and not _in_words(text, known) else text


def _changed(request: dict[str, Any], change: _Change) -> dict[str, Any]:
    found = {**request, "messages": [_message(message, change) for message in request["messages"]]}
    if "tools" in request:
        tools = [(tool, _tool(tool, change)) for tool in request["tools"]]
        found["tools"] = [new for old, new in tools if new["function"]["name"] == old["function"]["name"]]
    return found


def _message(message: dict[str, Any], change: _Change) -> dict[str, Any]:
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


def _call(call: dict[str, Any], change: _Change) -> dict[str, Any]:
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


def _is_kept(message: dict[str, Any], change: _Change) -> bool:
    calls = message.get("tool_calls", ())
    beside = [foreign(message), *map(foreign, calls), *(foreign(call["function"]) for call in calls)]
    texts = [*chain.from_iterable(map(texts_of, beside))]
    return not texts or change.prose(texts) == texts


def _tool(tool: dict[str, Any], change: _Change) -> dict[str, Any]:
    about = tool["function"]
    name, description = change.name(about["name"]), change.prose(about["description"])
    parameters = _schema(about["parameters"], change)
    return {**tool, "function": {**about, "name": name, "description": description, "parameters": parameters}}


def _schema(schema: Any, change: _Change, *, is_named: bool = False) -> Any:
    match schema:
        case str():
            return change.name(schema)
        case dict():
            return {change.name(key): _below(key, item, change, is_named=is_named) for key, item in schema.items()}
        case list():
            return [_schema(item, change) for item in schema]
        case _:
            return schema


def _below(key: str, item: Any, change: _Change, *, is_named: bool) -> Any:
    if is_named:
        return _schema(item, change)
    if key in _PROSE:
        return change.prose(item)
    if key == "enum" and isinstance(item, list):
        return [change.choice(choice) if isinstance(choice, str) else choice for choice in item]
    if key == "const" and isinstance(item, str):
        return change.choice(item)
    return _schema(item, change, is_named=key in _NAMED)


def _hits(hits: list[dict[str, Any]], change: _Change) -> list[dict[str, Any]]:
    pairs = [(hit, _hit(hit, change)) for hit in hits]
    return [new for hit, new in pairs if new["tool"] == hit["tool"]]


def _hit(hit: dict[str, Any], change: _Change) -> dict[str, Any]:
    return {key: change.prose(item) if key in _TOLD else _schema(item, change) for key, item in hit.items()}
