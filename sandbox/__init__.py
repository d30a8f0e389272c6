"""Confine what a model writes: programs, commands and files run in jails.

May import: backstay, system.
"""

from sandbox.programs.standalone import SandboxResult, ToolCaller, register_tool_caller, run_python_plan

__all__ = ["SandboxResult", "ToolCaller", "register_tool_caller", "run_python_plan"]
