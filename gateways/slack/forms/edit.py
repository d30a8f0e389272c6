"""Change the arguments of a call before it is approved."""

from collections.abc import Mapping
from typing import Any

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.shown import one_line
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import LONGEST, FormInput, choice_input, modal, text_input
from gateways.slack.place import ModalContext
from people.requests.editing import change_words, edit_of, edited_arguments
from people.requests.entered import FormEntry
from people.requests.form import DecisionForm
from people.requests.posted import call_options

CALLBACK = "backstay.edit"
CHOICE = "backstay.edit.which"
_CALL, _COMMENT = "call", "comment"
_MOST_INPUTS = 80
_NAME = 200


def which(request: ApprovalRequest, place: ModalContext, by: str) -> View:
    """Return the modal that asks a person which of the calls that they decide is to be changed."""
    offered = call_options(DecisionForm.of(request).own_calls(by))
    blocks = [choice_input(_CALL, "Which one is to be changed?", offered, initial=offered[0][0] if offered else None)]
    return modal("Edit", "Next", blocks, place, CHOICE)


def chosen(filled: FormInput) -> int:
    """Return the call that was chosen."""
    return int(filled.chosen(_CALL))


def form(request: ApprovalRequest, place: ModalContext, arguments: Mapping[str, Any]) -> View:
    """Return the modal with the arguments of one call, whole."""
    call = next(call for call in request.calls if call.index == place.call)
    blocks: list[Block] = [section(change_words(request, call))]
    left: list[str] = []
    for at, (name, _, text, as_json) in enumerate(edited_arguments(arguments, LONGEST)):
        if len(text) > LONGEST or at >= _MOST_INPUTS:
            left.append(one_line(name, 80))
            continue
        hint = "As JSON." if as_json else ""
        blocks.append(text_input(_block(at, name), name, optional=True, value=text, hint=hint, multiline=True))
    if left:
        blocks.append(section(f"Too long for a form, and left as they are: {', '.join(left)}"))
    blocks.append(text_input(_COMMENT, "Comment", optional=True, most=3000))
    return modal("Edit", "Ask again", blocks, place, CALLBACK)


def entered(call: int, arguments: Mapping[str, Any], filled: FormInput) -> FormEntry:
    """Return what a person changed of a call; raises EntryRefused for what cannot be read."""
    typed: dict[str, str] = {}
    for at, (name, _, text, _) in enumerate(edited_arguments(arguments, LONGEST)):
        if len(text) <= LONGEST and at < _MOST_INPUTS:
            filled.stands_for(name, _block(at, name))
            given = filled.text(_block(at, name))
            # Slack cuts white space off the ends of what is typed.
            typed[name] = text if given.strip() == text.replace("\r\n", "\n").strip() else given
    return FormEntry("modify", filled.text(_COMMENT), edits=(edit_of(call, arguments, typed),))


def _block(at: int, name: str) -> str:
    return f"argument.{name}" if len(name) <= _NAME else f"argument{at}"
