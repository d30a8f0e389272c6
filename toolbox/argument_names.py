"""Compare the names of arguments that a person writes with those that a tool knows, also where its schema is open."""

import difflib
from typing import Any, NamedTuple

from backstay.bounds import DEEPEST
from backstay.shown import one_line
from toolbox.schema import fits_pattern, referred

_JOINS = ("allOf", "anyOf", "oneOf")
_BRANCHES = ("if", "then", "else")
_OTHERS = ("additionalProperties", "unevaluatedProperties")
_DEPENDENT = ("dependentSchemas", "dependencies")
_MOST = 2000
"""How many parts of a schema are looked at for one object; schemas are bounded, and may refer to themselves."""


class _KnownNames(NamedTuple):
    """Hold what a schema says of the names in one object."""

    properties: dict[str, list[Any]]
    required: frozenset[str]
    patterns: list[tuple[str, Any]]
    others: list[Any]
    """What every other name holds; such names are meant only where the schema says something of that."""

    def under(self, name: str) -> list[Any] | None:
        """Return the schemas of what is under a name; None where the name is unknown."""
        fits = [(fits_pattern(pattern, name), schema) for pattern, schema in self.patterns]
        found = self.properties.get(name, []) + [schema for fitting, schema in fits if fitting]
        if found or name in self.properties:
            return found
        # Nobody knows what a pattern lets in that cannot be read here.
        return self.others or ([] if any(fitting is None for fitting, _ in fits) else None)


def fault_in_names(schema: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return which name in changed arguments is unknown, or which required argument is gone, with the fix; or None.

    What was there before is not looked at: a person answers for what they write.
    """
    return _fault([schema], schema, before, after, "arguments", 0)


def _fault(  # noqa: PLR0917  # one walk along schema and value
    schemas: list[Any], root: dict[str, Any], before: Any, after: Any, where: str, depth: int
) -> str | None:
    if depth > DEEPEST or before == after:
        return None
    if isinstance(after, list):
        parts, was = _parts(schemas, root), before if isinstance(before, list) else []
        pairs = ((was[at] if at < len(was) else None, item) for at, item in enumerate(after))
        found = (
            _fault(_items(parts, at), root, old, new, f"{where}[{at}]", depth + 1)
            for at, (old, new) in enumerate(pairs)
        )
        return next((fault for fault in found if fault is not None), None)
    if not isinstance(after, dict):
        return None
    known, old = _known(schemas, root), before if isinstance(before, dict) else {}
    for name in sorted(known.required - after.keys()):
        if name in old:
            return f"{where}: {one_line(name, 80)} is required and cannot be left out; give it a value"
    for name, value in after.items():
        below = known.under(name)
        if below is None:
            if name not in old and (known.properties or known.patterns):
                return f"{where}.{one_line(name, 80)}: unknown name; {_nearest(name, known)}"
            continue
        fault = _fault(below, root, old.get(name), value, f"{where}.{one_line(name, 80)}", depth + 1)
        if fault is not None:
            return fault
    return None


def _items(parts: list[dict[str, Any]], at: int) -> list[Any]:
    """Return the schemas of one item of an array, of which the first ones may have their own."""
    found: list[Any] = []
    for part in parts:
        items = part.get("items")
        own = items if isinstance(items, list) else part.get("prefixItems")
        rest = part.get("additionalItems") if isinstance(items, list) else items
        listed: list[Any] = own if isinstance(own, list) else []
        found.append(listed[at] if at < len(listed) else rest)
    return [schema for schema in found if isinstance(schema, dict)]


def _nearest(name: str, known: _KnownNames) -> str:
    by_case = {each.casefold(): each for each in known.properties}
    near = difflib.get_close_matches(name[:200].casefold(), by_case, n=1, cutoff=0.5)
    if near:
        return f"did you mean {one_line(by_case[near[0]], 80)}?"
    patterns = [f"names that fit {pattern}" for pattern, _ in known.patterns]
    return f"it has {one_line(', '.join([*known.properties, *patterns]), 300)}"


def _known(schemas: list[Any], root: dict[str, Any]) -> _KnownNames:
    properties: dict[str, list[Any]] = {}
    required: set[str] = set()
    patterns: list[tuple[str, Any]] = []
    others: list[Any] = []
    for part in _parts(schemas, root):
        for name, schema in _object(part.get("properties")).items():
            properties.setdefault(name, []).append(schema)
        wanted = part.get("required")
        if part in schemas and isinstance(wanted, list):
            required |= {name for name in wanted if isinstance(name, str)}
        patterns += _object(part.get("patternProperties")).items()
        others += [other for word in _OTHERS if (other := _object(part.get(word)))]
    return _KnownNames(properties, frozenset(required), patterns, others)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


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
        waiting += [referred(part.get(word), root) for word in ("$ref", "$dynamicRef") if word in part]
        waiting += [each for word in _JOINS if isinstance(part.get(word), list) for each in part[word]]
        waiting += [part[word] for word in _BRANCHES if word in part]
        waiting += [schema for word in _DEPENDENT for schema in _object(part.get(word)).values()]
    return found
