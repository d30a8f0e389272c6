"""Compare the names of arguments that a person writes with those that a tool knows, also where its schema is open."""

import difflib
from typing import Any, NamedTuple

from backstay.canonical import key_of
from backstay.shown import one_line

_JOINS = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("if", "then", "else")
_DEEPEST = 12
_MOST = 2000
"""How many parts of a schema are looked at for one object; schemas are bounded, and may refer to themselves."""


class _Known(NamedTuple):
    """Hold what a schema says of the names in one object."""

    properties: dict[str, list[Any]]
    required: frozenset[str]
    takes_any: bool
    """Whether other names are meant, because a schema says what they hold, or which pattern they fit."""


def fault_in_names(schema: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return which name in changed arguments is unknown, or which required argument is gone, with the fix; or None.

    What stood there before is not looked at: a person answers for what they write.
    """
    return _fault([schema], schema, before, after, "arguments", 0)


def _fault(  # noqa: PLR0917  # one walk along schema and value
    schemas: list[Any], root: dict[str, Any], before: Any, after: Any, where: str, depth: int
) -> str | None:
    if depth > _DEEPEST or before == after:
        return None
    if isinstance(after, list):
        items = [part["items"] for part in _parts(schemas, root) if isinstance(part.get("items"), dict)]
        was: list[Any] = before if isinstance(before, list) else []
        pairs = ((was[at] if at < len(was) else None, item) for at, item in enumerate(after))
        found = (_fault(items, root, old, new, f"{where}[{at}]", depth + 1) for at, (old, new) in enumerate(pairs))
        return next((fault for fault in found if fault is not None), None)
    if not isinstance(after, dict):
        return None
    known, old = _known(schemas, root), before if isinstance(before, dict) else {}
    for name in sorted(known.required - after.keys()):
        if name in old:
            return f"{where}: {one_line(name, 80)} is required and cannot be left out; give it a value"
    for name, value in after.items():
        if name not in known.properties:
            if name not in old and known.properties and not known.takes_any:
                return f"{where}.{one_line(name, 80)}: unknown name; {_nearest(name, list(known.properties))}"
            continue
        fault = _fault(known.properties[name], root, old.get(name), value, f"{where}.{one_line(name, 80)}", depth + 1)
        if fault is not None:
            return fault
    return None


def _nearest(name: str, known: list[str]) -> str:
    by_case = {each.casefold(): each for each in known}
    near = difflib.get_close_matches(name[:200].casefold(), by_case, n=1, cutoff=0.5)
    if near:
        return f"did you mean {one_line(by_case[near[0]], 80)}?"
    return f"it has {one_line(', '.join(known), 300)}"


def _known(schemas: list[Any], root: dict[str, Any]) -> _Known:
    properties: dict[str, list[Any]] = {}
    required: set[str] = set()
    takes_any = False
    for part in _parts(schemas, root):
        given = part.get("properties")
        for name, schema in given.items() if isinstance(given, dict) else ():
            properties.setdefault(name, []).append(schema)
        wanted = part.get("required")
        if part in schemas and isinstance(wanted, list):
            required |= {name for name in wanted if isinstance(name, str)}
        others = (part.get("additionalProperties"), part.get("unevaluatedProperties"))
        takes_any = takes_any or bool(part.get("patternProperties")) or any(isinstance(o, dict) and o for o in others)
    return _Known(properties, frozenset(required), takes_any)


def _parts(schemas: list[Any], root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas and all that they are joined from, references within the whole schema included."""
    found: list[dict[str, Any]] = []
    seen: set[int] = set()
    waiting = list(schemas)
    while waiting and len(found) < _MOST:
        part = waiting.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        found.append(part)
        waiting += [_referred(part.get(word), root) for word in ("$ref", "$dynamicRef") if word in part]
        waiting += [each for word in _JOINS if isinstance(part.get(word), list) for each in part[word]]
        waiting += [part[word] for word in _BRANCHES if word in part]
    return found


def _referred(reference: Any, root: dict[str, Any]) -> Any:
    """Return what a reference within the schema names; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        key = key_of(step)
        found = found.get(key) if isinstance(found, dict) else None
    return found
