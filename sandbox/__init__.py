"""Jails, the program protocol and root images: what runs here can harm nothing."""

from sandbox.programs.plan import SandboxResult, ToolCaller, register_tool_caller, run_python_plan

__all__ = ["SandboxResult", "ToolCaller", "register_tool_caller", "run_python_plan"]
