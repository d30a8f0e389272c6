"""Read values that stand as texts where a schema takes none, and whole numbers where it takes a string alone.

Some models and endpoints write them so. A string stays one wherever the schema takes a string, or does not say what it
takes; a number with a fraction stays one everywhere, for nobody knows how it was written.
"""

import json
from collections.abc import Mapping
from typing import Any

from backstay.canonical import each_once
from toolbox.schema import referred

_DEPTH = 20
_TEXT_ALONE = frozenset({"string"})
_LETTERS = {"true": True, "false": False, "null": None, "none": None}


def as_meant(arguments: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments as the schema takes them, where a string stands for a value or an integer for a string."""
    return _meant(arguments, schema, schema, 0)


def _meant(value: Any, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > _DEPTH:
        return value
    if isinstance(value, str):
        kinds = _kinds(schema, root, 0)
        found = value if not kinds or "string" in kinds else _from_text(value, kinds)
        return found if found is value or isinstance(found, str) else _meant(found, schema, root, depth + 1)
    match value:
        case dict():
            given = schema.get("properties")
            known: Mapping[str, Any] = given if isinstance(given, dict) else {}
            return {name: _meant(item, known.get(name), root, depth + 1) for name, item in value.items()}
        case list():
            return [_meant(item, schema.get("items"), root, depth + 1) for item in value]
        case int() if not isinstance(value, bool):
            return str(value) if _kinds(schema, root, 0) == _TEXT_ALONE else value
        case _:
            return value


def _resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference within the schema leads to."""
    for _ in range(_DEPTH):
        if not isinstance(schema, dict) or not isinstance(target := schema.get("$ref"), str):
            break
        schema = referred(target, root)
    return schema


def _kinds(schema: Any, root: Mapping[str, Any], depth: int) -> frozenset[str]:
    """Return which types a schema takes; none where it does not say it."""
    schema = _resolved(schema, root)
    if not isinstance(schema, dict) or depth > _DEPTH:
        return frozenset()
    said = schema.get("type")
    if isinstance(said, str | list):
        return frozenset([said] if isinstance(said, str) else [kind for kind in said if isinstance(kind, str)])
    ways = next((schema[key] for key in ("anyOf", "oneOf") if isinstance(schema.get(key), list)), [])
    kinds = [_kinds(way, root, depth + 1) for way in ways]
    return frozenset().union(*kinds) if kinds and all(kinds) else frozenset()


def _from_text(text: str, kinds: frozenset[str]) -> Any:
    """Return the value that a string stands for if it is of one of the types, else the text."""
    plain = text.strip()
    if plain.lower() in _LETTERS:
        value = _LETTERS[plain.lower()]
    else:
        try:
            value = json.loads(plain, strict=False, parse_constant=_refused, object_pairs_hook=each_once)
        except (ValueError, RecursionError):
            return text
    return value if _kind_of(value) & kinds else text


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _kind_of(value: Any) -> frozenset[str]:
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"number"})
        case list():
            return frozenset({"array"})
        case dict():
            return frozenset({"object"})
        case _:
            return frozenset()
