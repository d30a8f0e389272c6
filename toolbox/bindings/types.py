"""Turn a server's JSON Schema into Python types: bounded, without fetching anything, never failing."""

import keyword
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from backstay.canonical import key_of
from toolbox.bindings.names import camel, literal

_DEPTH = 12
_STEPS = 2000
_CHOICES = 20
_FIELDS = 60
_RECORDS = 24
_LONGEST = 400
_ANY_OBJECT = "dict[str, Any]"
_PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class Members(NamedTuple):
    """Hold what a schema says about an object's fields."""

    fields: dict[str, Any]
    required: frozenset[str]
    open: Any
    """What other fields may hold: False for none, True for anything, else a schema; None when unknown."""


class Types:
    """Write types of one tool's schema; objects with known fields become records, or are written in place."""

    def __init__(self, root: Any, *, prefix: str, taken: frozenset[str], inline: bool) -> None:
        """Take the schema that `$ref` refers to, and the first word of the names of records."""
        self.records: dict[str, dict[str, str]] = {}
        """By name, in the order in which they must be defined: the type of each field."""
        self._root = root
        self._prefix = prefix
        self._taken = taken
        self._inline = inline
        self._steps = 0
        self._level = 0
        self._known: dict[str, list[str]] = {}
        self._following: list[str] = []

    def of(self, schema: Any, *path: str) -> str:
        """Return the type of values that the schema takes, `Any` where Python has no such type."""
        text = _joined(self._choices(schema, path))
        return text if len(text) <= _LONGEST else "Any"

    def members(self, schema: Any) -> Members:
        """Return the fields of an object, taken together from all parts of its schema."""
        self._steps += 1
        if not isinstance(schema, dict) or self._steps > _STEPS or self._level > _DEPTH:
            return Members({}, frozenset(), None)
        self._level += 1
        found = _said(schema)
        parts = [self.find(schema["$ref"])] if isinstance(schema.get("$ref"), str) else []
        for part in [*parts, *_parts(schema, "allOf")]:
            other = self.members(part)
            fields = {**other.fields, **found.fields}
            found = Members(fields, found.required | other.required, found.open or other.open)
        choices = [self.members(part) for part in [*_parts(schema, "anyOf"), *_parts(schema, "oneOf")]]
        if choices:
            fields = {name: rule for choice in reversed(choices) for name, rule in choice.fields.items()}
            needed = frozenset.intersection(*(choice.required for choice in choices))
            opened = next((choice.open for choice in choices if choice.open), found.open)
            found = Members({**fields, **found.fields}, found.required | needed, found.open or opened)
        self._level -= 1
        return found

    def _choices(self, schema: Any, path: tuple[str, ...]) -> list[str]:
        """Return the types between which a value may choose."""
        self._steps += 1
        if not isinstance(schema, dict) or self._steps > _STEPS or self._level > _DEPTH:
            return ["Any"]
        self._level += 1
        reference = schema.get("$ref")
        found = self._referred(reference, path) if isinstance(reference, str) else self._types(schema, path)
        self._level -= 1
        return [*found, "None"] if schema.get("nullable") is True else found

    def _types(self, schema: dict[str, Any], path: tuple[str, ...]) -> list[str]:
        kind = schema.get("type")
        if "const" in schema or (isinstance(schema.get("enum"), list) and schema["enum"]):
            return _values([schema["const"]] if "const" in schema else schema["enum"])
        if isinstance(kind, list):
            return self._one_of([{**schema, "type": name} for name in kind[:_CHOICES]], path)
        if isinstance(kind, str) and kind in _PLAIN:
            return [_PLAIN[kind]]
        if kind == "array":
            first = schema.get("prefixItems")
            every = first[:_CHOICES] if isinstance(first, list) and first else [schema.get("items")]
            return [f"list[{_joined(self._one_of(every, (*path, 'item')))}]"]
        choices = [*_parts(schema, "anyOf"), *_parts(schema, "oneOf")]
        parts = _parts(schema, "allOf")
        if kind is None and "properties" not in schema and (choices or len(parts) == 1):
            return self._one_of(choices or parts, path)
        return [self._object(schema, path)] if kind == "object" or "properties" in schema or parts else ["Any"]

    def _one_of(self, schemas: list[Any], path: tuple[str, ...]) -> list[str]:
        return [text for schema in schemas for text in self._choices(schema, path)]

    def _object(self, schema: dict[str, Any], path: tuple[str, ...]) -> str:
        members = self.members(schema)
        if not members.fields:
            return f"dict[str, {self.of(members.open, *path, 'value')}]"
        if members.open or len(members.fields) > _FIELDS or len(self.records) >= _RECORDS:
            return _ANY_OBJECT
        fields = {name: self.of(rule, *path, name) for name, rule in members.fields.items()}
        if self._inline:
            marks = {name: "" if name in members.required else "?" for name in fields}
            text = ", ".join(f"{literal(name)}{marks[name]}: {text}" for name, text in fields.items())
            return f"{{{text}}}" if len(text) < _LONGEST else _ANY_OBJECT
        return self._record(
            path,
            {name: text if name in members.required else f"NotRequired[{text}]" for name, text in fields.items()},
        )

    def _record(self, path: tuple[str, ...], fields: dict[str, str]) -> str:
        wanted = camel(self._prefix, *path)
        name, number = wanted, 2
        while name in self.records or name in self._taken or keyword.iskeyword(name) or not name.isidentifier():
            name, number = f"Record{wanted}{number}", number + 1
        self.records[name] = fields
        return name

    def _referred(self, reference: str, path: tuple[str, ...]) -> list[str]:
        """Follow a reference once; one that leads back to itself may be anything."""
        if reference in self._following:
            return ["Any"]
        if reference not in self._known:
            self._following.append(reference)
            self._known[reference] = self._choices(self.find(reference), path)
            self._following.pop()
        return self._known[reference]

    def find(self, reference: str) -> Any:
        """Return what a reference within the schema names, or None."""
        found = self._root
        if not reference.startswith("#"):
            return None
        for part in reference[1:].split("/")[1:]:
            key = key_of(unquote(part))
            found = found.get(key) if isinstance(found, dict) else None
        return found


def _said(schema: dict[str, Any]) -> Members:
    """Return what one schema says by itself, without its parts."""
    fields, names, others = schema.get("properties"), schema.get("required"), schema.get("additionalProperties")
    opened = isinstance(schema.get("patternProperties"), dict) or others == {}
    return Members(
        {str(name): rule for name, rule in fields.items()} if isinstance(fields, dict) else {},
        frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset(),
        opened or others,
    )


def _joined(texts: list[str]) -> str:
    every = list(dict.fromkeys(texts))
    if not every or "Any" in every or len(every) > _CHOICES:
        return "Any"
    return " | ".join([*(text for text in every if text != "None"), *(["None"] if "None" in every else [])])


def _parts(schema: Mapping[str, Any], key: str) -> list[Any]:
    parts = schema.get(key)
    return parts[:_CHOICES] if isinstance(parts, list) else []


def _values(values: list[Any]) -> list[str]:
    """Return the values as literals where Python has them and they are few, else their types."""
    nothing = ["None"] if None in values else []
    some = [value for value in values if value is not None]
    if len(some) <= _CHOICES and all(isinstance(value, str | int) for value in some):
        texts = dict.fromkeys(literal(value) if isinstance(value, str) else repr(value) for value in some)
        text = f"Literal[{', '.join(texts)}]"
        if len(text) <= _LONGEST:
            return [*([text] if texts else []), *nothing]
    return [*dict.fromkeys(_type_of(value) for value in some), *nothing]


def _type_of(value: Any) -> str:
    match value:
        case bool() | int() | float() | str():
            return type(value).__name__
        case list():
            return "list[Any]"
        case _:
            return _ANY_OBJECT
