"""Compare one value of the arguments with what a condition says."""

import operator
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

from backstay.canonical import canonical
from backstay.policies.origins import is_origin
from backstay.policies.places import is_place, surely
from backstay.policies.spellings import (
    folded,
    folded_name,
    may_be_same,
    may_end,
    may_equal,
    may_hold,
    may_start,
    readings,
)
from backstay.quoting import named
from backstay.redaction.handles import MARK
from backstay.stored_texts import is_stored_text

_DEPTH = 8
_CODED = (
    *(("%25", "%"), ("%25", "%"), ("%2e", "."), ("%2f", "/"), ("%5c", "/"), ("\\", "/")),
    # Too long, or in UTF-16, as some servers still decode it.
    *(("%c0%ae", "."), ("%c0%af", "/"), ("%u002e", "."), ("%uff0e", "."), ("%u002f", "/"), ("%uff0f", "/")),
)
_FILE = "file:"
_LONGEST_SEGMENT = 2000
_IN_NAMES = dict.fromkeys(map(ord, "()"))
"""What the names of variables of Windows may have, as in `%ProgramFiles(x86)%`."""
FROM = "from"
"""Judged by where a value came from, not by the value."""
Comparison = Callable[[Any, Any], bool | None]


def parse_operand(path: str, name: Any, operand: Any) -> Any:
    """Return the operand when the operator is known and the operand fits it; raises ValueError naming the fix."""
    found = OPERATORS.get(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"{path}: unknown operator {named(name)!r}; use one of {', '.join(OPERATORS)}")
    if not found.fits(operand):
        raise ValueError(f"{path}.{name}: {_clip(operand)} does not fit; write {found.operand}")
    return operand


def compare(name: str, value: Any, operand: Any, *, widens: bool) -> bool | None:
    """Compare one value; None says that the operator cannot judge a value of this type."""
    found = OPERATORS[name]
    comparison = found.compare if widens or found.narrowing is None else found.narrowing
    return comparison(value, operand)


def is_number(value: Any) -> bool:
    """Return whether the value is a number that can be compared: no boolean, no NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # noqa: PLR0124 - NaN


def is_masked(value: Any) -> bool:
    """Return whether the value is a secret, or holds one, that is here as a handle."""
    match value:
        case str():
            return MARK in value
        case dict():
            return is_stored_text(value) and bool(value.get("handles"))
        case _:
            return False


def is_opaque(value: Any) -> bool:
    """Return whether the value stands for something that is not visible here."""
    match value:
        case str():
            return MARK in value or "$${" in value or "}" in value.partition("${")[2]
        case dict():
            return is_stored_text(value)
        case _:
            return False


def contains_masked(value: Any) -> bool:
    """Return whether the value, at any depth, is or holds a secret that is here as a handle."""
    return _contains_any(value, is_masked)


def contains_opaque(value: Any) -> bool:
    """Return whether the value, at any depth, stands for something that is not visible here."""
    return _contains_any(value, is_opaque)


def _contains_any(value: Any, wanted: Callable[[Any], bool]) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if wanted(item):
            return True
        match item:
            case dict():
                waiting.extend(item.values())
            case list():
                waiting.extend(item)
            case _:
                pass
    return False


def _may_equal(value: Any, operand: Any) -> bool | None:
    equal = _same(value, operand)
    if equal is not False:
        return equal
    if isinstance(value, str) and isinstance(operand, str) and _is_path(operand):
        if _climbs(value):
            return None
        found = may_equal(value, operand) or may_equal(_without_detours(value), operand)
        return found or _doubtful_place(value, operand, whole=True)
    return _same(value, operand, may_be_same)


def _is_in(value: Any, choices: list[Any]) -> bool | None:
    return _any_of([_same(value, choice) for choice in choices])


def _may_be_in(value: Any, choices: list[Any]) -> bool | None:
    return _any_of([_may_equal(value, choice) for choice in choices])


def _any_of(answers: list[bool | None]) -> bool | None:
    if True in answers:
        return True
    return None if None in answers else False


def _all_of(answers: list[bool | None]) -> bool | None:
    if False in answers:
        return False
    return None if None in answers else True


def _same(value: Any, operand: Any, texts: Comparison = lambda _value, _operand: None) -> bool | None:
    """Compare as JSON does: 1 equals 1.0. Never deeper than the operand; `texts` may say that two texts are the same.

    None for values of two types: "10000" is not 10000, but a tool may read both as the same.
    """
    if operand is None:
        return value is None
    if _kind(value) != _kind(operand):
        return None
    match operand:
        case dict():
            if value.keys() != operand.keys():
                return None if set(map(folded_name, value)) == set(map(folded_name, operand)) else False
            return _all_of([_same(value[key], operand[key], texts) for key in operand])
        case list():
            return len(value) == len(operand) and _all_of(list(map(partial(_same, texts=texts), value, operand)))
        case _:
            return bool(value == operand) or texts(value, operand) is True


def _kind(value: Any) -> str:
    return "number" if is_number(value) else type(value).__name__


def _contains(value: Any, operand: Any) -> bool | None:
    if isinstance(value, list) and is_place("contains", operand):
        # Everyone else in the list is let in, too.
        return bool(value) and all(_same(element, operand) for element in value)
    if isinstance(value, list):
        return any(_same(element, operand) for element in value)
    if isinstance(value, str) and isinstance(operand, str):
        return operand in value and surely("contains", value, operand)
    return None


def _may_contain(value: Any, operand: Any) -> bool | None:
    # A rule against evil.example must also catch it inside a longer element; a rule that allows must not.
    if isinstance(value, list):
        found = _any_of([_may_hold(each, operand) if isinstance(each, str) else _same(each, operand) for each in value])
        # A value that is not text but holds some, or is written as a string or as a number, may stand for what is
        # looked for.
        return found if found or all(_kind(element) == _kind(operand) for element in value) else None
    return _may_hold(value, operand) if isinstance(value, str) else _contains(value, operand)


def _may_hold(value: str, operand: Any) -> bool | None:
    if not isinstance(operand, str):
        return None
    found = may_hold(value, operand) or ("/" in operand and may_hold(_without_detours(value), operand))
    return found or _doubtful_place(value, operand)


def _starts_with(value: Any, operand: str) -> bool | None:
    if not isinstance(value, str):
        return None
    return value.startswith(operand) and not _climbs(value) and surely("starts_with", value, operand)


def _may_start_with(value: Any, operand: str) -> bool | None:
    if not isinstance(value, str):
        return None
    if not _is_path(operand):
        return may_start(value, operand)
    if _climbs(value):
        return None
    found = may_start(value, operand) or may_start(_without_detours(value), operand)
    return found or _doubtful_place(value, operand)


def _doubtful_place(value: str, operand: str, *, whole: bool = False) -> bool | None:
    """Return None if a path may be in a place that an operand names by its whole path, and False else.

    A path from a home or in a variable may be anywhere. Where another relative path begins is unknown; it is in doubt
    if it goes on, or as a `whole` is, as the operand ends.
    """
    place = _place(operand)
    if place is None:
        return False
    paths = _paths(value)
    may_lead = paths is None or any(_may_lead(path, place, whole=whole) for path in paths)
    return None if may_lead else False


@lru_cache(maxsize=4096)
def _place(operand: str) -> tuple[str, ...] | None:
    """Return the segments of an absolute path; None for what is none. A list of choices is asked about every value."""
    return tuple(_straight(folded(operand)).strip("/").split("/")) if _is_absolute(operand) else None


@lru_cache(maxsize=4)
def _paths(value: str) -> frozenset[tuple[str, ...]] | None:
    """Return the segments of a path as readers may take it; None for one from a home or in a variable."""
    known = readings(value)
    if any(map(_begins_elsewhere, known)):
        return None
    return frozenset(tuple(_without_detours(reading.strip()).split("/")) for reading in known)


def _may_lead(path: tuple[str, ...], place: tuple[str, ...], *, whole: bool) -> bool:
    """Return whether a path begins as a place ends, or as a `whole` is the end of that."""
    if whole:
        return path[0] != "" and place[-len(path) :] == path
    # Mostly the last segment of the place is not in the path.
    last = place[-1]
    return (
        last != ""
        and last in path
        and any(sign == last and place[-at:] == path[:at] for at, sign in enumerate(path[: len(place)], 1))
    )


def _is_path(operand: str) -> bool:
    return "/" in operand or "\\" in operand


def _is_absolute(path: str) -> bool:
    return path.startswith(("/", "\\")) or (path[:1].isalpha() and path[1:3] in (":/", ":\\"))


def _begins_elsewhere(path: str) -> bool:
    """Return whether a path begins at the home of a user or in a variable."""
    rest = path.strip()[:_LONGEST_SEGMENT].replace("\\", "/")
    if rest[:1] == "~":
        return _is_word(rest[1:].partition("/")[0].rstrip())
    found = False
    while end := _end_of_variable(rest):
        found, rest = True, rest[end:]
    return found and _is_word(rest.partition("/")[0].rstrip())


def _end_of_variable(text: str) -> int:
    """Return where the variable ends that a string begins with, as `%name%`, `$name`, `${name}`; 0 for none."""
    opening = text[:2] if text[1:2] in ("{", "(") else text[:1]
    closing = {"%": "%", "${": "}", "$(": ")"}.get(opening)
    if closing is not None:
        end = text.find(closing, len(opening))
        name = text[len(opening) : max(end, 0)].removeprefix("env:")
        return end + 1 if name and _is_word(name.translate(_IN_NAMES)) else 0
    start = 5 if text.startswith("$env:") else 1
    if opening != "$" or text[start : start + 1].isdecimal():
        return 0
    name = next((text[start:at] for at in range(start, len(text)) if not _is_in_name(text[at])), text[start:])
    return start + len(name) if name else 0


def _is_in_name(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _is_word(text: str) -> bool:
    return all(sign.isalnum() or sign in "._-" for sign in text)


def _without_detours(value: str) -> str:
    """Return the path that a string names: a forbidden place is also reached by `//etc`, `/./etc` or `file:///etc`."""
    path = value.strip()
    path = path[len(_FILE) :].replace("//localhost/", "//", 1) if path[: len(_FILE)].lower() == _FILE else value
    return _straight(path)


def _climbs(value: str) -> bool:
    """Return whether a part of a string may be read as `..`, also one that a query or a fragment ends."""
    if value.isascii() and not any(sign in value for sign in ".%&"):
        return False
    return any(_is_upwards(part) for reading in readings(value) for part in _segments(reading))


def _is_upwards(segment: str) -> bool:
    for sign in ";?#":
        segment = segment.partition(sign)[0]
    return segment.strip() == ".."


def _straight(value: str) -> str:
    lead = "/" if value.startswith(("/", "\\")) else ""
    return lead + "/".join(segment for segment in _segments(value) if segment not in ("", "."))


def _segments(value: str) -> list[str]:
    plain = value.lower() if "%" in value else value
    for coded, sign in _CODED:
        plain = plain.replace(coded, sign)
    return plain.split("/")


def _ends_with(value: Any, operand: str) -> bool | None:
    return value.endswith(operand) and surely("ends_with", value, operand) if isinstance(value, str) else None


def _may_end_with(value: Any, operand: str) -> bool | None:
    if not isinstance(value, str):
        return None
    return may_end(value, operand) or _doubtful_place(value, operand, whole=True)


def _has_at_most(value: Any, operand: int) -> bool | None:
    return len(value) <= operand if isinstance(value, list | dict) else None


def _is_written_in(value: Any, operand: int) -> bool | None:
    try:
        text = value if isinstance(value, str) else canonical(value)
    except (ValueError, TypeError, RecursionError):
        return None
    return len(text.encode("utf-8", "surrogatepass")) <= operand


def _ordered(holds: Callable[[Any, Any], bool]) -> Comparison:
    return lambda value, operand: holds(value, operand) if is_number(value) else None


def _clip(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _is_bound(operand: Any) -> bool:
    return is_number(operand) and abs(operand) != float("inf")


def _is_count(operand: Any) -> bool:
    return isinstance(operand, int) and not isinstance(operand, bool) and operand >= 0


def _is_text(operand: Any) -> bool:
    return isinstance(operand, str) and 0 < len(operand) <= 2000


def _is_scalar(operand: Any) -> bool:
    return isinstance(operand, bool) or _is_bound(operand) or _is_text(operand)


def _is_json(operand: Any, depth: int = _DEPTH) -> bool:
    if not isinstance(operand, dict | list):
        return operand is None or operand == "" or _is_scalar(operand)
    inside: list[Any] = [*operand.values()] if isinstance(operand, dict) else operand
    return (
        depth > 0
        and len(inside) <= 1000
        and (operand is inside or all(isinstance(key, str) for key in operand))
        and all(_is_json(value, depth - 1) for value in inside)
    )


def _is_choice(operand: Any) -> bool:
    return isinstance(operand, list) and bool(operand) and _is_json(operand)


class _Operator(NamedTuple):
    """The operators of conditions: the operand that each takes, and how it compares a value with that."""

    operand: str
    fits: Callable[[Any], bool]
    compare: Comparison
    narrowing: Comparison | None = None
    """Compares more cautiously where the condition narrows what may happen."""


OPERATORS = {
    "equals": _Operator("a JSON value", _is_json, _same, _may_equal),
    "in": _Operator("a list of at least one and at most 1000 JSON values", _is_choice, _is_in, _may_be_in),
    "starts_with": _Operator("a string that is not empty", _is_text, _starts_with, _may_start_with),
    "ends_with": _Operator("a string that is not empty", _is_text, _ends_with, _may_end_with),
    "contains": _Operator("a string that is not empty, a number or a boolean", _is_scalar, _contains, _may_contain),
    "lt": _Operator("a number", _is_bound, _ordered(operator.lt)),
    "lte": _Operator("a number", _is_bound, _ordered(operator.le)),
    "gt": _Operator("a number", _is_bound, _ordered(operator.gt)),
    "gte": _Operator("a number", _is_bound, _ordered(operator.ge)),
    "max_items": _Operator("a whole number of at least 0", _is_count, _has_at_most),
    "max_bytes": _Operator("a whole number of at least 0", _is_count, _is_written_in),
    FROM: _Operator(
        'a list of task, person, operator, program, model and patterns of tools such as "crm.*"',
        is_origin,
        lambda _value, _operand: None,
    ),
}
