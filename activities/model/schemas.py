"""The schema of a function in a form that every endpoint takes; the arguments are checked by the true one."""

import hashlib
from collections.abc import Mapping
from typing import Any

from backstay.canonical import canonical, key_of

MOST_DEPTH = 8
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean"})
_UNIONS = ("anyOf", "oneOf", "allOf")
_ANYTHING: dict[str, Any] = {"type": "string"}


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
