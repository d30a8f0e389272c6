"""Bring what an endpoint answers into one form, and keep apart what it puts beside its words and calls.

Other fields beside them mean nothing to the engine. Some endpoints want them back, unchanged.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from activities.model.disguise import fenced
from activities.model.output import strict_json
from backstay.canonical import canonical
from backstay.data_files import data_beside

OWN = frozenset({"role", "content", "name", "id", "arguments", "type", "function", "tool_calls", "tool_call_id"})
"""The fields of messages, calls and functions that the engine writes itself."""
_READ = OWN | {"index", "function_call", "refusal", "audio", "annotations", "parsed", "object"}
"""What is never given back as it came: it is read, or is the engine's own to say."""
_SEVERAL = "multi_tool_use.parallel"
_TEXTS = ("text", "output_text")
_GROWS = frozenset({"text", "thinking", "summary", "content", "reasoning"})
"""Texts of a part that come in pieces when an answer is streamed."""
MOST_NESTED = 2
"""This many times arguments may be written as JSON in a string of JSON."""


@dataclass(frozen=True)
class MessageExtras:
    """Hold what an endpoint put beside its message, beside each of its calls, and beside what each of them calls."""

    message: dict[str, Any] = field(default_factory=dict[str, Any])
    calls: tuple[dict[str, Any], ...] = ()
    functions: tuple[dict[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.message) or any(self.calls) or any(self.functions)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"message": self.message, "calls": list(self.calls), "functions": list(self.functions)}

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> "MessageExtras":
        """Return what `plain` has written."""
        return cls(data["message"], tuple(data["calls"]), tuple(data["functions"]))


def beside(given: Mapping[str, Any], known: frozenset[str] = _READ) -> dict[str, Any]:
    """Return the fields that the engine does not read itself; nothing of what says nothing."""
    return {name: value for name, value in given.items() if name not in known and value not in (None, "", [], {})}


def in_one_form(message: dict[str, Any]) -> tuple[dict[str, Any], MessageExtras]:
    """Return a message with its words as one text and its calls as a list, and what was beside them."""
    found = {name: message[name] for name in ("role", "content", "refusal") if name in message}
    if isinstance(parts := message.get("content"), list | dict):
        found["content"], refused = text_of(parts if isinstance(parts, list) else [parts])
        if refused and not found.get("refusal"):
            found["refusal"] = refused
    calls = _calls(message)
    if calls:
        found["tool_calls"] = calls
    elif "tool_calls" in message:
        found["tool_calls"] = message["tool_calls"]
    functions = [call.get("function") for call in calls]
    return found, MessageExtras(
        beside(message),
        tuple(beside(call) for call in calls),
        tuple(beside(function) if isinstance(function, dict) else {} for function in functions),
    )


def _calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = message.get("tool_calls")
    if isinstance(given, dict):
        given = [given]
    # Anything else in the list keeps its place and is refused there, and a `finish` beside it is dropped.
    listed: list[Any] = [call for call in given if call is not None] if isinstance(given, list) else []
    calls: list[dict[str, Any]] = [call if isinstance(call, dict) else {"function": {}} for call in listed]
    if not calls and isinstance(legacy := message.get("function_call"), dict) and legacy.get("name"):
        # How functions were called before several could be.
        return [{"type": "function", "function": legacy}]
    return [apart for call in _once(map(as_function, calls)) for apart in _apart(call)]


def _apart(call: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the calls that a call of OpenAI's own function for several holds, which some of its models make."""
    function = call.get("function")
    if not isinstance(function, dict) or function.get("name") != _SEVERAL:
        return [call]
    try:
        uses = arguments_in(function.get("arguments")).get("tool_uses")
    except (ValueError, TypeError, RecursionError):
        return [call]
    if not isinstance(uses, list) or not all(isinstance(use, dict) for use in uses):
        return [call]
    made = [{"name": use.get("recipient_name"), "arguments": use.get("parameters")} for use in uses]
    return [
        {"id": f"{call.get('id') or ''}-{place}", "type": "function", "function": it} for place, it in enumerate(made)
    ]


def _once(calls: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield calls without those that their endpoint repeats whole, under the same id."""
    known: dict[str, dict[str, Any]] = {}
    for call in calls:
        given = call.get("id")
        first = known.setdefault(given, call) if isinstance(given, str) and given else call
        if first is call or not _is_same(first, call):
            yield call


def _is_same(call: dict[str, Any], other: dict[str, Any]) -> bool:
    function, again = call.get("function"), other.get("function")
    if not isinstance(function, dict) or not isinstance(again, dict) or function.get("name") != again.get("name"):
        return call == other
    given, held = again.get("arguments"), function.get("arguments")
    return given == held or whole_arguments(given) == whole_arguments(held) is not None


def as_function(call: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the usual form, where its name is beside its arguments."""
    if "function" in call or not isinstance(call.get("name"), str):
        return call
    return {**call, "function": {"name": call["name"], "arguments": call.get("arguments", call.get("input"))}}


def text_of(parts: Iterable[Any]) -> tuple[str, str]:
    """Return the words of content that comes as parts, and those of a refusal in it; thoughts are not words."""
    texts: list[str] = []
    refusals: list[str] = []
    for part in parts:
        match part:
            case str():
                texts.append(part)
            case {"type": "refusal", "refusal": str(text)}:
                refusals.append(text)
            case {"type": kind, "text": str(text)} if kind in _TEXTS:
                texts.append(text)
            case {"type": kind, "text": {"value": str(text)}} if kind in _TEXTS:
                texts.append(text)
            case {"text": str(text)} if "type" not in part and not part.get("thought"):
                texts.append(text)
            case _:
                pass
    return "".join(texts), "".join(refusals)


def grown(known: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of a streamed answer to what is beside it: texts go on, lists get longer, objects are joined."""
    for name, value in piece.items():
        before = known.get(name)
        match before, value:
            case (None, list()):
                known[name] = []
                _lengthen(known[name], value)
            case (None, _):
                known[name] = value
            case (str(), str()):
                known[name] = before + value
            case (list(), list()):
                _lengthen(before, value)
            case (dict(), dict()):
                joined = dict(before)
                grown_object(joined, value)
                known[name] = joined
            case _:
                known[name] = value


def grown_object(known: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Add a piece of an object; a string in it is whole, unless it is one that grows."""
    for name, value in piece.items():
        before = known.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            joined = dict(before)
            grown_object(joined, value)
            known[name] = joined
        elif name in _GROWS and isinstance(before, str) and isinstance(value, str):
            known[name] = before + value
        elif value is not None or before is None:
            known[name] = value


def _lengthen(known: list[Any], more: list[Any]) -> None:
    """Add a piece to a list that is nobody else's; to copy it for each piece would take the square of its length."""
    for part in more:
        last = known[-1] if known else None
        if isinstance(last, dict) and isinstance(part, dict) and _goes_on(last, part):
            joined = dict(last)
            grown_object(joined, part)
            known[-1] = joined
        else:
            known.append(part)


def _goes_on(last: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Return whether a part of a list continues the one before it."""
    if last.get("type") != part.get("type") or last.get("data") or part.get("data"):
        return False
    if last.get("id") and part.get("id") and last["id"] != part["id"]:
        return False
    if "index" in last or "index" in part:
        return last.get("index") == part.get("index")
    return bool(last.keys() & part.keys() & _GROWS or part.get("signature")) and not last.get("signature")


class NoObject(ValueError):
    """Arguments are a JSON value that is not an object."""


@cache
def _behind() -> re.Pattern[str]:
    return re.compile("|".join(data_beside(__file__)["behind"]))


@cache
def _names() -> tuple[re.Pattern[str], re.Pattern[str], str]:
    found = data_beside(__file__)["names"]
    return re.compile(found["before"]), re.compile(found["behind"], re.DOTALL), found["around"]


def named(name: str, is_function: Callable[[str], bool]) -> str:
    """Return the function that a name is meant to be; the name itself where that is none or another."""
    if is_function(name):
        return name
    before, behind, around = _names()
    found = behind.sub("", name.strip(around)).strip(around)
    for candidate in (found, before.sub("", found, count=1)):
        if is_function(candidate):
            return candidate
    return name


def arguments_in(raw: Any) -> dict[str, Any]:
    """Return the arguments of a call; raises NamedTwice, NoObject, and another ValueError for what is no JSON."""
    value = raw if raw is None or isinstance(raw, str) else strict_json(canonical(raw))
    for _ in range(MOST_NESTED + 1):
        if not isinstance(value, str):
            break
        value = _value_of(value)
    if value is None or value == []:
        # Without arguments some write nothing, null, or a list, which is all that their language knows.
        return {}
    if not isinstance(value, dict):
        raise NoObject("the arguments are not an object")
    return value


def whole_arguments(raw: Any) -> str | None:
    """Return the arguments of a call in one form, however they are written; None where they are not whole."""
    try:
        return canonical(arguments_in(raw))
    except (ValueError, TypeError, RecursionError):
        return None


def _value_of(text: str) -> Any:
    """Return the value of a string; texts in it may hold line breaks as they are."""
    text = text.strip()
    if not text:
        return None
    try:
        return strict_json(text, breaks=True)
    except json.JSONDecodeError:
        inner = fenced(_behind().sub("", text))
        if inner == text:
            raise
        return strict_json(inner, breaks=True)
