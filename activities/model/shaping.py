"""Put a request into the form that its endpoint takes."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from activities.endpoints.dialect import PLAIN, Dialect
from activities.media.parts import joined, without
from activities.model.functions import NAMES
from activities.model.message import OWN
from activities.model.schemas import called, simple
from activities.model.streaming import STREAMED

LIMIT = "max_completion_tokens"
"""What requests call the limit of an answer until they are sent."""
BRIDGE = "OK."
"""What stands between the answer of a tool and what a person says, where an endpoint wants that."""
FILLER = "."
"""What stands for words that the model did not say, where an endpoint wants some."""
_FILLED: Mapping[str, Any] = {"reasoning_content": " "}
# The value that Google's reference names for calls that its models did not make.
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_PARTS = {"image_url": "images", "file": "files"}
"""By which field a dialect says whether an endpoint takes a part of a message."""
Message = dict[str, Any]


def shaped(request: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    """Return the request as an endpoint of this dialect takes it; the request itself stays as it is."""
    if dialect == PLAIN:
        return request
    found = {name: value for name, value in request.items() if name not in dialect.without or name == LIMIT}
    found["messages"] = _messages(request["messages"], dialect)
    if "tools" in found:
        found["tools"] = _functions(found["tools"], dialect)
    if dialect.stream:
        found |= {name: value for name, value in STREAMED.items() if name not in dialect.without}
    if LIMIT in found:
        most = min(found.pop(LIMIT), dialect.answer_tokens or request[LIMIT])
        if dialect.limit != "none":
            found[dialect.limit] = most
    return found


def _functions(functions: list[dict[str, Any]], dialect: Dialect) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    refused = dialect.plain or dialect.hidden
    for given in functions:
        name = called(given) if refused else ""
        own = given["function"]["name"] in NAMES
        if name in dialect.hidden and not own:
            continue
        found.append(simple(given) if name in dialect.plain or "*" in dialect.plain else given)
    if dialect.functions is None or len(found) <= dialect.functions:
        return found
    own = [given for given in found if given["function"]["name"] in NAMES][: dialect.functions]
    others = [given for given in found if given["function"]["name"] not in NAMES]
    room = dialect.functions - len(own)
    # Those that were found last are the ones that the step needs.
    return [*own, *(others[-room:] if room else ())]


def _messages(given: Sequence[Message], dialect: Dialect) -> list[Message]:
    messages = [_message(message, dialect) for message in given]
    if refused := frozenset(_PARTS) - {kind for kind, field in _PARTS.items() if getattr(dialect, field)}:
        messages = without(messages, refused)
    if not dialect.parallel:
        messages = [*_one_call_each(messages)]
    if dialect.ids == "short":
        messages = _with_short_ids(messages)
    if dialect.system != "any":
        messages = _with_system(messages, dialect.system)
    if dialect.roles != "any":
        messages = [*_bridged(messages)]
    return _alternating(messages) if dialect.roles == "alternating" else messages


def _message(message: Message, dialect: Dialect) -> Message:
    if message["role"] != "assistant":
        return message
    found = {name: value for name, value in message.items() if _stays(name, dialect)}
    if "tool_calls" in found:
        found["tool_calls"] = [_call(call, dialect) for call in found["tool_calls"]]
        if found["content"] is None and dialect.content != "null":
            found["content"] = ""
        if dialect.content == "absent" and not found["content"]:
            del found["content"]
        if dialect.content == "filled":
            found["content"] = found["content"] if (found["content"] or "").strip() else FILLER
    for name in dialect.fill & _FILLED.keys():
        found.setdefault(name, _FILLED[name])
    if "thought_signature" in dialect.fill and found.get("tool_calls"):
        _sign(found["tool_calls"][0])
    return found


def _stays(name: str, dialect: Dialect) -> bool:
    return name in OWN or (dialect.opaque and name not in dialect.without)


def _call(call: Message, dialect: Dialect) -> Message:
    kept = {name: value for name, value in call.items() if _stays(name, dialect)}
    function = {name: value for name, value in call["function"].items() if _stays(name, dialect)}
    return {**kept, "function": function}


def _sign(call: Message) -> None:
    """Mark the first call of a message as one that need not be signed, unless it is signed."""
    if "extra_content" not in call and "thought_signature" not in call["function"]:
        call["extra_content"] = _UNSIGNED


def _one_call_each(messages: Iterable[Message]) -> Iterable[Message]:
    """Yield messages of one call each, with the answer behind its call."""
    waiting: list[Message] = []
    for message in messages:
        if message["role"] == "tool" and waiting:
            answered = [given for given in waiting if given["tool_calls"][0]["id"] == message["tool_call_id"]]
            yield from answered[:1]
            waiting = [given for given in waiting if given not in answered[:1]]
            yield message
            continue
        yield from waiting
        waiting = []
        calls = message.get("tool_calls", ())
        if len(calls) > 1:
            first, *rest = [{**message, "tool_calls": [call]} for call in calls]
            waiting = [first, *({**given, "content": None if given.get("content") is None else ""} for given in rest)]
        else:
            yield message
    yield from waiting


def _with_short_ids(messages: list[Message]) -> list[Message]:
    found: list[Message] = []
    latest: dict[str, str] = {}
    for place, message in enumerate(messages):
        if calls := message.get("tool_calls"):
            latest = {call["id"]: _short(f"{place} {call['id']}") for call in calls}
            found.append({**message, "tool_calls": [{**call, "id": latest[call["id"]]} for call in calls]})
        elif message["role"] == "tool":
            given = message["tool_call_id"]
            found.append({**message, "tool_call_id": latest.get(given) or _short(given)})
        else:
            found.append(message)
    return found


def _short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:9]


def _with_system(messages: list[Message], wanted: str) -> list[Message]:
    system = [message for message in messages if message["role"] in {"system", "developer"}]
    if wanted == "system":
        return [{**given, "role": "system"} if given["role"] == "developer" else given for given in messages]
    text = "\n\n".join(message["content"] for message in system)
    rest = [message for message in messages if message["role"] not in {"system", "developer"}]
    if wanted == "first" or not system:
        return [{"role": "system", "content": text}, *rest] if system else rest
    if rest and rest[0]["role"] == "user":
        return [{**rest[0], "content": joined(text, rest[0]["content"])}, *rest[1:]]
    return [{"role": "user", "content": text}, *rest]


def _bridged(messages: Iterable[Message]) -> Iterable[Message]:
    before = ""
    for message in messages:
        if before == "tool" and message["role"] == "user":
            yield {"role": "assistant", "content": BRIDGE}
        before = message["role"]
        yield message


def _alternating(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with those of one role in a row as one, and a question of a person before the first answer.

    Answers of tools belong to their calls, and are left as they are.
    """
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        joins = last is not None and last["role"] == message["role"] != "tool" and "tool_calls" not in last
        if last is not None and joins and "tool_calls" not in message:
            found[-1] = {**last, "content": joined(last["content"], message["content"])}
        elif last is not None and joins:
            found[-1] = {**message, "content": f"{last['content']}\n\n{message.get('content') or ''}".strip()}
        else:
            found.append(message)
    return found
