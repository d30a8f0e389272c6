"""Answer a question, fill in the form that a tool's server asks for, or raise limits."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from slack_sdk.models.blocks import Block, InputBlock
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.fields import FormField, as_typed
from backstay.shown import LINE_BREAK
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import (
    LONGEST,
    MOST_OPTIONS,
    FormInput,
    choice_input,
    modal,
    several_input,
    text_input,
)
from gateways.slack.place import ModalContext
from people.requests.entered import FormEntry, Typed
from people.requests.form import DecisionForm

CALLBACK = "backstay.answer"
_TEXT = "answer"
_NAME = 200
_OF_TEXT = 150
"""A text field that may be longer is offered several lines."""


def form(request: ApprovalRequest, place: ModalContext) -> View:
    """Return the modal."""
    question, fields = section(request.question.replace(LINE_BREAK, "\n")), DecisionForm.of(request).fields
    blocks = zip(_blocks(fields), fields, strict=True)
    inputs: list[Block] = [_input(block, field) for block, field in blocks if field.kind != "nothing"]
    if not fields:
        inputs = [text_input(_TEXT, "Your answer", multiline=True)]
    title, submit = ("Top up", "Top up") if request.kind is RequestKind.BUDGET else ("Answer", "Answer")
    return modal(title, submit, [question, *inputs], place, CALLBACK)


def entered(form: DecisionForm, filled: FormInput) -> FormEntry:
    """Return what a person filled in."""
    typed: dict[tuple[str, ...], Typed] = {}
    for field, block in zip(form.fields, _blocks(form.fields), strict=True):
        filled.stands_for(field.path, block)
        typed[field.path] = _typed(field, block, filled)
    return FormEntry("answer", answer=filled.text(_TEXT), fields=typed)


def _blocks(fields: Sequence[FormField]) -> list[str]:
    """Return the input of each field: named like it, unless the name is too long for Slack, or another field has it."""
    names = Counter(field.name for field in fields)
    return [
        f"field.{field.name}" if len(field.name) <= _NAME and names[field.name] == 1 else f"field{at}"
        for at, field in enumerate(fields)
    ]


def _input(block: str, field: FormField) -> InputBlock:
    label = str(field.schema.get("title") or field.name)
    common: dict[str, Any] = {"optional": not field.required, "hint": field.line()}
    if field.kind in {"choice", "choices"} and len(field.choices) <= MOST_OPTIONS:
        options = [(str(n), choice.title or as_typed(choice.value)) for n, choice in enumerate(field.choices)]
        initial = [str(n) for n in field.preselected]
        if field.kind == "choice":
            return choice_input(block, label, options, initial=initial[0] if initial else None, **common)
        return several_input(block, label, options, initial=initial, **common)
    if field.kind == "yes or no":
        initial_word = {True: "yes", False: "no"}.get(field.default) if isinstance(field.default, bool) else None
        return choice_input(block, label, [("yes", "Yes"), ("no", "No")], initial=initial_word, **common)
    value = field.default_text
    longest = field.schema.get("maxLength")
    most = longest if field.kind == "text" and isinstance(longest, int) and longest > 0 else None
    multiline = field.kind == "JSON" or (field.kind == "text" and (most or LONGEST) > _OF_TEXT)
    return text_input(
        block, label, value=value if len(value) <= LONGEST else "", multiline=multiline, most=most, **common
    )


def _typed(field: FormField, block: str, filled: FormInput) -> Typed:
    if field.kind in {"choice", "choices"} and len(field.choices) <= MOST_OPTIONS:
        return tuple(map(int, filled.several(block) or filter(None, [filled.chosen(block)])))
    return filled.chosen(block) if field.kind == "yes or no" else filled.text(block)
