"""Read the JSON Schema of an answer as a form: one field after the other, each in words, with what a person types."""

import json
import math
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from backstay.approvals.layout import argument_lines
from backstay.canonical import KeyTwice, canonical, read_json
from backstay.shown import LINE_BREAK

Kind = Literal["text", "whole number", "number", "yes or no", "choice", "choices", "nothing", "JSON"]
_YES, _NO = frozenset({"y", "yes", "true"}), frozenset({"n", "no", "false"})
_KINDS: dict[Any, Kind] = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "null": "nothing",
}
_OF_A_FORM = frozenset({"$schema", "$defs", "type", "properties", "required", "title", "description"})
_SAID = frozenset({"type", "title", "description", "default", "enum", "enumNames"})
"""What a field's own words say, or its choices."""
_DEEPEST = 3


class Choice(NamedTuple):
    """Hold one value that an answer may have, and what people call it."""

    value: Any
    title: str


class FormField(NamedTuple):
    """Hold one thing that a form asks for."""

    path: tuple[str, ...]
    schema: dict[str, Any]
    required: bool
    kind: Kind
    choices: tuple[Choice, ...] = ()

    @property
    def name(self) -> str:
        """Return the name under which it is asked and set."""
        return field_name(self.path)

    @property
    def default(self) -> Any:
        """Return what holds when nothing is typed; None for none, and where several choices need a list."""
        held = self.schema.get("default")
        return None if self.kind == "choices" and not isinstance(held, list) else held

    @property
    def preselected(self) -> tuple[int, ...]:
        """Return the positions of the choices that hold when nobody chooses any."""
        if self.default is None:
            return ()
        held: list[Any] = self.default if self.kind == "choices" else [self.default]
        return tuple(at for at, choice in enumerate(self.choices) if any(choice.value == value for value in held))

    @property
    def default_text(self) -> str:
        """Return the default as it is in a field that nobody has touched; empty for none.

        A form that is shown has marks for the line breaks of its texts; a person who changes a string changes its
        lines.
        """
        if self.default is None:
            return ""
        if self.kind == "text":
            return as_typed(self.default).replace(LINE_BREAK, "\n") or '""'
        if self.kind == "choice":
            return as_typed(self.default) or '""'
        return json.dumps(self.default, ensure_ascii=False)

    @property
    def numbered(self) -> bool:
        """Return whether a choice can be made by its number, because no choice reads as one."""
        return not any(as_typed(choice.value).strip().lstrip("-").isdecimal() for choice in self.choices)

    def line(self) -> str:
        """Return what is asked in one line: name, title and description, and what fits."""
        told = [str(self.schema[word]) for word in ("title", "description") if isinstance(self.schema.get(word), str)]
        said = f"{self.name}: {' - '.join(told)}" if told else self.name
        return f"{said} ({self._fits()})"

    @property
    def hint(self) -> str:
        """Return what fits, where a field does not show it by itself; empty for a string or a choice of any kind."""
        plain = [str(self.kind)] if self.kind in {"whole number", "number", "JSON"} else []
        return "; ".join([*plain, *self._bounds])

    @property
    def _bounds(self) -> list[str]:
        return [f"{word} {as_typed(value)}" for word, value in self.schema.items() if word not in _SAID | self._chosen]

    def _fits(self) -> str:
        several = "any of" if self.kind == "choices" else "one of"
        what: list[str] = [f"{several} {self._choices()}" if self.choices else str(self.kind)]
        what += self._bounds
        what += ["required" if self.required else "optional"]
        what += [f"default {as_typed(self.default)}"] if self.default is not None else []
        return "; ".join(what)

    @property
    def _chosen(self) -> frozenset[str]:
        """Return which words of the schema are its choices."""
        return frozenset({"oneOf", "anyOf", "items"}) if self.choices else frozenset()

    def _choices(self) -> str:
        shown = [f"{as_typed(value)}{f' {title}' if title else ''}" for value, title in self.choices]
        return ", ".join(f"[{number}] {text}" if self.numbered else text for number, text in enumerate(shown, 1))

    def parse(self, typed: str) -> Any:
        """Return the value of what a person typed; raises ValueError saying what is expected."""
        match self.kind:
            case "text":
                return _quoted(typed)
            case "whole number" | "number":
                return _number(typed, whole=self.kind == "whole number")
            case "yes or no":
                if typed.lower() in _YES | _NO:
                    return typed.lower() in _YES
                raise ValueError("type yes or no")
            case "choice":
                return self._choice(typed)
            case "choices":
                parts = typed_json(typed) if typed.startswith("[") else [part.strip() for part in typed.split(",")]
                return [self._choice(as_typed(part)) for part in parts if part != ""]
            case _:
                return typed_json(typed)

    def _choice(self, typed: str) -> Any:
        for choice in self.choices:
            if as_typed(choice.value) == typed:
                return choice.value
        if self.numbered and typed.isdecimal() and 1 <= int(typed) <= len(self.choices):
            return self.choices[int(typed) - 1].value
        # In quotes, line breaks can be typed, for which a form that is shown has marks.
        lines = _quoted(typed).replace("\n", LINE_BREAK)
        if lines != typed and any(choice.value == lines for choice in self.choices):
            return lines
        raise ValueError(f"choose from {self._choices()}")


def field_name(path: tuple[str, ...]) -> str:
    """Return the name of the field at a path; two paths may have the same."""
    return ".".join(path) or "answer"


def fields_of(schema: dict[str, Any]) -> list[FormField]:
    """Return what a schema asks for; a schema that is not a form is one field for the whole answer."""
    return list(_fields(schema, (), required=True))


def form_lines(schema: dict[str, Any]) -> Iterator[str]:
    """Yield what is asked, a line for each field, and what else the schema demands."""
    for field in fields_of(schema):
        if field.kind != "nothing":
            yield field.line()
    if _is_form(schema):
        for word, said in schema.items():
            if word not in _OF_A_FORM:
                yield from argument_lines(word, said)


def answer_of(values: dict[tuple[str, ...], Any]) -> Any:
    """Return the answer that consists of these values, by the path of their fields."""
    if () in values:
        return values[()]
    answer: dict[str, Any] = {}
    for path, value in values.items():
        inner = answer
        for key in path[:-1]:
            inner = inner.setdefault(key, {})
        inner[path[-1]] = value
    return answer


def _fields(schema: dict[str, Any], path: tuple[str, ...], *, required: bool) -> Iterator[FormField]:
    if not _is_form(schema) or len(path) >= _DEEPEST:
        yield _field(schema, path, required=required)
        return
    demanded: Any = schema.get("required")
    for name, inner in schema["properties"].items():
        given = inner if isinstance(inner, dict) else {}
        wanted = isinstance(demanded, list) and name in demanded
        # A field of an object that may be left out may be left out, too.
        yield from _fields(given, (*path, name), required=required and wanted)


def _is_form(schema: dict[str, Any]) -> bool:
    return isinstance(schema.get("properties"), dict) and bool(schema["properties"])


def _field(schema: dict[str, Any], path: tuple[str, ...], *, required: bool) -> FormField:
    schema = _without_null(schema)
    if choices := _choices_of(schema):
        return FormField(path, schema, required, "choice", choices)
    items: Any = schema.get("items")
    if schema.get("type") == "array" and isinstance(items, dict) and (choices := _choices_of(items)):
        return FormField(path, schema, required, "choices", choices)
    kind: Any = schema.get("type")
    return FormField(path, schema, required, _KINDS.get(kind, "JSON") if isinstance(kind, str) else "JSON")


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may also be null without that; it is left out instead."""
    options: Any = schema.get("anyOf")
    if not isinstance(options, list):
        return schema
    named = [option for option in options if option != {"type": "null"}]
    if len(named) != 1 or not isinstance(named[0], dict):
        return schema
    return {word: value for word, value in schema.items() if word != "anyOf"} | named[0]


def _choices_of(schema: dict[str, Any]) -> tuple[Choice, ...]:
    listed: Any = schema.get("enum")
    if isinstance(listed, list):
        titles: Any = schema.get("enumNames")
        known = titles if isinstance(titles, list) and len(titles) == len(listed) else [""] * len(listed)
        return tuple(Choice(value, str(title)) for value, title in zip(listed, known, strict=True))
    options: Any = schema.get("oneOf", schema.get("anyOf"))
    if isinstance(options, list) and all(isinstance(option, dict) and "const" in option for option in options):
        return tuple(Choice(option["const"], str(option.get("title", ""))) for option in options)
    return ()


def as_typed(value: Any) -> str:
    """Return a value as a person would type it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _quoted(typed: str) -> str:
    """Return a string; one in quotes is read as JSON, so that an empty text and line breaks can be typed."""
    if len(typed) > 1 and typed[0] == typed[-1] == '"':
        try:
            return str(json.loads(typed))
        except ValueError:
            return typed
    return typed


def _number(typed: str, *, whole: bool) -> float:
    if "_" in typed:
        # Python would leave it out, and read 1_5 as 15.
        raise ValueError("type a whole number, without _" if whole else "type a number, without _")
    try:
        return int(typed)
    except ValueError:
        if whole:
            raise ValueError("type a whole number") from None
    try:
        value = float(typed)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("type a number")
    return value


def typed_json(typed: str) -> Any:
    """Return the value of JSON that a person typed; raises ValueError saying what to type."""
    try:
        value = read_json(typed)
        # Python also reads numbers as JSON that nobody can send, such as NaN and 1e999.
        canonical(value)
    except KeyTwice:
        raise
    except (ValueError, RecursionError):
        raise ValueError('invalid JSON; type JSON, such as "text", 7 or ["a", "b"]') from None
    return value
