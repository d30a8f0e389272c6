"""The schema of a function as a model is told it, and in a form that every endpoint takes.

The arguments are checked by the true one.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from backstay.canonical import canonical, key_of

MOST_DEPTH = 8
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean"})
_UNIONS = ("anyOf", "oneOf", "allOf")
_ANYTHING: dict[str, Any] = {"type": "string"}


_PARTS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_SCHEMAS = frozenset({*_UNIONS, "items", "prefixItems", "not", "additionalProperties", "if", "then", "else"})

_FAR = 500
"""A string of this many characters is longer than a model writes for an argument that is not a document."""


def brief(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a function without what tells a model nothing.

    That are titles that repeat a name, lengths that no text comes near, and null: an argument that is null unless it is
    given is left out instead.
    """
    if not schema:
        return {"type": "object", "properties": {}}
    title = schema.get("title")
    found = _brief(schema, "", 0)
    if isinstance(title, str) and title.endswith("Arguments"):
        found.pop("title", None)
    return {name: value for name, value in found.items() if name != "$schema"}


def _brief(schema: Any, name: str, depth: int) -> Any:
    if not isinstance(schema, dict) or depth > MOST_DEPTH:
        return schema
    found: dict[str, Any] = {}
    for key, value in _without_null(schema).items():
        if key == "title" and isinstance(value, str) and _letters(value) == _letters(name):
            continue
        if (key == "minLength" and value in (0, 1)) or (key == "maxLength" and _is_far(value)):
            continue
        if key in _PARTS and isinstance(value, dict):
            found[key] = {part: _brief(inner, part, depth + 1) for part, inner in value.items()}
        elif key in _SCHEMAS and isinstance(value, list):
            found[key] = [_brief(inner, name, depth + 1) for inner in value]
        else:
            found[key] = _brief(value, name, depth + 1) if key in _SCHEMAS else value
    return found


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that is null by default as that of any other value that it may have."""
    if "default" not in schema or schema["default"] is not None:
        return schema
    rest = {key: value for key, value in schema.items() if key not in {"default", "anyOf"}}
    match schema.get("anyOf"):
        case [dict(only), {"type": "null", **more}] if not more and not only.keys() & rest.keys():
            return {**rest, **only}
        case _:
            return schema


def _is_far(length: Any) -> bool:
    return isinstance(length, int | float) and length >= _FAR


def _letters(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def called(function: Mapping[str, Any]) -> str:
    """Return by what a function is known to be refused: its name and its schema, so that a mended one is offered."""
    about = function["function"]
    digest = hashlib.sha256(canonical(about["parameters"]).encode("utf-8", "replace")).hexdigest()[:8]
    return f"{about['name']}#{digest}"


def simple(function: dict[str, Any]) -> dict[str, Any]:
    """Return a function with a schema of types, properties, items, descriptions and lists of texts only."""
    about = function["function"]
    root = about["parameters"] if isinstance(about["parameters"], dict) else {}
    found = _object(_merged(root, root, 0), root, 0)
    return {**function, "function": {**about, "parameters": found}}


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    given = schema.get("properties")
    properties = given if isinstance(given, dict) else {}
    found = {str(name): _simple(value, root, depth + 1) for name, value in properties.items()}
    asked = schema.get("required")
    required = [name for name in asked if isinstance(name, str) and name in found] if isinstance(asked, list) else []
    return {"type": "object", "properties": found} | ({"required": required} if required else {})


def _simple(schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, dict) or depth > MOST_DEPTH:
        return _ANYTHING
    schema = _merged(schema, root, depth)
    said = schema.get("description")
    about = {"description": said[:1000]} if isinstance(said, str) and said else {}
    match kind := _type(schema):
        case "object":
            return _object(schema, root, depth) | about
        case "array":
            return {"type": "array", "items": _simple(schema.get("items", {}), root, depth + 1)} | about
        case _:
            values = schema.get("enum")
            texts = [value for value in values if isinstance(value, str) and value] if isinstance(values, list) else []
            listed = {"enum": texts[:500]} if texts and kind == "string" else {}
            return {"type": kind} | about | listed


def _merged(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Mapping[str, Any]:
    """Return a schema with what it refers to, and with the first of what it may be; of all that it must be, all."""
    found = dict(schema)
    for _ in range(MOST_DEPTH):
        if isinstance(reference := found.pop("$ref", None), str):
            found = dict(_at(reference, root)) | found
    for name in _UNIONS:
        parts = [part for part in found.pop(name, ()) or () if isinstance(part, dict) and part.get("type") != "null"]
        for part in parts if name == "allOf" else parts[:1]:
            inner = _merged(part, root, depth + 1) if depth < MOST_DEPTH else {}
            found = _joined(found, inner, every=name == "allOf")
    return found


def _joined(schema: dict[str, Any], part: Mapping[str, Any], *, every: bool) -> dict[str, Any]:
    joined = {**part, **schema}
    match schema.get("properties"), part.get("properties"):
        case dict(own), dict(others):
            joined["properties"] = {**others, **own}
        case _:
            pass
    match schema.get("required"), part.get("required"):
        case list(own), list(others):
            joined["required"] = [*own, *others]
        case _:
            pass
    if not every and "required" in joined and isinstance(schema.get("properties"), dict):
        # Which of several forms is meant is left to the server.
        joined["required"] = schema.get("required", [])
    return joined


def _at(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a schema that a reference within it names."""
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/") if reference.startswith("#/") else ():
        found = found.get(key_of(part)) if isinstance(found, dict) else None
    return found if isinstance(found, dict) and found is not root else {}


def _type(schema: Mapping[str, Any]) -> str:
    given = schema.get("type")
    listed = given if isinstance(given, list) else [given]
    known = next((kind for kind in listed if kind in _TYPES), None) if all(isinstance(k, str) for k in listed) else None
    if known is not None:
        return str(known)
    if isinstance(schema.get("properties"), dict):
        return "object"
    return "array" if "items" in schema else "string"
