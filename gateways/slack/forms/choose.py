"""Approve a part of what is asked: some calls of a batch, or some steps of a plan and what it may do."""

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import MOST_OPTIONS, FormInput, choice_input, modal, several_input, text_input
from gateways.slack.place import ModalContext
from people.requests.entered import FormEntry
from people.requests.form import DecisionForm
from people.requests.posted import call_options

CALLBACK = "backstay.choose"
_OUT, _PROCESSES, _COMMENT = "leave_out", "processes", "comment"


def form(request: ApprovalRequest, place: ModalContext, by: str) -> View:
    """Return the modal for a person, whose own parts of a plan are offered."""
    asked = DecisionForm.of(request)
    offered = call_options(asked.own_calls(by))
    what = "calls" if asked.proposal is None else "steps"
    blocks: list[Block] = [section(f"All {what} are approved, without those that you leave out.")]
    if offered:
        hint = f"Only the first {MOST_OPTIONS} are offered here." if len(offered) > MOST_OPTIONS else ""
        blocks.append(several_input(_OUT, f"Leave out these {what}", offered, hint=hint))
    blocks += _toggles(asked)
    blocks.append(text_input(_COMMENT, "Comment", optional=True, multiline=True, most=3000))
    return modal("Approve a part", "Approve", blocks, place, CALLBACK)


def _toggles(form: DecisionForm) -> list[Block]:
    blocks: list[Block] = []
    if form.processes:
        options = [("yes", "It may start them"), ("no", "It may start none")]
        blocks.append(choice_input(_PROCESSES, "Processes", options, initial="yes", hint=form.processes))
    for limit in form.limits:
        hint = f"At most {limit.most:g}; empty leaves it so."
        blocks.append(text_input(limit.field, limit.label, optional=True, hint=hint))
    return blocks


def entered(form: DecisionForm, filled: FormInput) -> FormEntry:
    """Return what a person chose."""
    filled.stands_for("calls", _OUT)
    for limit in form.limits:
        filled.stands_for(f"toggles.limits.{limit.field}", limit.field)
    return FormEntry(
        "approve",
        filled.text(_COMMENT),
        left_out=list(map(int, filled.several(_OUT))),
        no_processes=filled.chosen(_PROCESSES) == "no",
        limits={limit.field: typed for limit in form.limits if (typed := filled.text(limit.field).strip())},
    )
