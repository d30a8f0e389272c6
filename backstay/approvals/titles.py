"""Say in one line what a request is about, from the request alone: lists say it of many requests at once."""

from collections.abc import Mapping
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.layout import said_shortly
from backstay.shown import one_line
from backstay.tools.recipients import is_recipient

_TITLE, _NAMED, _ABOUT = 200, 3, 60
"""How long a title is, how many calls it names, and how much of each."""


def title_of(request: ApprovalRequest) -> str:
    """Return the tool and to whom or what, the title of a plan, or else the question of a request."""
    calls, plan = request.calls, request.proposal
    if plan is not None:
        return one_line(f"Plan: {plan.title or 'untitled'}", _TITLE)
    if request.kind not in {RequestKind.CALL, RequestKind.BATCH} or not calls:
        return request.question
    tools = list(dict.fromkeys(call.tool for call in calls))
    if len(tools) > 1:
        return one_line(f"{len(calls)} calls: {', '.join(tools)}", _TITLE)
    head = tools[0] if len(calls) == 1 else f"{len(calls)} calls of {tools[0]}"
    named = list(dict.fromkeys(map(_about, calls)))
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    link = " to " if any(is_recipient(known_by(call.arguments) or "") for call in calls) else ": "
    return one_line(f"{head}{link}{', '.join(filter(None, named[:_NAMED]))}{more}" if any(named) else head, _TITLE)


def known_by(arguments: Mapping[str, Any]) -> str | None:
    """Return the argument by which people know a call from others: to whom it goes, or else its first one."""
    return next(filter(is_recipient, arguments), next(iter(arguments), None))


def _about(call: RequestedCall) -> str:
    """Return the beginning of what a call is known by; empty for one without arguments."""
    name = known_by(call.arguments)
    return "" if name is None else said_shortly(call.arguments[name], _ABOUT)
