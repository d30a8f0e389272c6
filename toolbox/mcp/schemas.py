"""Mend what servers list as JSON Schema and is not quite: words of other dialects, serializers and languages.

A valid schema comes out as it went in. Parts that cannot be mended are dropped, so that the server itself decides about
them.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from jsonschema import Draft202012Validator

from backstay.canonical import key_of
from backstay.data_files import data_beside
from toolbox.schema import references_of, too_large

_DATA = data_beside(__file__)
_KINDS = {name: kind for kind, names in _DATA["keywords"].items() for name in names.split()}
_TYPES = {name: kind for kind, names in _DATA["types"].items() for name in names.split()}
_DIALECTS = {kind: frozenset(names.split()) for kind, names in _DATA["dialects"].items()}
_JSON_TYPES = Draft202012Validator.TYPE_CHECKER
# As PHP and JavaScript write them; /^ and $/ themselves can never fit, so that no schema is meant otherwise.
_DELIMITED = re.compile(r"/(?=\^|.*(?:\$/|/[gimsuxy]+)$)(.*)/([gimsuxy]*)", re.DOTALL)
_MOST_CHARACTERS = 30
_MOST_DIGITS = 9
"""How many the place in a list may have."""


@dataclass(frozen=True, slots=True)
class _Dialect:
    required_in_place: bool
    exclusive_flags: bool
    items_in_a_list: bool


_DROPPED: Any = object()


def input_schema(said: Any) -> dict[str, Any] | str:
    """Return the schema of a tool's arguments, or why no object can fit what the server says, in words after "it"."""
    if said in (None, "", []):
        return {"type": "object", "properties": {}}
    if said is True:
        return {"type": "object"}
    if not isinstance(said, dict):
        return f"has a schema that is {_kind(said)}, not an object"
    if too_large(said) is not None:
        return {**said, "type": "object"}  # the catalog leaves it out and names the bound
    schema = _mended(said)
    kind = schema.get("type")
    if kind is None or kind == "null" or (isinstance(kind, list) and "object" in kind):
        # A call has its arguments in an object; without a type the schema says nothing else.
        kind = "object"
    if kind != "object":
        return f"takes {json.dumps(kind)[:_MOST_CHARACTERS]}, and arguments are always an object"
    return {**schema, "type": "object"}


def output_schema(said: Any, *, of_any_type: bool) -> dict[str, Any] | None:
    """Return the schema of a tool's answers; None without one that can be used."""
    if not isinstance(said, dict) or not said:
        return None
    if too_large(said) is not None:
        return {**said, "type": "object"}
    schema = _mended(said)
    if of_any_type or schema.get("type") == "object":
        return schema
    return {**schema, "type": "object"} if "type" not in schema else None


def _mended(schema: dict[str, Any]) -> dict[str, Any]:
    written = schema.get("$schema")
    dialect = written.rstrip("#") if isinstance(written, str) else ""
    if written is not None and dialect not in _DIALECTS["known"]:
        schema = {key: value for key, value in schema.items() if key != "$schema"}
    options = {kind: dialect in names for kind, names in _DIALECTS.items() if kind != "known"}
    return _without_dangling(_schema(schema, _Dialect(**options)))


def _schema(schema: dict[str, Any], dialect: _Dialect) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in schema.items():
        mended = _MENDERS[_KINDS[key]](key, value, dialect) if key in _KINDS else value
        if mended is not _DROPPED:
            found[key] = mended
    if "type" in schema:
        _set_type(found, schema["type"])
    if isinstance(found.get("items"), list) and not dialect.items_in_a_list:
        found["prefixItems"] = found.pop("items")
    _lift_required(found, schema, dialect)
    if not dialect.exclusive_flags:
        _move_exclusive(found, schema)
    if schema.get("nullable") is True:
        _allow_null(found)
    return found


def _sub(value: Any, dialect: _Dialect) -> Any:
    match value:
        case dict():
            return _schema(value, dialect)
        case bool():
            return value
        case str() if value.lower() in {"true", "false"}:
            return value.lower() == "true"
        case str():
            return _schema({"type": value}, dialect)
        case []:
            return {}
        case _:
            return _DROPPED


def _a_schema(key: str, value: Any, dialect: _Dialect) -> Any:
    if key == "items" and isinstance(value, list) and value:
        return [{} if item is _DROPPED else item for item in (_sub(item, dialect) for item in value)]
    return _sub(value, dialect)


def _schemas(_: str, value: Any, dialect: _Dialect) -> Any:
    if not isinstance(value, list):
        return _DROPPED
    return [item for item in (_sub(item, dialect) for item in value) if item is not _DROPPED] or _DROPPED


def _named(_: str, value: Any, dialect: _Dialect) -> Any:
    if isinstance(value, list):  # an empty map in PHP, or parameters that carry their names
        value = {item["name"]: item for item in value if isinstance(item, dict) and isinstance(item.get("name"), str)}
    if not isinstance(value, dict):
        return _DROPPED
    found = {str(name): _sub(item, dialect) for name, item in value.items()}
    return {name: {} if item is _DROPPED else item for name, item in found.items()}


def _number(key: str, value: Any, dialect: _Dialect) -> Any:
    if isinstance(value, bool):
        return value if key.startswith("exclusive") and dialect.exclusive_flags else _DROPPED
    number = _read_number(value)
    return _DROPPED if number is None or (key == "multipleOf" and number <= 0) else number


def _count(_: str, value: Any, __: _Dialect) -> Any:
    number = None if isinstance(value, bool) else _read_number(value)
    return _DROPPED if number is None or number < 0 or number != int(number) else int(number)


def _read_number(value: Any) -> int | float | None:
    if isinstance(value, str) and len(value) <= _MOST_CHARACTERS:
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # no value comes near it
        return None


def _text(key: str, value: Any, _: _Dialect) -> Any:
    if isinstance(value, str):
        delimited = _DELIMITED.fullmatch(value) if key == "pattern" else None
        if delimited is None:
            return value
        return _DROPPED if delimited[2] else delimited[1]
    if key not in {"description", "title"}:
        return _DROPPED
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else _DROPPED


def _flag(_: str, value: Any, __: _Dialect) -> Any:
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    return value if isinstance(value, bool) else _DROPPED


def _names(_: str, value: Any, dialect: _Dialect) -> Any:
    match value:
        case bool():
            return value if dialect.required_in_place else _DROPPED
        case str() if value:
            return [value]
        case list():
            return list(dict.fromkeys(name for name in value if isinstance(name, str)))
        case _:
            return _DROPPED


def _list(key: str, value: Any, _: _Dialect) -> Any:
    if not isinstance(value, list) or (key == "enum" and not value):
        return _DROPPED
    return list({json.dumps(item, sort_keys=True): item for item in value}.values()) if key == "enum" else value


def _object(key: str, value: Any, dialect: _Dialect) -> Any:
    if not isinstance(value, dict):
        return _DROPPED
    if key == "$vocabulary":
        return value
    found = {name: _names("", item, dialect) if isinstance(item, list) else item for name, item in value.items()}
    fits = (list, dict) if key == "dependencies" else list
    return {name: item for name, item in found.items() if isinstance(item, fits)}


_MENDERS: dict[str, Callable[[str, Any, _Dialect], Any]] = {
    "schema": _a_schema,
    "schemas": _schemas,
    "named": _named,
    "number": _number,
    "count": _count,
    "text": _text,
    "flag": _flag,
    "names": _names,
    "list": _list,
    "object": _object,
}


def _set_type(found: dict[str, Any], said: Any) -> None:
    """Set the types that are meant; a field of which no word is known says nothing."""
    words = said if isinstance(said, list) else [said]
    kinds = list(dict.fromkeys(_TYPES.get(word.lower(), "any") for word in words if isinstance(word, str)))
    if not kinds or "any" in kinds or len(kinds) == len(_TYPES):
        del found["type"]
    else:
        found["type"] = kinds if isinstance(said, list) else kinds[0]
        _free_choices(found, kinds)


def _free_choices(found: dict[str, Any], kinds: list[str]) -> None:
    """Let the choices stand that fit no type: a server takes what its own code lists, whatever it says of the type."""
    choices = [choice for choice in found.get("enum", [found.get("const")]) if choice is not None]
    if not choices or any(_JSON_TYPES.is_type(choice, kind) for choice in choices for kind in kinds):
        return
    del found["type"]
    if kinds == ["array"] and "enum" in found:
        # They are those of each item.
        found["type"], items = "array", found.get("items")
        found["items"] = {"enum": found.pop("enum"), **(items if isinstance(items, dict) else {})}
        if isinstance(kind := found["items"].get("type"), str):
            _free_choices(found["items"], [kind])


def _lift_required(found: dict[str, Any], schema: dict[str, Any], dialect: _Dialect) -> None:
    properties = schema.get("properties")
    if dialect.required_in_place or not isinstance(properties, dict):
        return
    said = [name for name, rule in properties.items() if isinstance(rule, dict) and rule.get("required") is True]
    if isinstance(names := properties.get("required"), list):  # one level too deep
        del found["properties"]["required"]
        said += [name for name in names if isinstance(name, str) and name in found["properties"]]
    if said:
        found["required"] = list(dict.fromkeys([*found.get("required", []), *map(str, said)]))


def _move_exclusive(found: dict[str, Any], schema: dict[str, Any]) -> None:
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True and limit in found:
            found[exclusive] = found.pop(limit)


def _allow_null(found: dict[str, Any]) -> None:
    if isinstance(kind := found.get("type"), str) and kind != "null":
        found["type"] = [kind, "null"]
    if isinstance(choices := found.get("enum"), list) and None not in choices:
        found["enum"] = [*choices, None]


def _without_dangling(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without references that lead nowhere in it; nothing is ever fetched."""
    text = json.dumps(schema)
    if '"$ref"' not in text:
        return schema
    anchored = '"$id"' in text or '"$anchor"' in text or '"$dynamicAnchor"' in text
    dangling = {ref for ref in references_of(schema) if not _leads(schema, ref, anchored=anchored)}
    return _dropping(schema, dangling) if dangling else schema


def _leads(schema: dict[str, Any], reference: str, *, anchored: bool) -> bool:
    if reference in {"", "#"}:
        return True
    if not reference.startswith("#/"):
        return anchored and "://" not in reference
    place: Any = schema
    for part in reference[2:].split("/"):
        name = key_of(unquote(part))
        if isinstance(place, list) and name.isdecimal() and len(name) <= _MOST_DIGITS and int(name) < len(place):
            place = place[int(name)]
        elif isinstance(place, dict) and name in place:
            place = place[name]
        else:
            return anchored
    return isinstance(place, dict | bool)


def _dropping(value: Any, dangling: set[str]) -> Any:
    match value:
        case dict():
            kept = {
                key: item
                for key, item in value.items()
                if not (key == "$ref" and isinstance(item, str) and item in dangling)
            }
            return {key: _dropping(item, dangling) for key, item in kept.items()}
        case list():
            return [_dropping(item, dangling) for item in value]
        case _:
            return value


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "false" if not value else "true"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a number"
