"""Change the arguments of a call before it is approved."""

import json
from collections.abc import Mapping
from typing import Any

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.shown import one_line
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import LONGEST, Filled, calls_of, choice_input, modal, text_input

CALLBACK = "backstay.edit"
CHOICE = "backstay.edit.which"
_CALL, _COMMENT = "call", "comment"
_MOST_INPUTS = 80
_NAME = 200


def which(request: ApprovalRequest, place: Place, only: frozenset[int] | None) -> View:
    """Return the modal that asks which call is to be changed; `only` are the steps that this person decides."""
    offered = calls_of(request, only)
    blocks = [choice_input(_CALL, "Which one is to be changed?", offered, initial=offered[0][0] if offered else None)]
    return modal("Edit", "Next", blocks, place, CHOICE)


def chosen(filled: Filled) -> int:
    """Return the call that was chosen."""
    return int(filled.chosen(_CALL))


def form(request: ApprovalRequest, place: Place, arguments: Mapping[str, Any]) -> View:
    """Return the modal with the arguments of one call, whole."""
    call = next(call for call in request.calls if call.index == place.call)
    several = len(request.calls) > 1
    again = f"you are shown {'all calls' if several else 'the call'} again with the change, and decide then"
    then = "a changed plan is proposed anew" if request.proposal is not None else again
    told = f"{call.tool}: what you change is checked and ruled on again. Nothing is sent yet: {then}."
    blocks: list[Block] = [section(told)]
    left: list[str] = []
    for at, (name, value) in enumerate(arguments.items()):
        shown = _shown(value)
        if len(shown) > LONGEST or at >= _MOST_INPUTS:
            left.append(one_line(name, 80))
            continue
        hint = "" if _is_plain(value) else "As JSON."
        blocks.append(text_input(_block(at, name), name, optional=True, value=shown, hint=hint, multiline=True))
    if left:
        blocks.append(section(f"Too long for a form, and left as they are: {', '.join(left)}"))
    blocks.append(text_input(_COMMENT, "Comment", optional=True, most=3000))
    return modal("Edit", "Ask again", blocks, place, CALLBACK)


def read(request: ApprovalRequest, place: Place, arguments: Mapping[str, Any], filled: Filled) -> dict[str, object]:
    """Return the fields of the decision; what does not fit is said in `filled.errors`."""
    changed: dict[str, Any] = {}
    offered = [_COMMENT]
    for at, (name, before) in enumerate(arguments.items()):
        block = _block(at, name)
        if len(_shown(before)) > LONGEST or at >= _MOST_INPUTS:
            continue
        offered.append(block)
        try:
            after = _value(before, filled.text(block))
        except ValueError as error:
            filled.wrong(block, str(error))
            continue
        if after != before or type(after) is not type(before):
            changed[name] = after
    if not changed and not filled.errors:
        filled.wrong(offered[-1], "nothing was changed; approve it as it is, or cancel")
    call = {"verdict": "modify", "arguments": changed}
    # Whoever changes a call is shown all of them again, with the change, before any is made.
    again = {} if request.proposal is not None else {"ask_again": True}
    return {"verdict": "modify", "calls": {place.call: call}, "comment": filled.text(_COMMENT), **again}


def _block(at: int, name: str) -> str:
    return f"argument.{name}" if len(name) <= _NAME else f"argument{at}"


def _is_plain(value: Any) -> bool:
    """Return whether a value is a text in which every sign can be seen."""
    return isinstance(value, str) and all(one_line(line, 4 * len(line) + 8) == line for line in value.split("\n"))


def _shown(value: Any) -> str:
    """Return a value as it is edited; a text with signs that cannot be seen is written as JSON."""
    return value if _is_plain(value) else json.dumps(value, ensure_ascii=True)


def _value(before: Any, typed: str) -> Any:
    if _is_plain(before):
        # Slack cuts white space off the ends of what is typed.
        return before if typed.strip() == before.strip() else typed
    if typed == _shown(before):
        return before
    try:
        return json.loads(typed)
    except ValueError:
        raise ValueError('type JSON, such as "text", 7 or ["a", "b"]') from None
