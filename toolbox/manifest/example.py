"""Make example arguments for the documents."""

import json
import math
from typing import Any

from toolbox.bindings.names import IN_BINDINGS, literal
from toolbox.bindings.types import Types
from toolbox.manifest.manifest import ManifestTool

_DEPTH = 6
_LONGEST = 200
_MOST = 5
_STEPS = 500
_BY_FORMAT = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "P1D",
    "email": "ana@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/",
    "uuid": "12345678-1234-4234-8234-123456789abc",
    "json-pointer": "/name",
    "regex": ".*",
}


def example_of(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each argument that must be given; never fails, and fits the schema where a guess can."""
    return _Example(schema).fields(schema, 0)


def call_line(tool: ManifestTool, arguments: dict[str, Any]) -> str:
    """Return the line of a program that makes the call."""
    names = {parameter.argument: parameter.name for parameter in tool.arguments}
    known = [f"{names[argument]}={_python(value)}" for argument, value in arguments.items() if argument in names]
    others = {argument: value for argument, value in arguments.items() if argument not in names}
    return f"await {tool.binding}({', '.join([*known, *([f'**{_python(others)}'] if others else [])])})"


class _Example:
    """Guess values for the parts of one schema."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.types = Types(root, prefix="", taken=IN_BINDINGS, inline=True)
        self.steps = 0

    def fields(self, schema: Any, depth: int) -> dict[str, Any]:
        members = self.types.members(schema)
        needed = {name: rule for name, rule in members.fields.items() if name in members.required}
        return {name: self.value(rule, name, depth + 1) for name, rule in needed.items() if self.steps <= _STEPS}

    def value(self, schema: Any, name: str, depth: int) -> Any:
        self.steps += 1
        if not isinstance(schema, dict) or depth > _DEPTH or self.steps > _STEPS:
            return name
        said = _said(schema)
        if said:
            return said[0]
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.value(self.types.find(reference), name, depth + 1)
        for key in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(key)
            if "type" not in schema and "properties" not in schema and isinstance(parts, list) and parts:
                some = [part for part in parts if not (isinstance(part, dict) and part.get("type") == "null")]
                return self.value((some or parts)[0], name, depth + 1)
        return self.of_type(schema, name, depth)

    def of_type(self, schema: dict[str, Any], name: str, depth: int) -> Any:
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next((name for name in kind if name != "null"), None)
        match kind:
            case "integer" | "number":
                return _number(schema, whole=kind == "integer")
            case "boolean":
                return False
            case "null":
                return None
            case "array":
                count = min(max(1, _count(schema, "minItems")), _MOST)
                return [self.value(schema.get("items"), name, depth + 1)] * count
            case "object":
                return self.fields(schema, depth)
            case _:
                return self.fields(schema, depth) if "properties" in schema else _text(schema, name)


def _said(schema: dict[str, Any]) -> list[Any]:
    """Return the values that the schema itself names, the best first."""
    given, named = schema.get("examples"), schema.get("enum")
    values = [
        *(given[:1] if isinstance(given, list) else []),
        *(schema[key] for key in ("default", "const") if key in schema),
    ]
    values += [value for value in named if value is not None][:1] if isinstance(named, list) else []
    return [value for value in values if len(json.dumps(value)) <= _LONGEST]


def _text(schema: dict[str, Any], name: str) -> str:
    said = schema.get("format")
    text = _BY_FORMAT.get(said, name) if isinstance(said, str) else name
    least = min(_count(schema, "minLength"), _LONGEST)
    text = text[:_LONGEST].ljust(least, "x")
    most = schema.get("maxLength")
    return text[:most] if isinstance(most, int) and most >= 0 else text


def _number(schema: dict[str, Any], *, whole: bool) -> float:
    """Return the least number above nothing that the bounds and the step allow."""
    try:
        step = _bound(schema, "multipleOf") or 1
        value: float = step
        if (least := _bound(schema, "minimum")) is not None:
            value = max(value, math.ceil(least / step) * step)
        if (least := _bound(schema, "exclusiveMinimum")) is not None:
            value = max(value, (math.floor(least / step) + 1) * step)
        if (most := _bound(schema, "maximum")) is not None:
            value = min(value, math.floor(most / step) * step)
        if (most := _bound(schema, "exclusiveMaximum")) is not None:
            value = min(value, (math.ceil(most / step) - 1) * step)
        return int(value) if whole and float(value).is_integer() else value
    except (OverflowError, ValueError):  # of numbers beyond what a machine computes with
        return 1


def _bound(schema: dict[str, Any], key: str) -> float | None:
    said = schema.get(key)
    return said if isinstance(said, int | float) and not isinstance(said, bool) else None


def _count(schema: dict[str, Any], key: str) -> int:
    said = schema.get(key)
    return said if isinstance(said, int) and said > 0 else 0


def _python(value: Any) -> str:
    match value:
        case str():
            return literal(value)
        case dict():
            return f"{{{', '.join(f'{literal(str(key))}: {_python(item)}' for key, item in value.items())}}}"
        case list():
            return f"[{', '.join(_python(item) for item in value)}]"
        case _:
            return ascii(value)
