"""backstay: durable tool-using agents that survive crashes, ask first, and can be undone.

May import: no other room.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, Verdict
    from backstay.budgets.budget import Budget
    from backstay.client import Backstay, Run, connect
    from backstay.client.plugin import BackstayPlugin
    from backstay.digests.digest import summarize_payload
    from backstay.errors import BackstayError
    from backstay.library import execute_mcp_task
    from backstay.python_tools.context import CallRefused, Declined, Retry, ToolContext, ToolError
    from backstay.python_tools.safety import Ask, Deny, ProposedCall, safety_policy
    from backstay.python_tools.tool import tool
    from backstay.redaction.redactor import redact_payload
    from backstay.task.event import Event
    from backstay.task.plan import Plan, PlanStep
    from backstay.task.result import Outcome, Result
    from backstay.task.status import State, Status
    from backstay.task.task import Task

__all__ = [
    "Approval",
    "ApprovalRequest",
    "Ask",
    "Backstay",
    "BackstayError",
    "BackstayPlugin",
    "Budget",
    "CallRefused",
    "CallVerdict",
    "Declined",
    "Deny",
    "Event",
    "Outcome",
    "Plan",
    "PlanStep",
    "ProposedCall",
    "Result",
    "Retry",
    "Run",
    "State",
    "Status",
    "Task",
    "ToolContext",
    "ToolError",
    "Verdict",
    "connect",
    "execute_mcp_task",
    "redact_payload",
    "safety_policy",
    "summarize_payload",
    "tool",
]

_HOMES = {
    "approvals.approval": ("Approval", "ApprovalRequest", "CallVerdict", "Verdict"),
    "budgets.budget": ("Budget",),
    "client": ("Backstay", "Run", "connect"),
    "client.plugin": ("BackstayPlugin",),
    "digests.digest": ("summarize_payload",),
    "errors": ("BackstayError",),
    "task.event": ("Event",),
    "library": ("execute_mcp_task",),
    "python_tools.context": ("CallRefused", "Declined", "Retry", "ToolContext", "ToolError"),
    "python_tools.safety": ("Ask", "Deny", "ProposedCall", "safety_policy"),
    "python_tools.tool": ("tool",),
    "task.plan": ("Plan", "PlanStep"),
    "redaction.redactor": ("redact_payload",),
    "task.result": ("Outcome", "Result"),
    "task.status": ("State", "Status"),
    "task.task": ("Task",),
}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: a program that only needs the nouns does not load a Temporal client.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"backstay.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
