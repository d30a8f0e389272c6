"""Confine what a model writes: programs, commands and files run in jails.

May import: backstay, system.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sandbox.programs.bridge import ToolCaller
    from sandbox.programs.over_http import HttpPlanBackend
    from sandbox.programs.standalone import (
        PlanBackend,
        SandboxResult,
        register_plan_backend,
        register_tool_caller,
        run_python_plan,
    )

__all__ = [
    "HttpPlanBackend",
    "PlanBackend",
    "SandboxResult",
    "ToolCaller",
    "register_plan_backend",
    "register_tool_caller",
    "run_python_plan",
]
_ELSEWHERE = {"HttpPlanBackend": "over_http", "ToolCaller": "bridge"}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: the engine itself uses none of them.
    if name in __all__:
        return getattr(importlib.import_module(f"sandbox.programs.{_ELSEWHERE.get(name, 'standalone')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
