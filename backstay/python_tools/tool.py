"""Make a tool of a Python function, and say what it does to the world."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from backstay.errors import ToolboxInvalid
from backstay.tools.tool import Safety

_MARK = "__backstay_tool__"
_LONGEST_S = 3600.0
MOST_RETRIES = 10

Function = TypeVar("Function", bound=Callable[..., Any])
Hook = Callable[..., Any]
"""`f(result, arguments, context)`, sync or async."""
SafetyName = Literal["read_only", "write_safe", "restricted_write"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """Hold what `@tool` says of a function."""

    name: str | None = None
    safety: Safety = Safety.RESTRICTED_WRITE
    undo: Hook | None = field(default=None, repr=False)
    verify: Hook | None = field(default=None, repr=False)
    succeeded_if: Callable[[Any], bool] | None = field(default=None, repr=False)
    transactional: bool = False
    cache: float | None = None
    timeout: float = 30
    retries: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def calls(self) -> tuple[str, ...]:
        """Return the names of all tools that it may call."""
        return tuple(dict.fromkeys((*self.reads, *self.writes)))

    def fault(self) -> str | None:
        """Return which options do not fit together, with the fix, or None."""
        read_only = self.safety is Safety.READ_ONLY
        if read_only and self.writes:
            return "writes: a read_only tool writes nothing; remove it or change `safety`"
        if read_only and (self.undo or self.verify or self.succeeded_if):
            return "safety: a read_only tool has no effect to undo, verify or judge; remove these or change `safety`"
        if self.transactional and self.undo is None:
            return "transactional: there is no undo; give `undo` or remove this"
        if self.cache is not None and not read_only:
            return "cache: only answers of read_only tools are kept; remove it or change `safety`"
        if self.cache is not None and not 0 < self.cache <= 24 * _LONGEST_S:
            return f"cache: {self.cache!r} is not a number of seconds above 0 and at most 86400"
        if not 0 < self.timeout <= _LONGEST_S:
            return f"timeout: {self.timeout!r} is not a number of seconds above 0 and at most 3600"
        if not 0 <= self.retries <= MOST_RETRIES:
            return f"retries: {self.retries!r} is not a number from 0 to {MOST_RETRIES}"
        if self.retries and self.writes:
            return "retries: a tool that calls another one's write makes that call once; remove it"
        return None


@overload
def tool(function: Function, /) -> Function: ...
@overload
def tool(
    name: str | None = None,
    /,
    *,
    safety: SafetyName | Safety = "restricted_write",
    undo: Hook | None = None,
    verify: Hook | None = None,
    succeeded_if: Callable[[Any], bool] | None = None,
    transactional: bool = False,
    cache: float | None = None,
    timeout: float = 30,
    retries: int = 0,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
) -> Callable[[Function], Function]: ...
def tool(name: Any = None, /, **said: Any) -> Any:
    """Make a tool of a function and return the function as it is. Raises ToolboxInvalid for options that do not fit.

    The arguments of the function are those of the tool, and its docstring describes it to the model.
    """
    if callable(name):
        return _marked(name, ToolOptions())
    options = _options(name, said)
    return lambda function: _marked(function, options)


def options_of(function: Any) -> ToolOptions | None:
    """Return what `@tool` said of a function, or None."""
    found = inspect.getattr_static(function, _MARK, None)
    return found if isinstance(found, ToolOptions) else None


def _options(name: Any, said: dict[str, Any]) -> ToolOptions:
    named = f"tool {name}" if name else "tool"
    try:
        safety = Safety(said.pop("safety", Safety.RESTRICTED_WRITE))
    except ValueError as error:
        raise ToolboxInvalid(f"{named}: safety: {error}; use {', '.join(Safety)}") from None
    for field_name in ("reads", "writes"):
        if isinstance(said.get(field_name), str):
            raise ToolboxInvalid(f"{named}: {field_name}: give a list of names")
        said[field_name] = tuple(said.get(field_name, ()))
    return ToolOptions(name=name, safety=safety, **said)


def _marked(function: Any, options: ToolOptions) -> Any:
    if not inspect.isfunction(function):
        raise ToolboxInvalid(f"tool {options.name or function!r}: @tool marks a function; write one with `def`")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolboxInvalid(f"tool {options.name or function.__name__}: it yields; return one value")
    if (fault := options.fault()) is not None:
        raise ToolboxInvalid(f"tool {options.name or function.__name__}: {fault}")
    setattr(function, _MARK, options)
    return function
