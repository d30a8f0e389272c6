"""Load the functions and the shape that an entry of `python` names."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from backstay.canonical import digest_of
from backstay.errors import ToolboxInvalid
from backstay.python_tools.function import FunctionTool, function_tool, hook_tool
from backstay.python_tools.tool import options_of
from backstay.shown import message_line
from backstay.tools.tool import Safety
from toolbox.configuration.configuration import ProviderEntry, PythonEntry, Shape
from toolbox.configuration.template import check
from toolbox.providers.declaration import NOT_FALSE, CallTemplate, Check, Declaration

_BUNDLED = Path(__file__).with_name("bundled")
_GROUP = "backstay.tools"
_MOST_SOURCES = 1000
_SHAPES: TypeAdapter[dict[str, Shape]] = TypeAdapter(dict[str, Shape])


@dataclass(frozen=True, slots=True)
class LoadedTool:
    """Hold a function, and what it says of itself."""

    function: FunctionTool
    declared: Declaration
    hidden: bool = False
    """Whether it undoes or verifies another tool, so that only the engine calls it."""


def load_tools(
    name: str, entry: PythonEntry, operator: ProviderEntry, folder: Path
) -> tuple[dict[str, LoadedTool], Shape]:
    """Return the tools by name and the shape of what they call; paths begin in the folder.

    `operator` is what toolbox.json declares about them. Raises ToolboxInvalid naming field, value and fix.
    """
    field = f"python.{name}"
    chosen = entry.module or name
    bundled = chosen in bundled_modules()
    module = _bundled(chosen) if bundled else _chosen(field, name, entry, folder)
    try:
        tools = _tools_of(module)
        for tool in tools.values():
            _check_declared(tool.function, operator)
    except ToolboxInvalid as error:
        raise ToolboxInvalid(f"{field}.module: {error}") from None
    if not tools:
        raise ToolboxInvalid(f"{field}.module: {chosen!r} defines no function with @tool; add one")
    shape = entry.shape if isinstance(entry.shape, dict) else {}
    if isinstance(entry.shape, str) and bundled:
        shapes = bundled_shapes(chosen)
        if entry.shape not in shapes:
            raise ToolboxInvalid(
                f"{field}.shape: unknown {entry.shape!r} (known: {', '.join(shapes)}); or write it out"
            )
        shape = shapes[entry.shape]
    if entry.provider is None and (calling := [name for name, tool in tools.items() if tool.function.options.calls]):
        raise ToolboxInvalid(f"{field}.provider: {calling[0]} calls tools; name the server that has them")
    _check_shape(f"{field}.shape", tools, shape, known_arguments=bundled)
    return tools, shape


@cache
def bundled_modules() -> tuple[str, ...]:
    """Return the names of the tools in Python that come with the engine."""
    return tuple(sorted(path.stem for path in _BUNDLED.glob("*.json")))


@cache
def bundled_shapes(module: str) -> dict[str, Shape]:
    """Return the shapes of servers that are known for bundled tools."""
    return _SHAPES.validate_json((_BUNDLED / f"{module}.json").read_bytes(), strict=False)


def _bundled(name: str) -> ModuleType:
    return importlib.import_module(f"toolbox.python_tools.bundled.{name}")


def _chosen(field: str, name: str, entry: PythonEntry, folder: Path) -> ModuleType:
    """Return the file, package or module that is named, or else what an installed package offers under the name."""
    offered = {point.name: point for point in entry_points(group=_GROUP)}
    if entry.module is None and name not in offered:
        known = ", ".join((*bundled_modules(), *sorted(offered)))
        raise ToolboxInvalid(
            f"{field}: neither backstay nor an installed package has tools of this name (known: {known}); give `module`"
        )
    named = entry.module or offered[name].value
    return import_module(f"{field}.module", named, folder, None if entry.module is not None else offered[name])


def import_module(field: str, named: str, folder: Path, point: EntryPoint | None = None) -> ModuleType:
    """Return a file `x.py` or package `x/` of the folder, an installed module, or that of an entry point.

    Raises ToolboxInvalid, whatever the module does.
    """
    try:
        return _imported(named, folder) if point is None else _module_of(point)
    except ToolboxInvalid as error:
        raise ToolboxInvalid(f"{field}: {named!r}: {error}") from None
    except (Exception, SystemExit) as error:  # a module of the operator's may fail in any way
        reason = f"{type(error).__name__}: {message_line(str(error))}"
        raise ToolboxInvalid(f"{field}: {named!r} cannot be loaded: {reason}") from None


def source_files(modules: Iterable[str], folder: Path) -> list[Path]:
    """Return the source of those modules that are a file `x.py` or a package `x/` of the folder."""
    found: list[Path] = []
    for named in modules:
        if named.endswith("/"):
            found += sorted((folder / named).rglob("*.py"))[:_MOST_SOURCES]
        elif named.endswith(".py"):
            found.append(folder / named)
    return found


def _module_of(point: EntryPoint) -> ModuleType:
    found = point.load()
    if not isinstance(found, ModuleType):
        raise ToolboxInvalid(f"the entry point in the group {_GROUP} is not a module; write {point.name} = 'a.module'")
    return found


def _imported(named: str, folder: Path) -> ModuleType:
    if not named.endswith((".py", "/")):
        return importlib.import_module(named)
    path = (folder / named).resolve()
    package = named.endswith("/")
    spec = importlib.util.spec_from_file_location(
        f"tools_{digest_of(str(path))[:16]}",
        path / "__init__.py" if package else path,
        submodule_search_locations=[str(path)] if package else None,
    )
    assert spec is not None  # noqa: S101 - the name ends in .py
    assert spec.loader is not None  # noqa: S101 - the same
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # types are looked up there
    spec.loader.exec_module(module)
    return module


def _tools_of(module: ModuleType) -> dict[str, LoadedTool]:
    """Return the tools that a module or package defines, by name, and what undoes and verifies them."""
    inside = (module.__name__, f"{module.__name__}.")
    marked = [(function, options) for function in vars(module).values() if (options := options_of(function))]
    own = {
        id(function): (function, options)
        for function, options in marked
        if function.__module__ == inside[0] or function.__module__.startswith(inside[1])
    }
    hooks = {id(hook) for _, options in own.values() for hook in (options.undo, options.verify)}
    tools: dict[str, LoadedTool] = {}
    for key, (function, _) in own.items():
        for tool in () if key in hooks else _with_hooks(function_tool(function)):
            name = tool.function.name
            if name in tools:
                raise ToolboxInvalid(f"tool {name}: two functions have this name; give one of them another")
            tools[name] = tool
    return tools


def _with_hooks(tool: FunctionTool) -> list[LoadedTool]:
    """Return a tool, and what undoes and verifies it as tools of their own."""
    options = tool.options
    declared: dict[str, Any] = {"safety": options.safety, "timeout": options.timeout}
    found: list[LoadedTool] = []
    if options.undo is not None:
        hook = hook_tool(f"{tool.name}_undo", options.undo)
        arguments = {"result": "{{ result }}", "arguments": "{{ arguments }}"}
        declared["undo"] = CallTemplate(tool=hook.name, arguments=arguments)
        found.append(LoadedTool(hook, Declaration(timeout=hook.options.timeout), hidden=True))
    if options.verify is not None:
        hook = hook_tool(f"{tool.name}_verify", options.verify)
        if hook.options.writes:
            raise ToolboxInvalid(f"tool {tool.name}: verify: it has `writes`, but it may only read; remove them")
        arguments = {"arguments": "{{ arguments }}", "effect_id": "{{ effect.id }}"}
        declared["verify"] = Check(
            tool=hook.name,
            arguments=arguments,
            applied_if=NOT_FALSE,
            result="{{ none if result is true else result }}",
        )
        found.append(LoadedTool(hook, Declaration(safety=Safety.READ_ONLY, timeout=hook.options.timeout), hidden=True))
    return [LoadedTool(tool, Declaration.model_validate(declared)), *found]


def _check_declared(tool: FunctionTool, operator: ProviderEntry) -> None:
    """Refuse what does not fit what toolbox.json declares about the tool."""
    options, declared, where = tool.options, operator.tools.get(tool.name), f"tool {tool.name}"
    safety = options.safety if declared is None or declared.safety is None else declared.safety
    idempotent = declared is not None and declared.idempotent
    if options.retries and safety is not Safety.READ_ONLY and not idempotent:
        raise ToolboxInvalid(
            f"{where}: retries: a write is made again only if it is declared `idempotent` in toolbox.json; "
            "declare it or remove retries"
        )
    if options.writes and safety is Safety.READ_ONLY:
        raise ToolboxInvalid(f"{where}: writes: toolbox.json says that the tool only reads; remove one of them")
    if options.cache is not None and safety is not Safety.READ_ONLY:
        raise ToolboxInvalid(f"{where}: cache: toolbox.json says that the tool writes; remove one of them")
    without_undo = declared is not None and "undo" in declared.model_fields_set and declared.undo is None
    if options.transactional and without_undo:
        raise ToolboxInvalid(f"{where}: transactional: toolbox.json takes its undo away; remove one of them")


def _check_shape(field: str, tools: dict[str, LoadedTool], shape: Shape, *, known_arguments: bool) -> None:
    called = {call: tool.function for tool in tools.values() for call in tool.function.options.calls}
    called |= {call: tools[call].function for call in called if call in tools}
    for call, shaped in shape.items():
        if call not in called:
            known = ", ".join(sorted(called)) or "none"
            raise ToolboxInvalid(f"{field}.{call}: no tool calls this (known: {known})")
        names = frozenset(called[call].model.model_fields) if known_arguments else None
        if names is not None and (fault := check(shaped.arguments, names)):
            raise ToolboxInvalid(f"{field}.{call}.arguments: {fault}")
