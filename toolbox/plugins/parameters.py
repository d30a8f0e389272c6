"""Say in JSON Schema what a chain of parsers takes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from toolbox.plugins.captured import Argument, Parser

_WORD = re.compile(r"\W+")
_CHOICES = 1000


@dataclass(frozen=True, slots=True)
class Parameter:
    """Hold one argument under the name that callers give it."""

    name: str
    argument: Argument

    @property
    def required(self) -> bool:
        """Return whether it must be given."""
        argument = self.argument
        if argument.options:
            return argument.required
        return argument.nargs in {None, "+"} or (isinstance(argument.nargs, int) and argument.nargs > 0)

    @property
    def flag(self) -> bool:
        """Return whether false is the same as leaving it out."""
        return self.argument.kind == "const"


@dataclass(frozen=True, slots=True)
class Level:
    """Hold one parser of the chain that leads to a subcommand."""

    command: str | None
    """The word that leads to it; None for the first."""
    parser: Parser
    parameters: tuple[Parameter | None, ...]
    """One for each argument of the parser; none for one that is hidden."""

    def present(self) -> list[Parameter]:
        """Return those that callers see."""
        return [one for one in self.parameters if one is not None]

    def groups(self) -> list[tuple[list[Parameter], bool]]:
        """Return which exclude each other, and whether one of them must be given."""
        named = [
            ([found for member in one.members if (found := self.parameters[member]) is not None], one.required)
            for one in self.parser.exclusive
        ]
        return [group for group in named if len(group[0]) > 1 or (group[1] and group[0])]


def levels_of(chain: Sequence[tuple[str | None, Parser]]) -> tuple[Level, ...]:
    """Name the arguments of each parser; the last parser's names come first, so that they stay as they are."""
    taken: set[str] = set()
    levels = [
        Level(command, parser, tuple(_named(argument, taken) for argument in parser.arguments))
        for command, parser in reversed(chain)
    ]
    return tuple(reversed(levels))


def schema_of(levels: Sequence[Level]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that these parsers take together."""
    parameters = [one for level in levels for one in level.present()]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: _schema(one.argument) for one in parameters},
        "additionalProperties": False,
    }
    if needed := [one.name for one in parameters if one.required]:
        schema["required"] = needed
    if rules := [rule for level in levels for members, needs in level.groups() for rule in _rules(members, needs)]:
        # Model endpoints refuse `not` and `anyOf` at the top of a schema, but not below `then`.
        schema |= {"if": {}, "then": {"allOf": rules}}
    return schema


def _named(argument: Argument, taken: set[str]) -> Parameter | None:
    if argument.hidden and not argument.required:
        return None
    said = max(argument.options, key=len) if argument.options else argument.dest
    if argument.kind == "boolean":
        said = argument.options[0]
    name = _WORD.sub("_", said.lstrip("-+/").replace("-", "_")).strip("_") or argument.dest or "value"
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return Parameter(unique, argument)


def _schema(argument: Argument) -> dict[str, Any]:
    schema = _shape(argument)
    if argument.help:
        schema["description"] = " ".join(argument.help.split())
    if argument.default is not None:
        schema["default"] = argument.default
    return schema


def _shape(argument: Argument) -> dict[str, Any]:
    match argument.kind:
        case "const" | "boolean":
            return {"type": "boolean"}
        case "count":
            return {"type": "integer", "minimum": 0, "maximum": 100}
        case "append" | "extend":
            inner = _item(argument) if argument.kind == "extend" or not argument.many else _list(argument)
            return {"type": "array", "items": inner}
        case _ if argument.many:
            return _list(argument)
        case _ if argument.nargs == "?" and argument.options:
            return {"anyOf": [_item(argument), {"const": True, "description": "the option alone, without a value"}]}
        case _:
            return _item(argument)


def _list(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "array", "items": _item(argument)}
    if isinstance(argument.nargs, int):
        return schema | {"minItems": argument.nargs, "maxItems": argument.nargs}
    return schema | {"minItems": 1} if argument.nargs == "+" else schema


def _item(argument: Argument) -> dict[str, Any]:
    schema: dict[str, Any] = {} if argument.type == "json" else {"type": argument.type}
    if argument.span is not None:
        return schema | {"minimum": argument.span[0], "maximum": argument.span[1]}
    if argument.choices is not None and len(argument.choices) <= _CHOICES:
        kinds = {"string": str, "integer": int, "number": int | float}
        if all(isinstance(one, kinds.get(argument.type, object)) for one in argument.choices):
            return schema | {"enum": list(argument.choices)}
        # The parser compares what a converter of its own makes of the text: only the text is known here.
        return {"type": "string", "enum": [str(one) for one in argument.choices]}
    return schema


def _rules(members: Sequence[Parameter], needed: bool) -> list[dict[str, Any]]:  # noqa: FBT001 - a fact of the group
    rules: list[dict[str, Any]] = [
        {"not": {"allOf": [_given(one), _given(other)]}} for one, other in combinations(members, 2)
    ]
    return [*rules, {"anyOf": [_given(one) for one in members]}] if needed else rules


def _given(parameter: Parameter) -> dict[str, Any]:
    given: dict[str, Any] = {"required": [parameter.name]}
    return {"properties": {parameter.name: {"const": True}}, **given} if parameter.flag else given
