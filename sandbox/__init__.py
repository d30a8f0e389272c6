"""Jails, the program protocol and root images: what runs here can harm nothing."""

from sandbox.plan import ToolCaller, register_tool_caller, run_python_plan
from sandbox.sandbox_result import SandboxResult

__all__ = ["SandboxResult", "ToolCaller", "register_tool_caller", "run_python_plan"]
