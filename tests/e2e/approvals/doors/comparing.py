"""Compare what stood on a screen with what a run wants, and with what a tool received."""

import json
import re
from typing import Any

from tests.e2e.approvals.doors.cases import DONE, ISSUED, End
from tests.e2e.approvals.doors.decoding import Shown, name_of, read
from tests.e2e.approvals.doors.world import SECRET

HANDLE = re.compile(r"⟦secret:desk/[^⟧]*⟧")
REFERENCE = re.compile(r"\$\{steps\.(\d+)\.result\.(\w+)\}")
_OF_THE_ENGINE = {"desk.stamp": "client_token"}
"""The argument that the engine fills in, which nobody is shown."""


def compare(shown: list[Shown], received: list[tuple[str, dict[str, Any]]]) -> None:
    """Assert that the tools received what stood on the screens, each call once, and nothing else."""
    waiting = list(shown)
    for tool, arguments in received:
        fits = [each for each in waiting if each.tool == tool and _fits(each, arguments)]
        assert fits, f"{tool} received {arguments}, which was not shown"
        waiting.remove(fits[0])
    assert not waiting, f"approved, and not made: {waiting}"


def made_of(kept: frozenset[int], wanted: dict[int, tuple[str, dict[str, Any]]], end: End) -> set[int]:
    """Return the calls that are made of those that were approved: without what needs the result of another one."""
    made = {index for index in kept if wanted[index][0] != "desk.issue"}
    if end.no_processes:
        made -= {index for index in made if wanted[index][0] == "pinger.ping"}
    while gone := {index for index in made if not _needs(wanted[index][1]) <= made | {0}}:
        made -= gone
    return made


def _needs(arguments: dict[str, Any]) -> set[int]:
    return {int(step) for step, _ in REFERENCE.findall(json.dumps(arguments))}


def _fits(shown: Shown, received: dict[str, Any]) -> bool:
    """Return whether this is what was received, once handles, references and what the engine adds are made good."""
    own = _OF_THE_ENGINE.get(shown.tool)
    received = {name: value for name, value in received.items() if name != own}
    # An argument that refers to an answer is a text on the screen, whatever it brings.
    refers = {name_of(said) for said, lines in shown.arguments.items() if REFERENCE.fullmatch("\n".join(lines))}
    like = {name: "" if name in refers else value for name, value in received.items()}
    try:
        return same(made_good(read(shown, like), SECRET), received)
    except (AssertionError, ValueError):
        return False  # it has another shape


def made_good(value: Any, key: str) -> Any:
    """Return a value with what its references bring; `key` stands where a handle does."""
    match value:
        case str():
            if alone := REFERENCE.fullmatch(value):
                return _result(alone, key)
            return HANDLE.sub(key, REFERENCE.sub(lambda found: _text(_result(found, key)), value))
        case dict():
            return {name: made_good(item, key) for name, item in value.items()}
        case list():
            return [made_good(item, key) for item in value]
        case _:
            return value


def _result(found: re.Match[str], key: str) -> Any:
    return (ISSUED | {"reset_token": key} if found[1] == "0" else DONE)[found[2]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def same(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal, but for how line breaks are written."""
    match first, second:
        case dict(), dict():
            return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)
        case list(), list():
            return len(first) == len(second) and all(map(same, first, second))
        case str(), str():
            return first.replace("\r\n", "\n") == second.replace("\r\n", "\n")
        case (bool(), _) | (_, bool()):
            return first is second
        case int() | float(), int() | float():
            return first == second
        case _:
            return first is second
