"""Decide a request, and have such calls decided alike from now on."""

from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import Filled, choice_input, modal, text_input

CALLBACK = "backstay.always"
_HOW, _WHICH, _COMMENT = "remember", "arguments", "comment"
_HOW_LONG = {
    "run": "Approve, for the rest of this run",
    "session": "Approve, for this session",
    "always": "Approve, in every run of this user",
    "never": "Reject, in every run of this user",
}


def form(request: ApprovalRequest, place: Place) -> View:
    """Return the modal."""
    tools = ", ".join(dict.fromkeys(call.tool for call in request.calls))
    offered = [(how, _HOW_LONG[how]) for how in request.may_remember]
    blocks = [
        section(f"Decide about {tools} now, and from now on."),
        choice_input(_HOW, "What is decided?", offered, initial=offered[0][0] if offered else None),
        choice_input(
            _WHICH,
            "For which calls?",
            [("these", "The same arguments only"), ("any", "Any arguments")],
            initial="these",
        ),
        text_input(_COMMENT, "Comment", optional=True, multiline=True, most=3000),
    ]
    return modal("Remember", "Decide", blocks, place, CALLBACK)


def read(filled: Filled) -> dict[str, object]:
    """Return the fields of the decision."""
    how = filled.chosen(_HOW)
    return {
        "verdict": "reject" if how == "never" else "approve",
        "remember": how,
        "remember_arguments": filled.chosen(_WHICH) or "these",
        "comment": filled.text(_COMMENT),
    }
