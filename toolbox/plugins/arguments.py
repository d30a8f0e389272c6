"""Read the arguments of a plugin as a command line would: names with hyphens, and numbers that are given as texts."""

import math
import re
from collections.abc import Mapping
from typing import Any

PLUGIN = "plugin"
"""The kind of provider whose arguments these are."""
TIMEOUT = "timeout"
"""The argument that says how long one call may take; a parameter of the plugin's own with this name is that instead."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_BOOLEANS = {"true": True, "false": False}


def read_arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the names and in the types of the schema, where what is meant is certain.

    Other arguments stay as they are, and are refused with the field by whoever checks them. null is the same as leaving
    out. Raises ValueError for an argument that is given under two spellings.
    """
    known: Mapping[str, Any] = schema.get("properties", {})
    named: dict[str, Any] = {}
    for written, value in given.items():
        if value is None:
            continue
        name = _name(written, known)
        if name in named:
            raise ValueError(f"{name} is given twice; leave one of them out")
        named[name] = value
    return {name: _value(value, known.get(name, {})) for name, value in named.items()}


def with_timeout(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool with the argument by which one call is given another timeout."""
    from backstay.tools.tool import LONGEST_CALL_S  # noqa: PLC0415 - a daemon reads arguments without it

    known: Mapping[str, Any] = schema.get("properties", {})
    said = "for how many seconds the program may run"
    added = {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_CALL_S, "description": said}
    return {**schema, "properties": {**known, TIMEOUT: known.get(TIMEOUT, added)}}


def split_timeout(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return the arguments that the program gets, and the timeout beside them; None without one."""
    if TIMEOUT in schema.get("properties", {}):
        return dict(arguments), None
    return {name: value for name, value in arguments.items() if name != TIMEOUT}, arguments.get(TIMEOUT)


def _name(given: str, known: Mapping[str, Any]) -> str:
    if given in known:
        return given
    meant = given.lstrip("-").replace("-", "_")
    return meant if meant in known else given


def _value(value: Any, schema: Mapping[str, Any]) -> Any:
    match schema.get("type"):
        case "string" if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        case "integer" if isinstance(value, str) and _INTEGER.fullmatch(value):
            return int(value)
        case "number" if isinstance(value, str):
            return _number(value)
        case "boolean" if isinstance(value, str):
            return _BOOLEANS.get(value.lower(), value)
        case "array":
            items = schema.get("items", {})
            return [_value(item, items) for item in (value if isinstance(value, list) else [value])]
        case _:
            return value


def _number(text: str) -> Any:
    """Return the number that a string says; the string itself where JSON cannot say that."""
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text
