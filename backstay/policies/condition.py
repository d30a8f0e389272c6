"""Judge the arguments of a call against the conditions of a rule; in doubt, towards caution.

A condition either *widens* what may happen unasked (`when` of an allow rule, `unless` of a deny or ask rule) or
*narrows* it (`when` of a deny or ask rule, `unless` of an allow rule). A widening condition must hold beyond doubt and
for every element of a list; a narrowing one holds for any element, and counts as holding when it cannot be evaluated.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from backstay.canonical import pointer_to
from backstay.policies.companions import companions
from backstay.policies.operators import (
    FROM,
    compare,
    contains_masked,
    contains_opaque,
    is_masked,
    is_opaque,
    parse_operand,
)
from backstay.policies.origins import comes_from
from backstay.policies.places import is_place, stays_at_label
from backstay.policies.spellings import folded_name, may_be_name
from backstay.provenance.source import ArgumentSources
from backstay.quoting import quoted

Conditions = dict[str, dict[str, Any]]
"""Operators and their operands by dotted argument path."""

_MISSING = object()
_MOST_ELEMENTS = 5_000
"""Of a longer list, each spelling of each element would take a workflow seconds."""
_TEXTUAL = ("equals", "in", "starts_with", "ends_with", "contains")


class Judgement(IntEnum):
    """The outcome of conditions; where all must hold, the lowest decides."""

    FAILS = 0
    MASKED = 1
    """The value is a secret, or holds one; nobody who decides can look into it, so the stricter way is taken."""
    OPAQUE = 2
    """The value is a stored reference or a reference to a later result."""
    DOUBTFUL = 3
    """The argument is missing or of another type, and out of caution the condition counts as holding."""
    HOLDS = 4

    @property
    def is_open(self) -> bool:
        """Return whether the value cannot be looked into."""
        return self in (Judgement.MASKED, Judgement.OPAQUE)


class OpaqueValues(NamedTuple):
    """Tell which values cannot be looked into."""

    is_one: Callable[[Any], bool]
    is_within: Callable[[Any], bool]


UNSEEN = OpaqueValues(is_opaque, contains_opaque)
SECRETS = OpaqueValues(is_masked, contains_masked)


def parse_conditions(data: Any) -> Conditions:
    """Return checked conditions; raises ValueError naming path, operator and fix."""
    if not isinstance(data, dict) or not data:
        raise ValueError("conditions must be a mapping such as {amount: {gt: 10000}}; write one or remove the key")
    if len(data) > 50:
        raise ValueError(f"{len(data)} argument paths; write at most 50")
    return {_parse_path(path): _parse_operators(path, operators) for path, operators in data.items()}


def judge(
    conditions: Conditions,
    arguments: dict[str, Any],
    *,
    widens: bool,
    sources: ArgumentSources | None = None,
    whole: bool = False,
) -> tuple[Judgement, str]:
    """Return whether all conditions hold, and name the path of an argument that cannot be looked into.

    A condition that permits a recipient by an address must hold for each other recipient of the call as well.
    `sources` says where the arguments came from; without it, a condition on that is in doubt. In `whole` arguments
    nothing stands for anything else but secrets.
    """
    hidden = SECRETS if whole else UNSEEN
    outcome, opaque_path = Judgement.HOLDS, ""
    every = [(path, _reach("", arguments, path, hidden), operators) for path, operators in conditions.items()]
    if widens:
        every += [
            (other.path, _reach(other.pointer, other.value, other.rest, hidden), conditions[other.condition])
            for other in companions(conditions, arguments)
        ]
    for path, reached, operators in every:
        for operator, operand in operators.items():
            if operator == FROM:
                judged = [_judge_origin(pointer, value, operand, sources, widens=widens) for pointer, value in reached]
            elif widens and operator == "starts_with" and not _stays_at_label(path, reached, operand):
                judged = [Judgement.FAILS]
            else:
                judged = [_judge_value(operator, value, operand, hidden, widens=widens) for _, value in reached]
            found = _fold(judged, widens=widens)
            if found.is_open and (not opaque_path or found < outcome):
                opaque_path = path
            outcome = min(outcome, found)
    return outcome, opaque_path if outcome.is_open else ""


def _parse_path(path: Any) -> str:
    if not isinstance(path, str) or not path.isascii() or not path.isprintable() or not all(path.split(".")):
        raise ValueError(f"argument path {quoted(path)}; write dotted keys such as recipient.email")
    if len(path) > 200:
        raise ValueError(f"argument path of {len(path)} characters; write at most 200")
    return path


def _parse_operators(path: str, operators: Any) -> dict[str, Any]:
    if not isinstance(operators, dict) or not operators:
        raise ValueError(f"{path}: {quoted(operators)} is not a condition; write one such as {{equals: ...}}")
    return {operator: parse_operand(path, operator, operand) for operator, operand in operators.items()}


def _reach(start: str, value: Any, path: str, hidden: OpaqueValues) -> list[tuple[str, Any]]:
    """Return every value the path leads to with its JSON pointer; a list on the way is entered element by element.

    The path leads on from a value at the pointer `start`; an empty one leads to the value itself.
    """
    reached: list[tuple[str, Any]] = [(start, value)]
    for key in path.split(".") if path else ():
        reached = [found for pointer, item in reached for found in _enter(pointer, item, key, hidden)]
    return reached


def _enter(pointer: str, item: Any, key: str, hidden: OpaqueValues) -> Iterable[tuple[str, Any]]:
    if hidden.is_one(item):
        return ((pointer, item),)
    below = pointer_to(pointer, key)
    match item:
        case dict():
            return ((below, _member(item, key)),)
        case list() if key.isdecimal():
            # More digits than any list has elements: int() refuses thousands of them.
            return ((below, item[int(key)] if len(key) < 10 and int(key) < len(item) else _MISSING),)
        case list():
            return [_in_element(f"{pointer}/{index}", element, key, hidden) for index, element in enumerate(item)]
        case _:
            return ((below, _MISSING),)


def _in_element(pointer: str, element: Any, key: str, hidden: OpaqueValues) -> tuple[str, Any]:
    if isinstance(element, dict):
        return pointer_to(pointer, key), _member(element, key)
    return pointer, element if hidden.is_one(element) else _MISSING


def _member(item: dict[str, Any], key: str) -> Any:
    """Return the value of a name; nothing if another spelling of the name is there too, which a tool may read."""
    wanted = folded_name(key)
    again = any(other != key and may_be_name(other, wanted) for other in item)
    return _MISSING if again else item.get(key, _MISSING)


def _stays_at_label(path: str, reached: list[tuple[str, Any]], operand: str) -> bool:
    values = [each for _, value in reached for each in (value if isinstance(value, list) else [value])]
    return all(stays_at_label(path, each, operand) for each in values if isinstance(each, str) and not is_opaque(each))


def _judge_origin(
    pointer: str, value: Any, operand: list[str], sources: ArgumentSources | None, *, widens: bool
) -> Judgement:
    """Judge where a value came from: all of it must come from there to widen, a part of it is enough to narrow."""
    told = None if sources is None or value is _MISSING else sources.under(pointer)
    if told is None:
        return _doubt(widens=widens)
    answers = (comes_from(codes, operand, all_of=widens) for parts in told for codes in parts)
    holds = all(answers) if widens else any(answers)
    return Judgement.HOLDS if holds else Judgement.FAILS


def _judge_value(operator: str, value: Any, operand: Any, hidden: OpaqueValues, *, widens: bool) -> Judgement:
    """Judge one value; a list is judged element by element where the operator compares single values."""
    if value is _MISSING:
        return _doubt(widens=widens)
    if hidden.is_one(value):
        return _hidden(value)
    if isinstance(value, list) and not widens and len(value) > _MOST_ELEMENTS and operator in _TEXTUAL:
        return Judgement.DOUBTFUL
    if isinstance(value, list) and _by_element(operator, operand):
        elements = (_hidden(e) if hidden.is_within(e) else _plain(operator, e, operand, widens=widens) for e in value)
        return _fold(elements, widens=widens)
    # The number of elements is known even when an element is not.
    if operator != "max_items" and hidden.is_within(value):
        seen = [element for element in value if not hidden.is_within(element)] if isinstance(value, list) else []
        # Of recipients, the one that is hidden counts, too.
        counts = operator == "contains" and not (widens and is_place(operator, operand))
        certain = counts and compare(operator, seen, operand, widens=widens)
        return Judgement.HOLDS if certain else _hidden(value)
    return _plain(operator, value, operand, widens=widens)


def _hidden(value: Any) -> Judgement:
    return Judgement.MASKED if contains_masked(value) else Judgement.OPAQUE


def _plain(operator: str, value: Any, operand: Any, *, widens: bool) -> Judgement:
    holds = compare(operator, value, operand, widens=widens)
    if holds is None:
        return _doubt(widens=widens)
    return Judgement.HOLDS if holds else Judgement.FAILS


def _by_element(operator: str, operand: Any) -> bool:
    if operator in ("equals", "in"):
        choices = operand if operator == "in" else [operand]
        return not any(isinstance(choice, list) for choice in choices)
    return operator in ("starts_with", "ends_with")


def _doubt(*, widens: bool) -> Judgement:
    return Judgement.FAILS if widens else Judgement.DOUBTFUL


def _fold(outcomes: Iterable[Judgement], *, widens: bool) -> Judgement:
    """Join the outcomes of several values: all must hold to widen, one is enough to narrow."""
    found = set(outcomes)
    joined = (min if widens else max)(found, default=Judgement.FAILS)
    return Judgement.MASKED if joined is Judgement.OPAQUE and Judgement.MASKED in found else joined
