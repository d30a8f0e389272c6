"""Read the arguments of a job as a command line would: names with hyphens, and numbers that are given as texts."""

import re
from collections.abc import Mapping
from typing import Any

from gateways.plugin_jobs.protocol import RequestInvalid

_INTEGER = re.compile(r"[+-]?[0-9]{1,30}")
_BOOLEANS = {"true": True, "false": False}


def read_arguments(given: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under the names and in the types of the schema, where what is meant is certain.

    Other arguments stay as they are, and are refused with the field by whoever checks them. null is the same as leaving
    out. Raises RequestInvalid for an argument that is given under two spellings.
    """
    known: Mapping[str, Any] = schema.get("properties", {})
    named: dict[str, Any] = {}
    for written, value in given.items():
        if value is None:
            continue
        name = _name(written, known)
        if name in named:
            raise RequestInvalid(f"args: {name} is given twice; leave one of them out")
        named[name] = value
    return {name: _value(value, known.get(name, {})) for name, value in named.items()}


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
    try:
        return float(text)
    except ValueError:
        return text
