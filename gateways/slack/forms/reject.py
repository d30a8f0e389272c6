"""Reject a request with a comment, and stop the run if that is wanted."""

from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.shown import LINE_BREAK
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import Filled, choice_input, modal, text_input

CALLBACK = "backstay.reject"
COMMENT = "comment"
_THEN = "then"
_GO_ON, _STOP = "go_on", "stop"


def form(request: ApprovalRequest, place: Place) -> View:
    """Return the modal."""
    blocks = [
        section(request.question.replace(LINE_BREAK, "\n")),
        text_input(COMMENT, "Why?", optional=True, multiline=True, hint="The model reads it.", most=3000),
        choice_input(
            _THEN,
            "And then?",
            [(_GO_ON, "The run goes on without it"), (_STOP, "The run stops, and what it did is undone")],
            initial=_GO_ON,
        ),
    ]
    return modal("Reject", "Reject", blocks, place, CALLBACK)


def read(filled: Filled) -> dict[str, object]:
    """Return the fields of the decision."""
    stop = filled.chosen(_THEN) == _STOP
    return {"verdict": "reject", "comment": filled.text(COMMENT), **({"stop": True} if stop else {})}
