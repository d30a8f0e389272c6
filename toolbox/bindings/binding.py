"""One tool as a Python function: its names, its parameters, and what a reader is told."""

from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any

from toolbox.bindings.names import IN_BINDINGS, literal, unique
from toolbox.bindings.types import Types
from toolbox.catalog.definition import Definition

_PARAMETERS = 200
_DEFAULT = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class BoundParameter:
    """Hold one parameter of the function and the argument of the tool that it stands for."""

    argument: str
    """Its name in the tool's schema."""
    name: str
    """Its name in the function of `sandbox_py`."""
    type: str
    """As Python writes it; a `?` after a field of an inline object marks what may be left out."""
    required: bool
    description: str
    default: str | None
    """The default that the schema names, as Python writes it; the server applies it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionBinding:
    """Hold a tool's function: `module.function(...)` calls `tool`."""

    module: str
    function: str
    tool: str
    parameters: tuple[BoundParameter, ...]
    """The required ones first."""
    others: str | None
    """The name that takes all other arguments, or None when the tool takes no others."""
    records: dict[str, dict[str, str]]
    """Nested objects with known fields, in the order in which they must be defined."""
    description: str
    safety: str

    @property
    def signature(self) -> Signature:
        """Return the signature; a parameter with any default may be left out."""
        named = [
            Parameter(
                parameter.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if parameter.required else parameter.default,
                annotation=parameter.type,
            )
            for parameter in self.parameters
        ]
        rest = [Parameter(self.others, Parameter.VAR_KEYWORD, annotation="Any")] if self.others else []
        return Signature([*named, *rest], return_annotation="Any")


def bind(definition: Definition, module: str, function: str, *, inline: bool = False) -> FunctionBinding:
    """Return the function of a tool; inline types name the fields of nested objects in place."""
    types = Types(definition.parameters, prefix=function, taken=IN_BINDINGS | {function}, inline=inline)
    members = types.members(definition.parameters)
    few = len(members.fields) <= _PARAMETERS
    names = unique(members.fields if few else (), reserved=IN_BINDINGS, plain=False)
    bound = [
        _parameter(types, name, members.fields[name], names[name], required=name in members.required) for name in names
    ]
    others = unique([*names.values(), "others"], reserved=IN_BINDINGS | {*names.values()}, plain=False)["others"]
    return FunctionBinding(
        module=module,
        function=function,
        tool=definition.name,
        parameters=tuple(sorted(bound, key=lambda parameter: not parameter.required)),
        others=others if members.open or not few else None,
        records=types.records,
        description=definition.description,
        safety=_safety(definition),
    )


def _parameter(types: Types, argument: str, rule: Any, name: str, *, required: bool) -> BoundParameter:
    said = rule if isinstance(rule, dict) else {}
    description = said.get("description")
    return BoundParameter(
        name=name,
        argument=argument,
        type=types.of(rule, argument),
        required=required,
        description=description if isinstance(description, str) else "",
        default=_shown(said["default"]) if "default" in said and not required else None,
    )


def _shown(default: Any) -> str | None:
    try:
        text = literal(default) if isinstance(default, str) else ascii(default)
    except (ValueError, RecursionError):
        return None
    return text if len(text) <= _DEFAULT else None


def _safety(definition: Definition) -> str:
    tool = definition.tool
    if tool.safety.level == 0:
        return f"{tool.safety}."
    return f"{tool.safety}, {f'undone by {tool.undo_declared}' if tool.undo_declared else 'cannot be undone'}."
