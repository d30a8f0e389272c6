"""The package sandbox_py: one module per provider, whose functions are compiled when they are first used."""

import __future__

import sys
from types import ModuleType
from typing import Any

from sandbox.guest.programs.errors import OutcomeSettled, ToolError
from sandbox.guest.programs.tool_calls import ProgramCalls

PACKAGE = "sandbox_py"
_MARK = f"<{PACKAGE}."
_SHOWN = 20
UNSET: Any = object()
"""Stands for an argument that was not given."""
# Annotations tell people and are never looked at, so the names in them need not exist here.
_FLAGS = __future__.annotations.compiler_flag


def install(bindings: dict[str, dict[str, str]], tool_calls: ProgramCalls) -> dict[str, Any]:
    """Make the package importable and return what a program finds imported already."""
    errors = {"ToolError": ToolError, "OutcomeSettled": OutcomeSettled}
    names = {"call": tool_calls.call, "result": tool_calls.result, "UNSET": UNSET, **errors}
    package = _module(PACKAGE, {}, package=True)
    package.__dict__["client"] = _module(f"{PACKAGE}.client", names)
    package.__dict__["servers"] = servers = _module(f"{PACKAGE}.servers", {}, package=True)
    for provider, sources in bindings.items():
        servers.__dict__[provider] = _provider(f"{PACKAGE}.servers.{provider}", sources, names)
    return {**{name: servers.__dict__[name] for name in bindings}, "result": tool_calls.result, **errors}


def is_binding(filename: str) -> bool:
    """Return whether code of this file is a binding."""
    return filename.startswith(_MARK)


def _module(name: str, content: dict[str, Any], *, package: bool = False) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(content, __package__=name if package else name.rpartition(".")[0])
    if package:
        vars(module)["__path__"] = []
    sys.modules[name] = module
    return module


def _provider(name: str, sources: dict[str, str], names: dict[str, Any]) -> ModuleType:
    provider = name.rpartition(".")[2]

    def fetch(function: str) -> Any:
        source = sources.get(function)
        if source is None:
            some = ", ".join(sorted(sources)[:_SHOWN])
            more = f" and {len(sources) - _SHOWN} more" if len(sources) > _SHOWN else ""
            raise AttributeError(f"{provider} has no function {function!r}; it has {some}{more}")
        known = {"__name__": name, **names}
        exec(compile(source, f"{_MARK}{provider}.{function}>", "exec", _FLAGS, dont_inherit=True), known)  # noqa: S102 - rendered by the host
        vars(module)[function] = known[function]
        return known[function]

    module = _module(name, {"__getattr__": fetch, "__dir__": lambda: sorted(sources)})
    return module
