"""A Python function as a tool: its schema is its signature, its description its docstring."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError, create_model

from backstay.errors import ArgumentsInvalid, ToolboxInvalid
from backstay.tools.tool import Safety
from toolbox.actions.tools import Tools
from toolbox.providers.declaration import CallTemplate
from toolbox.schema import without_key

_MARK = "__backstay_action__"
_JSON: TypeAdapter[Any] = TypeAdapter(Any)
AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class _Said:
    safety: Safety
    undo: CallTemplate | None
    calls: tuple[str, ...]


def action(
    *,
    safety: Safety | str = Safety.RESTRICTED_WRITE,
    undo: tuple[str, dict[str, Any]] | None = None,
    calls: tuple[str, ...] = (),
) -> Callable[[AnyFunction], AnyFunction]:
    """Make a tool of a function.

    `undo` names an action of the same provider and templates of its arguments over `result`, `arguments` and `effect`.
    `calls` names what it calls through `Tools`; without it, that is the function's own name.
    """
    template = None if undo is None else CallTemplate(tool=undo[0], arguments=undo[1])

    def mark(function: AnyFunction) -> AnyFunction:
        setattr(function, _MARK, _Said(Safety(safety), template, calls))
        return function

    return mark


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Hold one such function."""

    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
    model: type[BaseModel] = field(repr=False)
    schema: dict[str, Any] = field(repr=False)
    safety: Safety
    undo: CallTemplate | None
    tools: str | None
    """The parameter that takes Tools; None for a function that calls no other tool."""
    calls: tuple[str, ...]

    def admit(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function takes them. Raises ArgumentsInvalid in one line without a value."""
        try:
            admitted = self.model.model_validate(arguments)
        except ValidationError as error:
            faults = (
                f"{'.'.join(map(str, fault['loc']))}: {fault['msg'].removeprefix('Value error, ')}"
                for fault in error.errors(include_input=False)
            )
            raise ArgumentsInvalid("; ".join(faults)[:500]) from None
        return {name: getattr(admitted, name) for name in self.model.model_fields}

    async def run(self, tools: Tools | None, arguments: dict[str, Any]) -> Any:
        """Call the function and return what it returns as JSON."""
        given = arguments if self.tools is None else {**arguments, self.tools: tools}
        result = await self.function(**given)
        return _JSON.dump_python(result, mode="json", fallback=str)


def wrappers_of(module: ModuleType) -> dict[str, Wrapper]:
    """Return the actions that a module defines, by name. Raises ToolboxInvalid for a signature without a schema."""
    found = [function for function in vars(module).values() if isinstance(getattr(function, _MARK, None), _Said)]
    own = [function for function in found if function.__module__ == module.__name__]
    return {function.__name__: _wrapper(function, getattr(function, _MARK)) for function in own}


def _wrapper(function: Callable[..., Any], said: _Said) -> Wrapper:
    name = function.__name__
    if not inspect.iscoroutinefunction(function):
        raise ToolboxInvalid(f"action {name}: write `async def`, and run blocking work in asyncio.to_thread")
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        tools = next((name for name in parameters if hints.get(name) is Tools), None)
        fields: dict[str, Any] = {
            name: _field(parameter, hints) for name, parameter in parameters.items() if name != tools
        }
        model = create_model(f"{function.__name__}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = model.model_json_schema()
    except (NameError, TypeError, ValueError, RuntimeError) as error:
        raise ToolboxInvalid(f"action {name}: its signature cannot be turned into a schema: {error}") from None
    return Wrapper(
        name=name,
        description=inspect.cleandoc(function.__doc__ or ""),
        function=function,
        model=model,
        schema=without_key(schema, "title"),
        safety=said.safety,
        undo=said.undo,
        tools=tools,
        calls=(said.calls or (name,)) if tools is not None else (),
    )


def _field(parameter: inspect.Parameter, hints: dict[str, Any]) -> tuple[Any, Any]:
    if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        raise ValueError(f"{parameter.name} takes any number of arguments; name each one")
    if parameter.name not in hints:
        raise ValueError(f"{parameter.name} has no type; write one")
    return hints[parameter.name], ... if parameter.default is inspect.Parameter.empty else parameter.default
