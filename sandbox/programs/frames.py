"""What passes between a program and its host: calls and rounds, read from the frames that a jail sends.

Anything in the jail may have written them, so everything is checked.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from backstay.shown import message_line
from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed, depth_reached, memory_reached, protocol_broken

RESULT = "engine.result"
"""The call that stands for reading an earlier stored result."""
READY = b'{"ready": 1}'
MOST_DEPTH = 100
MOST_DIGITS = 300
# With fewer digits and an exponent of at most two, a number is finite. Looking behind keeps the search linear.
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{200}|[eE]\+?[0-9]{3}")
_WORDS = 1000
_FORMS = ({}, {"whole": True})
"""What a call may say besides: that the program wants to know how it ended."""


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """Name a tool and its arguments; `i` counts the program's calls from 0 in the order it made them."""

    i: int
    tool: str
    arguments: dict[str, Any]
    whole: bool = False
    """Whether the program wants to know how the call ended, and not only the answer."""


@dataclass(frozen=True, slots=True)
class Round:
    """Hold one entry of a journal; feeding the same bytes to the same image brings the program to the same place."""

    sent: bytes
    """The frame that was sent, without its length; empty in the first round, where it is the start frame."""
    came: bytes
    """The frame that came back, without its length; empty when the program died instead of answering."""
    cpu_s: float
    wall_s: float
    """How long the program computed; time spent paused does not count."""


def names_of(tools: Iterable[str]) -> dict[str, str]:
    """Return the tool that each name stands for in a program: `mail.search`, `mail__search`, and `search` alone."""
    every = sorted(tools)
    bare = Counter(tool.partition(".")[2] for tool in every)
    alone = {tool.partition(".")[2]: tool for tool in every if bare[tool.partition(".")[2]] == 1}
    return alone | {tool.replace(".", "__", 1): tool for tool in every} | {tool: tool for tool in every}


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """Hold what a program ended with: a result, or an error."""

    result: Any = None
    error: dict[str, str] | None = None


def read_frame(
    frame: bytes, *, tools: AbstractSet[str], first_call: int, limits: Limits
) -> tuple[ProgramCall, ...] | ProgramEnd:
    """Return the calls that a frame asks for, or what it ends with.

    Raises ProgramCrashed when it is not what an honest runner sends.
    """
    try:
        value = strict_json(frame)
    except ValueError as error:
        raise protocol_broken(str(error)) from None
    match value:
        case {"calls": list(calls), **rest} if not rest:
            if len(calls) > limits.calls_per_batch:
                most = f"at most {limits.calls_per_batch}; gather fewer at a time"
                raise ProgramCrashed("CallLimit", f"calls per batch: {len(calls)} calls at once, {most}")
            if not calls:
                raise protocol_broken("it asks for no call at all")
            return tuple(_call(call, first_call + place, tools) for place, call in enumerate(calls))
        case {"done": {"ok": result, **more}, **rest} if not rest and not more:
            return ProgramEnd(result=result)
        case {"done": {"error": dict(error), **more}, **rest} if not rest and not more:
            return ProgramEnd(error=_error(error, limits))
        case _:
            raise protocol_broken("it holds neither calls nor an end")


def strict_json(data: bytes) -> Any:
    """Parse JSON that every other reader understands in the same way and that costs them little.

    Raises ProgramCrashed for what an honest program may try to pass on, very long whole numbers and deep nesting, and
    ValueError for anything else: NaN, infinite numbers, lone surrogates.
    """
    hooks: dict[str, Any] = {"parse_int": _whole, "parse_float": _finite} if _LONG_NUMBER.search(data) else {}
    try:
        value = json.loads(str(data, "utf-8"), parse_constant=_no_constant, **hooks)
    except RecursionError:
        raise depth_reached(MOST_DEPTH) from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos}") from None
    if data.count(b"[") + data.count(b"{") > MOST_DEPTH and _is_deep(value):
        raise depth_reached(MOST_DEPTH)
    if b"\\u" in data:
        _refuse_surrogates(value)
    return value


def _call(call: Any, number: int, tools: AbstractSet[str]) -> ProgramCall:
    match call:
        case {"i": i, "tool": str(tool), "args": dict(arguments), **rest} if rest in _FORMS and type(i) is int:
            pass
        case _:
            raise protocol_broken("a call must have i, tool and args and nothing else")
    if i != number:
        raise protocol_broken(f"call {i} stands where call {number} must stand")
    if tool == RESULT:
        if set(arguments) != {"ref"} or not isinstance(arguments["ref"], str):
            raise protocol_broken("a result is read by its ref, a string")
    elif tool not in tools:
        raise ProgramCrashed("ToolNotFound", f"tools: {message_line(tool, 80)!r} is not one of the program's tools")
    return ProgramCall(i, tool, arguments, whole=bool(rest))


def _error(error: dict[str, Any], limits: Limits) -> dict[str, str]:
    match error:
        case {"type": str(kind), "message": str(message), "line": int() | None as line, **rest} if not rest:
            pass
        case _:
            raise protocol_broken("an error must have type, message and line and nothing else")
    where = "" if line is None else f" (line {line})"
    if kind == "MemoryError":
        reached = memory_reached(limits)
        return {"type": reached.kind, "message": reached.message + where}
    return {"type": message_line(kind, 100) or "Exception", "message": message_line(message, _WORDS) + where}


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        many = f"a whole number of {len(digits)} digits, at most {MOST_DIGITS}; pass it as text"
        raise ProgramCrashed("NumberLimit", f"number: it passed or returned {many}")
    return int(digits)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _is_deep(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def _refuse_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds lone surrogates, which are not text") from None
