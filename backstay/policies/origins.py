"""Judge where a value came from, as the operator `from` says it, and say it in words."""

from collections.abc import Sequence
from typing import Any

from backstay.policies.glob import matches
from backstay.provenance.source import ArgumentSources, source_of
from backstay.provenance.telling import first_seen
from backstay.shown import one_line

KINDS = frozenset({"task", "person", "operator", "program", "model"})
_NAMED = 3
"""How many arguments a line of a ruling names."""


def is_origin(operand: Any) -> bool:
    """Return whether an operand of `from` lists kinds of sources and patterns of tools."""
    return (
        isinstance(operand, list)
        and 0 < len(operand) <= 100
        and all(isinstance(name, str) and 0 < len(name) <= 200 and (name in KINDS or "." in name) for name in operand)
    )


def comes_from(codes: Sequence[str], allowed: Sequence[str], *, all_of: bool) -> bool:
    """Return whether a part of a value was in one of the places that are listed.

    Of what a program computed, `all_of` says that everything which the program had read must be listed. An answer of
    nobody verified is not a person's, and input that others wrote is not the task's.
    """
    found = [source_of(code) for code in codes]
    computed = [_is_listed(source.kind, source.tool, allowed) for source in found if source.kind == "program"]
    if computed and (all(computed) if all_of else any(computed)):
        return True
    others = (source for source in found if source.kind != "program")
    return any(
        _is_listed(source.kind, source.tool, allowed)
        for source in others
        if not (all_of and source.kind in {"person", "task"} and source.content == "others")
    )


def _is_listed(kind: str, tool: str | None, allowed: Sequence[str]) -> bool:
    return kind in allowed or (
        tool is not None and any(matches(pattern, tool) for pattern in allowed if "." in pattern)
    )


def origins(sources: ArgumentSources, pointers: Sequence[str]) -> str:
    """Return in words where the values at some pointers first appeared."""
    told: list[str] = []
    for pointer in pointers[:_NAMED]:
        codes = dict.fromkeys(code for parts in sources.under(pointer) or () for part in parts for code in part)
        places = " and ".join(first_seen(source_of(code)) for code in codes) or "nowhere that is known"
        why = f", but {one_line(sources.doubts[pointer], 200)}" if pointer in sources.doubts else ""
        told.append(f"{one_line(pointer.removeprefix('/'), 80) or 'all of it'} first seen in {places}{why}")
    more = len(pointers) - _NAMED
    return "; ".join(told) + (f"; and {more} more" if more > 0 else "")
