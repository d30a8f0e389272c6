"""Make up forms that a tool's server asks people to fill in, and what they fill in."""

import json
import random
from dataclasses import dataclass
from typing import Any

from tests.e2e.approvals.doors.decoding import plain

KEPT = object()
"""Stands for what a person leaves as it stands there: its default, or nothing."""
TEXTS = (
    *(
        "plain words",
        "Привет, мир",
        "日本語のテキスト。",
        "שלום עולם",
        'it\'s "quoted", so',
        "a \\n b",
        "12",
        "true",
        "null",
    ),
    *("<b>&amp;</b> <@U1>", "one\ntwo\n\n    three", "#1", "yes", "[1, 2]", '{"a": 1}', '"in quotes"', "x" * 400),
)
NAMES = ("to", "a b", "naïve", "ключ", "x.y", "with:colon", "#1", "answer", "more", "p\u0430y", "a=b", "│")
CHOICES = (
    "plain words",
    "a, b",
    "Привет",
    "2",
    "1",
    "yes",
    "漢字 " * 30,
    "[1]",
    "it's",
    "a\nb",
    "<b>&amp;</b>",
    "x" * 230,
)
TITLES = ("The first", "Второй", "a, b", "[2] third", "yes", "fourth: so", "x" * 210)
WRONG = {"integer": "many", "number": "x1", "boolean": "perhaps"}


@dataclass(frozen=True)
class Field:
    """One value that is asked for."""

    name: str
    schema: dict[str, Any]
    required: bool
    filled: Any = KEPT

    @property
    def kind(self) -> str:
        """Return its type, or that it is one of several choices, or any of them."""
        if self.choices:
            return "choices" if self.schema.get("type") == "array" else "choice"
        return str(self.schema["type"])

    @property
    def choices(self) -> list[tuple[str, str]]:
        """Return its choices, each with what it is called."""
        told = self.schema.get("items", self.schema)
        if "enum" in told:
            return list(zip(told["enum"], told.get("enumNames", told["enum"]), strict=True))
        return [(option["const"], option["title"]) for option in told.get("oneOf", told.get("anyOf", ()))]

    @property
    def label(self) -> str:
        """Return what it is called."""
        return self.schema.get("title", self.name)

    @property
    def value(self) -> Any:
        """Return what a person means in the end; KEPT for nothing."""
        return self.schema.get("default", KEPT) if self.filled is KEPT else self.filled

    @property
    def line(self) -> str:
        """Return it as it is typed at a terminal, where quotes stand around what no line can hold."""
        value = self.filled
        if isinstance(value, bool):
            return "yes" if value else "no"
        if not isinstance(value, str):
            return json.dumps(value)
        simple = value.isprintable() and value == value.strip() and value not in {"", "."} and value[0] != '"'
        return value if simple or (self.kind == "choice" and "\n" not in value) else json.dumps(value)


@dataclass(frozen=True)
class Form:
    """What one call of a server asks, and what a person does with it."""

    mark: str
    message: str
    fields: tuple[Field, ...]
    wrong: tuple[int, str] | None
    """A field in which something stands first that does not fit, and what."""
    declined: bool
    way: int

    @property
    def schema(self) -> dict[str, Any]:
        required = [field.name for field in self.fields if field.required]
        properties = {field.name: field.schema for field in self.fields}
        return {"type": "object", "properties": properties, **({"required": required} if required else {})}

    @property
    def answer(self) -> dict[str, Any]:
        """Return what the server is to get."""
        return {field.name: field.value for field in self.fields if field.value is not KEPT}


def form_of(chance: random.Random, mark: str) -> Form:
    """Make up a form; some are declined."""
    names = chance.sample(NAMES, chance.randint(1, 4))
    fields = tuple(_field(chance, name) for name in names)
    odd = [at for at, field in enumerate(fields) if field.kind in WRONG]
    wrong = chance.choice(odd) if odd and chance.random() < 0.3 else None
    said = None if wrong is None else (wrong, WRONG[fields[wrong].kind])
    return Form(mark, f"What of {mark}?", fields, said, chance.random() < 0.15, chance.randint(0, 3))


def _field(chance: random.Random, name: str) -> Field:
    kind = chance.choice(("text", "text", "short", "integer", "number", "boolean", "choice", "choices"))
    schema, values = _asked(chance, kind)
    if chance.random() < 0.3:
        schema["title"] = f"{chance.choice(TITLES)} of {name}"
    if chance.random() < 0.3:
        schema["description"] = chance.choice(TEXTS)
    if chance.random() < 0.4:
        schema["default"] = chance.choice(values)
    required = chance.random() < 0.5
    keeps = chance.random() < 0.4 and ("default" in schema or not required)
    return Field(name, schema, required, KEPT if keeps else chance.choice(values))


def _asked(chance: random.Random, kind: str) -> tuple[dict[str, Any], list[Any]]:
    """Return what a field is, and values that fit."""
    match kind:
        case "text":
            return {"type": "string"}, list(TEXTS)
        case "short":
            return {"type": "string", "maxLength": 40}, [text for text in TEXTS if len(text) <= 40 and "\n" not in text]
        case "integer":
            return {"type": "integer", "minimum": -5}, [0, 7, -5, 10**9]
        case "number":
            return {"type": "number"}, [0, 0.5, -3.25, 1e300]
        case "boolean":
            return {"type": "boolean"}, [True, False]
        case _:
            return _chosen(chance, several=kind == "choices")


def _chosen(chance: random.Random, *, several: bool) -> tuple[dict[str, Any], list[Any]]:
    values = chance.sample(CHOICES, chance.randint(2, 4))
    titles = chance.sample(TITLES, len(values))
    titled = [{"const": value, "title": title} for value, title in zip(values, titles, strict=True)]
    if several:
        items = chance.choice(({"type": "string", "enum": values}, {"anyOf": titled}))
        return {"type": "array", "items": items}, [values[:1], values[1:]]
    shape = chance.choice(({"enum": values}, {"enum": values, "enumNames": titles}, {"oneOf": titled}))
    return {"type": "string", **shape}, values


def named(shown: str, field: Field) -> bool:
    """Return whether a label is that of a field, perhaps with a star after it."""
    said = plain(shown).removesuffix(" *").strip()
    return said == field.label.strip()


__all__ = ["KEPT", "Field", "Form", "form_of", "named"]
