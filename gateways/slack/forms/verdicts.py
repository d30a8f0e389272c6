"""Decide a request as a whole, with a comment: reject it, or have such calls decided alike from now on."""

from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.shown import LINE_BREAK, one_line
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import FormInput, choice_input, modal, text_input
from gateways.slack.place import ModalContext
from people.requests.entered import FormEntry, remembering
from people.requests.form import DecisionForm
from people.requests.posted import remember_options

REJECT = "backstay.reject"
REMEMBER = "backstay.always"
_COMMENT = "comment"
_THEN, _HOW, _WHICH = "then", "remember", "arguments"
_GO_ON, _STOP = "go_on", "stop"
_MOST_WORDS = 2500
"""A section of Slack takes 3000 characters."""


def reject_form(request: ApprovalRequest, place: ModalContext) -> View:
    """Return the modal that asks why, and whether the run is to stop."""
    blocks = [
        section(request.question.replace(LINE_BREAK, "\n")),
        text_input(_COMMENT, "Why?", optional=True, multiline=True, hint="The model reads it.", most=3000),
        choice_input(
            _THEN,
            "And then?",
            [(_GO_ON, "The run goes on without it"), (_STOP, "The run stops, and what it did is undone")],
            initial=_GO_ON,
        ),
    ]
    return modal("Reject", "Reject", blocks, place, REJECT)


def rejected(filled: FormInput) -> FormEntry:
    """Return what a person filled in."""
    return FormEntry("reject_stop" if filled.chosen(_THEN) == _STOP else "reject", filled.text(_COMMENT))


def remember_form(request: ApprovalRequest, place: ModalContext) -> View:
    """Return the modal that asks for how long, and for which calls, a decision is to hold."""
    tools = ", ".join(dict.fromkeys(call.tool for call in request.calls))
    offered = remember_options(request)
    which, alike = [("these", "The same arguments only"), ("any", "Any arguments")], _alike(request)
    if alike:
        # The label of a choice in Slack is too short to say it.
        which.insert(1, ("alike", "Calls like this one, as said above"))
    blocks = [
        section(f"Decide about {tools} now, and from now on."),
        *([section(f"Calls like this one are those where {alike}.")] if alike else []),
        choice_input(_HOW, "What is decided?", offered, initial=offered[0][0] if offered else None),
        choice_input(
            _WHICH,
            "For which calls?",
            which,
            initial="these",
        ),
        text_input(_COMMENT, "Comment", optional=True, multiline=True, most=3000),
    ]
    return modal("Remember", "Decide", blocks, place, REMEMBER)


def _alike(request: ApprovalRequest) -> str:
    """Return which calls are like the one that is asked about; nothing where none are, or not all of it fits here."""
    found = DecisionForm.of(request).alike
    words = "" if isinstance(found, str) else one_line(found.words, _MOST_WORDS + 1)
    return words if len(words) <= _MOST_WORDS else ""


def remembered(filled: FormInput) -> FormEntry:
    """Return what a person filled in."""
    return remembering(filled.chosen(_HOW), filled.chosen(_WHICH) or "these", filled.text(_COMMENT))
