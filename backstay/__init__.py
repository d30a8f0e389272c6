"""backstay: agents that hold fast, ask first, and can be taken back."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backstay.approval import Approval, ApprovalRequest, CallVerdict, Verdict
    from backstay.budget import Budget
    from backstay.client import Backstay, Run, connect
    from backstay.digest import summarize_payload
    from backstay.errors import BackstayError
    from backstay.event import Event
    from backstay.library import execute_mcp_task
    from backstay.plan import Plan, PlanStep
    from backstay.redaction import redact_payload
    from backstay.result import Outcome, Result
    from backstay.status import State, Status
    from backstay.task import Task

__all__ = [
    "Approval",
    "ApprovalRequest",
    "Backstay",
    "BackstayError",
    "Budget",
    "CallVerdict",
    "Event",
    "Outcome",
    "Plan",
    "PlanStep",
    "Result",
    "Run",
    "State",
    "Status",
    "Task",
    "Verdict",
    "connect",
    "execute_mcp_task",
    "redact_payload",
    "summarize_payload",
]

_HOMES = {
    "approval": ("Approval", "ApprovalRequest", "CallVerdict", "Verdict"),
    "budget": ("Budget",),
    "client": ("Backstay", "Run", "connect"),
    "digest": ("summarize_payload",),
    "errors": ("BackstayError",),
    "event": ("Event",),
    "library": ("execute_mcp_task",),
    "plan": ("Plan", "PlanStep"),
    "redaction": ("redact_payload",),
    "result": ("Outcome", "Result"),
    "status": ("State", "Status"),
    "task": ("Task",),
}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: a program that only needs the nouns does not load a Temporal client.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"backstay.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
