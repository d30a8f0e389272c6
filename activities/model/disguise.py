"""Read calls that a model writes down as text: as the JSON that it was asked for, or in the notation of its template.

Nothing here decides that a call is made. A call is read only where it is the whole of what the model says, its thoughts
and a fence apart; a call amid other words is found, so that the model can be told.
"""

import ast
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from backstay.data_files import data_beside

MOST_READ = 262_144
"""Characters of a string in which calls are looked for."""
MOST_BEGINNINGS = 40
"""At this many places an object is looked for amid words."""
MOST_CALLS = 65
MOST_NESTED = 2
"""At most this many marks are around a call that is read."""
_ASKED_FOR = re.compile(r"""(?:```\w*+\s*+)?\{.*?["']calls["']\s*+:""", re.DOTALL)
_BETWEEN = re.compile(r"[\s,;]*+")
_TAGGED = re.compile(r"<([\w.-]{1,64})>(.*?)</\1>", re.DOTALL)
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[^`\n]*\n", re.MULTILINE)
Call = dict[str, Any]
Parameters = Callable[[str], Mapping[str, Any] | None]
"""Returns the schema of a function's arguments; None for a name that is not a function."""


@dataclass(frozen=True)
class WrittenCalls:
    """Hold the calls that a string holds."""

    calls: tuple[Call, ...]
    """In the native shape, without ids."""
    whole: bool
    """Whether the text holds nothing else."""


_loads = partial(json.loads, strict=False)
"""Reads JSON whose texts may hold line breaks as they are."""


@cache
def _patterns(name: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(pattern, re.DOTALL) for pattern in data_beside(__file__)[name])


def without_thoughts(text: str) -> str:
    """Return what a model says behind its thoughts, where these are in its words."""
    return _behind_thoughts(text)[0]


def _behind_thoughts(text: str) -> tuple[str, bool]:
    """Return that, and whether all that is left out was marked as thoughts from its beginning on."""
    found, marked = text.strip(), True
    for _ in range(MOST_BEGINNINGS):
        cut = next((match for pattern in _patterns("thoughts") if (match := pattern.match(found)) is not None), None)
        if cut is None and (cut := next((m for each in _patterns("unopened") if (m := each.match(found))), None)):
            marked = False
        if cut is None:
            break
        found = found[cut.end() :].strip()
    return found, marked


def fenced(text: str) -> str:
    """Return what is in the fence around a string, else the text."""
    match = next((found for pattern in _patterns("fences") if (found := pattern.fullmatch(text)) is not None), None)
    return text if match is None else match[1].strip()


def without_fence(source: str) -> str:
    """Return a program without the fence around it and the words around that, which many models write."""
    opened = _FENCE.search(source)
    if opened is None or any(quotes in source[: opened.start()] for quotes in ('"""', "'''")):
        # Inside a string of many lines, a fence is the program's own.
        return source
    lines = source[opened.end() :].split("\n")
    end = max((place for place, line in enumerate(lines) if line.strip() == opened[1]), default=0)
    return "\n".join(lines[:end]) if end else source


def calls_asked_for(text: str, parameters: Parameters) -> WrittenCalls | None:
    """Return the calls of an answer to a request for JSON; None when it holds none.

    Amid words only what was asked for is one, an object with `calls`.
    """
    said, marked = _behind_thoughts(text)
    inner = fenced(said)
    try:
        calls = _calls_of(_loads(inner), parameters)
    except (ValueError, RecursionError):
        calls = None
    if calls is not None:
        return WrittenCalls(calls, whole=marked)
    found = [
        calls
        for value in _objects(inner)
        if isinstance(value, dict) and "calls" in value and (calls := _calls_of(value, parameters)) is not None
    ]
    # Of several nobody knows which is meant.
    return WrittenCalls(found[0], whole=False) if len(found) == 1 else None


def begins_as_calls(text: str) -> bool:
    """Return whether a string begins as an answer to a request for JSON that holds calls, however it goes on."""
    return _ASKED_FOR.match(without_thoughts(text)) is not None


def _objects(text: str) -> Iterable[Any]:
    """Yield the JSON objects that stand amid words."""
    decoder, place = json.JSONDecoder(strict=False), 0
    if len(text) > MOST_READ:
        return
    for _ in range(MOST_BEGINNINGS):
        place = text.find("{", place)
        if place < 0:
            return
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            place += 1
            continue
        yield value
        place = end


def _calls_of(value: Any, parameters: Parameters | None) -> tuple[Call, ...] | None:
    """Return the calls that a JSON value is: those of a list under `calls`, a list of them, or a single one.

    Outside `calls` a value with a name may be anybody's: it is a call where it names one of the functions. Without
    `parameters` the marks around the value say what it is.
    """
    match value:
        case {"calls": list() | dict() as given} | {"tool_calls": list() | dict() as given}:
            listed: list[Any] = given if isinstance(given, list) else [given]
            return tuple(map(_call, listed))
        case list() if value:
            calls = [_call_alone(item, parameters) for item in value]
        case dict():
            calls = [_call_alone(value, parameters)]
        case _:
            return None
    return None if None in calls else tuple(call for call in calls if call is not None)


_KEYS = (
    frozenset({"name", "tool_name", "function", "tool"}),
    frozenset({"arguments", "parameters", "args", "input"}),
    frozenset({"id", "type", "tool_call_id"}),
)


def _call_alone(value: Any, parameters: Parameters | None) -> Call | None:
    """Return the call that a value is by itself; None where something else is in it."""
    call = _call(value)
    if not call["function"]["name"] or (parameters is not None and not _names(call, parameters)):
        return None
    about = value["function"] if isinstance(value.get("function"), dict) else value
    names, given, beside = (about.keys() & keys for keys in _KEYS)
    alone = len(names) == 1 and len(given) <= 1 and len(about) == len(names) + len(given) + len(beside)
    inside = {} if about is value else value.keys() - {"function"} - _KEYS[2]
    return call if alone and not inside and not _is_schema(call["function"]["arguments"]) else None


def _is_schema(arguments: Any) -> bool:
    """Return whether what is in place of arguments defines them."""
    return isinstance(arguments, dict) and arguments.get("type") == "object" and "properties" in arguments


def _call(value: Any) -> Call:
    """Return a call in the native shape, in whichever of the usual ones it is written; without a name where in none."""
    if not isinstance(value, dict):
        return _made("", None)
    about = value["function"] if isinstance(value.get("function"), dict) else value
    name = next((about[key] for key in ("name", "tool_name", "function", "tool") if key in about), None)
    given = next((about[key] for key in ("arguments", "parameters", "args", "input") if key in about), None)
    is_other = "name" not in about and (not isinstance(name, str) or given is None)
    if is_other or (about is value and given is None and len(value) > 1 and value.keys() - {"name"} - _KEYS[2]):
        return _made("", None)
    return _made(name, given)


def _made(name: Any, arguments: Any) -> Call:
    if isinstance(name, str):
        name = name.strip().removeprefix("functions.").removeprefix("default_api.").removeprefix("tools.")
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def calls_written_down(text: str, parameters: Parameters) -> WrittenCalls | None:
    """Return the calls that a model wrote in place of making them; None when its text is none.

    JSON and lines of Python are calls only where they are the whole text and name a function; the marks of a template
    are, wherever a string begins or ends with them.
    """
    try:
        return _written_down(text, parameters)
    except (RecursionError, MemoryError):
        # Nobody writes a call so deep.
        return None


def _written_down(text: str, parameters: Parameters) -> WrittenCalls | None:
    said, marked_thoughts = _behind_thoughts(text)
    if not said or len(said) > MOST_READ:
        return None
    inner = fenced(said)
    bare = _bare(inner, parameters)
    if bare is not None:
        return WrittenCalls(bare, whole=marked_thoughts)
    if (several := _several(inner, parameters)) is not None:
        return WrittenCalls(several.calls, whole=several.whole and marked_thoughts)
    if all(mark not in inner for mark in _marks()):
        return None
    marked = _marked(_unwrapped(inner), parameters)
    if marked.calls and marked.whole:
        return WrittenCalls(marked.calls, whole=marked_thoughts)
    begins, ends = (any(pattern.search(inner) for pattern in _patterns(side)) for side in ("begins", "ends"))
    return WrittenCalls(marked.calls, whole=False) if begins or ends else None


@cache
def _marks() -> tuple[str, ...]:
    """Return what a string must hold to hold a call in the notation of a template."""
    return tuple(data_beside(__file__)["marks"])


def _bare(text: str, parameters: Parameters) -> tuple[Call, ...] | None:
    """Return the calls that a string is as JSON or as Python, where each names a function."""
    if text[:1] in {"{", "["}:
        try:
            calls = _calls_of(_loads(text), parameters)
        except (ValueError, RecursionError):
            calls = None
        named = [call for call in calls or () if call["function"]["name"]]
        if calls and named and all(_names(call, parameters) for call in named[:MOST_CALLS]):
            return calls
    if text.endswith(">"):
        return _named_by_tags(text, parameters)
    return _python(text, parameters) if text.endswith((")", ")]")) and len(text) <= 20_000 else None


def _several(text: str, parameters: Parameters) -> WrittenCalls | None:
    """Return the calls of a string of several JSON values, each of which is calls that name functions.

    What is there twice, or is a whole answer, is not taken: nobody knows whether all of it is meant.
    """
    calls: list[Call] = []
    whole, known = True, set[str]()
    for value in _values(text):
        found = _calls_of(value, parameters)
        if not found or not all(_names(call, parameters) for call in found):
            return None
        is_answer = isinstance(value, dict) and bool(value.keys() & {"calls", "tool_calls"})
        for meant in map(_meant, found):
            whole = whole and not is_answer and meant not in known
            known.add(meant)
        calls += found
        if len(calls) > MOST_CALLS:
            break
    return WrittenCalls(tuple(calls), whole) if calls else None


def _meant(call: Call) -> str:
    """Return a call in one form, however its arguments are written."""
    given = call["function"]["arguments"]
    if isinstance(given, str):
        with contextlib.suppress(ValueError):
            given = json.loads(given)
    return json.dumps([call["function"]["name"], given or {}], sort_keys=True)


def _values(text: str) -> Iterable[Any]:
    """Yield the JSON values that a string consists of, which spaces or marks part, and None for what is no JSON."""
    decoder, place = json.JSONDecoder(strict=False), 0
    while place < len(text):
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            value, place = None, len(text)
        yield value
        place = next(
            (at for at in range(place, len(text)) if text[at] not in ",;" and not text[at].isspace()), len(text)
        )


def _named_by_tags(text: str, parameters: Parameters) -> tuple[Call, ...] | None:
    """Return the call of a string such as `<look><page>1</page></look>`, with a function and its arguments for tags."""
    whole = _TAGGED.fullmatch(text)
    schema = None if whole is None else parameters(whole[1])
    if whole is None or schema is None:
        return None
    given, body, found = schema.get("properties"), whole[2].strip(), dict[str, Any]()
    properties: Mapping[str, Any] = given if isinstance(given, dict) else {}
    while body:
        match = _TAGGED.match(body)
        if match is None or match[1] not in properties or match[1] in found:
            return None
        found[match[1]] = _value(match[2], properties[match[1]], None)
        body = body[match.end() :].strip()
    return (_made(whole[1], found),)


def _names(call: Call, parameters: Parameters) -> bool:
    name = call["function"]["name"]
    return isinstance(name, str) and parameters(name) is not None


def _python(text: str, parameters: Parameters) -> tuple[Call, ...] | None:
    """Return the calls of a string such as `look(page=1)`, on its own or in a list."""
    if text.startswith("print("):
        text = text.removeprefix("print(").removesuffix(")")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        return None
    nodes = tree.body.elts if isinstance(tree.body, ast.List) else [tree.body]
    found: list[Call] = []
    for node in nodes:
        if not isinstance(node, ast.Call) or node.args or any(given.arg is None for given in node.keywords):
            return None
        call = _made(ast.unparse(node.func), None)
        try:
            call["function"]["arguments"] = {str(given.arg): ast.literal_eval(given.value) for given in node.keywords}
            json.dumps(call, allow_nan=False)
        except (ValueError, TypeError):
            return None
        if not _names(call, parameters):
            return None
        found.append(call)
    return tuple(found) or None


@cache
def _wrappers() -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{'|'.join(data_beside(__file__)['wrappers'])})\s*+)++", re.DOTALL)


def _unwrapped(text: str) -> str:
    """Return a string without the marks around all of its calls; amid it they may belong to an argument."""
    if (first := _wrappers().match(text)) is not None:
        text = text[first.end() :]
    runs = [*_wrappers().finditer(text)]
    return text[: runs[-1].start()].strip() if runs and runs[-1].end() == len(text) else text


def _marked(text: str, parameters: Parameters, depth: int = 0) -> WrittenCalls:
    """Return the calls of a string that consists of them, and whether nothing else is in it."""
    calls: list[Call] = []
    place, whole = 0, True
    while place < len(text) and len(calls) <= MOST_CALLS:
        if text[place].isspace() or text[place] in ",;":
            place += 1
            continue
        if (wrapper := _wrappers().match(text, place)) is not None:
            place = wrapper.end()
            continue
        match = next((m for form in _patterns("calls") if (m := form.match(text, place)) is not None), None)
        read = None if match is None else _read(match.groupdict(), parameters, depth)
        if match is None or not read:
            whole = False
            break
        calls += read
        place = match.end()
    return WrittenCalls(tuple(calls), whole and bool(calls))


def _read(parts: Mapping[str, str | None], parameters: Parameters, depth: int) -> list[Call]:
    """Return the calls that one piece of a string is."""
    name, body = parts.get("name"), (parts.get("body") or "").strip()
    if name is None:
        inner = _marked(body, parameters, depth + 1) if body.startswith("<") and depth < MOST_NESTED else None
        if inner is not None and inner.whole:
            return list(inner.calls)
        try:
            return list(_calls_of(_loads(body), None) or ())
        except (ValueError, RecursionError):
            return _named_first(body, parameters)
    made = _made(name, None)
    name = str(made["function"]["name"])
    if body.startswith("{") or not body:
        made["function"]["arguments"] = body
        return [made]
    made["function"]["arguments"] = _arguments(body, parameters(name) or {})
    return [made] if made["function"]["arguments"] is not None else []


def _named_first(body: str, parameters: Parameters) -> list[Call]:
    """Return the call whose name is on the first line, before its arguments."""
    name, _, rest = body.partition("\n" if "\n" in body else "<")
    rest = rest if "\n" in body else f"<{rest}"
    arguments = _arguments(rest, parameters(name.strip()) or {}) if re.fullmatch(r"[\w.:-]+", name.strip()) else None
    return [] if arguments is None else [_made(name, arguments)]


def _arguments(body: str, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments that stand each between marks of its own; None when something else is there."""
    given = schema.get("properties")
    properties: Mapping[str, Any] = given if isinstance(given, dict) else {}
    found: dict[str, Any] = {}
    place = 0
    while place < len(body):
        match = next((m for form in _patterns("arguments") if (m := form.match(body, place)) is not None), None)
        if match is None:
            return None
        kind = match.groupdict().get("kind")
        found[match["key"].strip()] = _value(match["value"], properties.get(match["key"].strip()), kind)
        place = match.end()
        while place < len(body) and body[place].isspace():
            place += 1
    return found


_TEXT: tuple[Literal["string"], None] = ("string", None)


def _value(text: str, schema: Any, kind: str | None) -> Any:
    """Return a value as its schema takes it: a string stays one, unless the schema wants something else."""
    wanted = schema.get("type") if isinstance(schema, dict) else None
    inner = text.removeprefix("\n")
    inner = inner.removesuffix("\n")
    if kind == "true" or (wanted in _TEXT and kind != "false"):
        return inner
    try:
        return json.loads(inner)
    except (ValueError, RecursionError):
        return inner
