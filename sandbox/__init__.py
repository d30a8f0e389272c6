"""Confine what a model writes: programs, commands and files run in jails.

May import: backstay, system.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.programs.standalone import SandboxResult, ToolCaller, register_tool_caller, run_python_plan

__all__ = ["SandboxResult", "ToolCaller", "register_tool_caller", "run_python_plan"]


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: the engine itself uses none of them.
    if name in __all__:
        return getattr(importlib.import_module("sandbox.programs.standalone"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
