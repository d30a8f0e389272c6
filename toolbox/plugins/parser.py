"""Read an argparse parser, as `dump_parser.py` prints it, and build the JSON Schema of its arguments."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

_WORD = re.compile(r"\W+")
_CHOICES = 1000


class _ParserDump(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Argument(_ParserDump):
    """Hold one argument of a parser."""

    kind: Literal["store", "const", "boolean", "count", "append", "extend"]
    dest: str
    options: tuple[str, ...] = ()
    """As they are written, such as `-v` and `--verbose`; empty for a positional argument."""
    nargs: int | str | None = None
    type: Literal["string", "integer", "number", "boolean", "json"] = "string"
    required: bool = False
    help: str = ""
    default: Any = None
    choices: tuple[Any, ...] | None = None
    span: tuple[int, int] | None = None
    """The smallest and the largest of choices that are a range."""

    @property
    def many(self) -> bool:
        """Whether it takes a list each time it is given."""
        return self.nargs not in {None, "?", 0}


class ExclusiveGroup(_ParserDump):
    """Name arguments of which at most one may be given."""

    members: tuple[int, ...]
    required: bool = False


class Parser(_ParserDump):
    """Hold a parser and those of its subcommands."""

    summary: str = ""
    description: str = ""
    prefixes: str = "-"
    number_options: bool = False
    """Whether it has options such as `-1`; then a negative number cannot be a value."""
    file_prefixes: str = ""
    """A word that begins with one of these characters is replaced by the content of a file."""
    read_twice: bool = False
    """Whether words are read again after they were read once; then a `--` before them does not make them values."""
    others_unseen: bool = False
    """Whether the program was stopped at it, though it may have gone on to another one."""
    went_on: bool = False
    """Whether the program went on behind it and met no other: it takes no `--help` itself, and leaves words over."""
    arguments: tuple[Argument, ...] = ()
    exclusive: tuple[ExclusiveGroup, ...] = ()
    commands: dict[str, "Parser"] = Field(default_factory=dict)


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
    parameters: tuple[Parameter, ...]
    """One for each argument of the parser."""

    def groups(self) -> list[tuple[list[Parameter], bool]]:
        """Return the parameters that exclude each other, and whether one of them must be given."""
        groups = self.parser.exclusive
        named = [([self.parameters[member] for member in group.members], group.required) for group in groups]
        return [(members, needed) for members, needed in named if len(members) > 1 or (needed and members)]


def levels_of(chain: Sequence[tuple[str | None, Parser]]) -> tuple[Level, ...]:
    """Name the arguments of each parser, starting with the last one, so that its names need no numbers."""
    taken: set[str] = set()
    levels = [
        Level(command, parser, tuple(_named(argument, taken) for argument in parser.arguments))
        for command, parser in reversed(chain)
    ]
    return tuple(reversed(levels))


def schema_of(levels: Sequence[Level]) -> dict[str, Any]:
    """Return the JSON Schema of the arguments that these parsers take together."""
    parameters = [parameter for level in levels for parameter in level.parameters]
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: _described(parameter.argument) for parameter in parameters},
        "additionalProperties": False,
    }
    if needed := [parameter.name for parameter in parameters if parameter.required]:
        schema["required"] = needed
    if rules := [rule for level in levels for members, needs in level.groups() for rule in _rules(members, needs)]:
        # Model endpoints refuse `not` and `anyOf` at the top of a schema, but not below `then`.
        schema |= {"if": {}, "then": {"allOf": rules}}
    return schema


def _named(argument: Argument, taken: set[str]) -> Parameter:
    written = (
        argument.options[0] if argument.kind == "boolean" else max(argument.options, key=len, default=argument.dest)
    )
    name = _WORD.sub("_", written.lstrip("-+/").replace("-", "_")).strip("_") or argument.dest or "value"
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}_{number}"
    taken.add(unique)
    return Parameter(unique, argument)


def _described(argument: Argument) -> dict[str, Any]:
    schema = _value(argument)
    if argument.help:
        schema["description"] = " ".join(argument.help.split())
    if argument.default is not None:
        schema["default"] = argument.default
    return schema


def _value(argument: Argument) -> dict[str, Any]:
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
        if all(isinstance(choice, kinds.get(argument.type, object)) for choice in argument.choices):
            return schema | {"enum": list(argument.choices)}
        # The program converts the text before it compares it with the choices; only the text is known here.
        return {"type": "string", "enum": [str(choice) for choice in argument.choices]}
    return schema


def _rules(members: Sequence[Parameter], needed: bool) -> list[dict[str, Any]]:  # noqa: FBT001 - a fact of the group
    given = [_given(member) for member in members]
    rules: list[dict[str, Any]] = [{"not": {"allOf": list(pair)}} for pair in combinations(given, 2)]
    return [*rules, {"anyOf": given}] if needed else rules


def _given(parameter: Parameter) -> dict[str, Any]:
    given: dict[str, Any] = {"required": [parameter.name]}
    return {"properties": {parameter.name: {"const": True}}, **given} if parameter.flag else given
