"""Decide whether a stranger's regular expression can be run on a text without hanging the worker."""

import re
from functools import lru_cache
from typing import Any

_STEPS = 10**7


def matches(pattern: str, text: str) -> bool | None:
    """Return whether the pattern is found in the text; None when trying could take too long or it is no pattern."""
    variable = _variable_repeats(pattern)
    if variable is None or max(len(text), 1) ** (variable + 1) > _STEPS:
        return None
    try:
        return re.search(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return None


@lru_cache(maxsize=1024)
def _variable_repeats(pattern: str) -> int | None:
    """Count the repeats whose length is open; None when one holds another choice, which can take for ever."""
    if len(pattern) > 1000:
        return None
    try:
        return _count(_parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError, _Nested):
        return None


class _Nested(Exception):
    """A choice lies within a repeat."""


def _parse(pattern: str) -> Any:
    from re import _parser  # type: ignore[attr-defined]  # noqa: PLC0415

    return _parser.parse(pattern)


def _count(parsed: Any, *, inside: bool) -> int:
    total = 0
    for operator, detail in parsed:
        match str(operator):
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                low, high, body = detail
                if inside and high != low:
                    raise _Nested
                total += (high != low) + _count(body, inside=inside or int(high) > 1)
            case "BRANCH":
                if inside:
                    raise _Nested
                total += sum(_count(branch, inside=inside) for branch in detail[1])
            case "SUBPATTERN" | "ATOMIC_GROUP":
                total += _count(detail[-1] if isinstance(detail, tuple) else detail, inside=inside)
            case "GROUPREF" | "GROUPREF_EXISTS" | "ASSERT" | "ASSERT_NOT":
                raise _Nested
            case _:
                pass
    return total
