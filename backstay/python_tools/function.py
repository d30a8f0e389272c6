"""One function as a tool: its schema is its signature; and how one run of it ended."""

import inspect
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from backstay.errors import ArgumentsInvalid, ToolboxInvalid
from backstay.python_tools.context import AnswerNeeded, Retry, ToolContext, ToolError
from backstay.python_tools.tool import ToolOptions, options_of

InThread = Callable[..., Awaitable[Any]]
"""Calls a function that blocks in another thread."""

_JSON: TypeAdapter[Any] = TypeAdapter(Any)
_UNFIT = (NameError, TypeError, ValueError, RuntimeError, PydanticUserError)


class _AsReturned(GenerateJsonSchema):
    """Name fields as answers do: by their aliases only where a model says that it is written so."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        with self._written_as(schema["cls"].model_config):
            return super().model_schema(schema)

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        # Without a config of its own its fields have their own names, whatever the model around it says.
        with self._written_as(getattr(schema["cls"], "__pydantic_config__", None) or {}):
            return super().dataclass_schema(schema)

    @contextmanager
    def _written_as(self, config: Mapping[str, Any]) -> Generator[None]:
        before, self.by_alias = self.by_alias, bool(config.get("serialize_by_alias"))
        try:
            yield
        finally:
            self.by_alias = before


@dataclass(frozen=True, slots=True)
class FunctionOutcome:
    """Tell how one run of a function ended."""

    how: Literal["returned", "failed", "retry", "raised", "asked"]
    data: Any = None
    error: str | None = None
    asked: AnswerNeeded | None = None
    exception: BaseException | None = None


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """Hold a function that is a tool."""

    name: str
    description: str
    function: Callable[..., Any] = field(repr=False)
    options: ToolOptions
    model: type[BaseModel] = field(repr=False)
    schema: dict[str, Any] = field(repr=False)
    output_schema: dict[str, Any] | None = field(repr=False)
    context: str | None
    """The parameter that takes the ToolContext, or None."""
    is_async: bool

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
        return {name: getattr(admitted, name) for name in type(admitted).model_fields}

    async def run(self, arguments: dict[str, Any], context: ToolContext, in_thread: InThread) -> FunctionOutcome:
        """Call the function once with admitted arguments and return how that ended; it raises nothing of its own."""
        given = arguments if self.context is None else {**arguments, self.context: context}
        try:
            found = await (self.function(**given) if self.is_async else in_thread(self.function, **given))
            if inspect.isawaitable(found):
                found = await found
            data = _JSON.dump_python(found, mode="json", fallback=str)
            if self.options.succeeded_if is not None and not self.options.succeeded_if(found):
                return FunctionOutcome("failed", error="succeeded_if does not say that it succeeded")
        except Retry as error:
            return FunctionOutcome("retry", error=f"call it again in another way: {error}")
        except ToolError as error:
            return FunctionOutcome("failed", error=str(error) or type(error).__name__)
        except AnswerNeeded as asked:
            return FunctionOutcome("asked", asked=asked)
        except (Exception, SystemExit) as error:  # the code of a tool may fail in any way
            return FunctionOutcome("raised", error=f"the tool failed: {type(error).__name__}", exception=error)
        return FunctionOutcome("returned", data=data)


def function_tool(function: Callable[..., Any]) -> FunctionTool:
    """Return a function that `@tool` marks. Raises ToolboxInvalid for a signature without a schema."""
    options = options_of(function) or ToolOptions()
    name = options.name or function.__name__
    return _made(name, inspect.cleandoc(function.__doc__ or ""), function, options)


def hook_tool(name: str, hook: Callable[..., Any]) -> FunctionTool:
    """Return an undo or a verify as a tool of its own, which only the engine calls.

    `@tool` on the hook says which tools it calls. Raises ToolboxInvalid.
    """
    options = options_of(hook) or ToolOptions()
    if options.undo or options.verify:
        raise ToolboxInvalid(f"tool {name}: what undoes or verifies another tool has no undo or verify; remove them")

    def call(arguments: dict[str, Any], context: ToolContext, result: Any = None, effect_id: str = "") -> Any:
        if effect_id:
            context.effect_id = effect_id
        return hook(result, arguments, context)

    return _made(name, inspect.cleandoc(hook.__doc__ or ""), call, options, is_async=inspect.iscoroutinefunction(hook))


def _made(
    name: str, description: str, function: Callable[..., Any], options: ToolOptions, *, is_async: bool | None = None
) -> FunctionTool:
    try:
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters
        context = next((name for name in parameters if hints.get(name) is ToolContext), None)
        fields: dict[str, Any] = {
            name: _field(parameter, hints) for name, parameter in parameters.items() if name != context
        }
        model = create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
        schema = model.model_json_schema()
    except _UNFIT as error:
        raise ToolboxInvalid(f"tool {name}: its signature cannot be turned into a schema: {error}") from None
    if context is None and options.calls:
        raise ToolboxInvalid(f"tool {name}: it calls tools; give it a parameter of the type ToolContext")
    return FunctionTool(
        name=name,
        description=description,
        function=function,
        options=options,
        model=model,
        schema=schema,
        output_schema=_output_schema(hints.get("return", Any)),
        context=context,
        is_async=inspect.iscoroutinefunction(function) if is_async is None else is_async,
    )


def _field(parameter: inspect.Parameter, hints: dict[str, Any]) -> tuple[Any, Any]:
    if parameter.kind not in {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}:
        raise ValueError(f"{parameter.name} takes any number of arguments; name each one")
    if parameter.name not in hints:
        raise ValueError(f"{parameter.name} has no type; write one")
    return hints[parameter.name], ... if parameter.default is inspect.Parameter.empty else parameter.default


def _output_schema(returned: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of what the function says that it returns, where it says an object."""
    try:
        schema = TypeAdapter(returned).json_schema(mode="serialization", by_alias=False, schema_generator=_AsReturned)
    except _UNFIT:
        return None
    return schema if schema.get("properties") else None
