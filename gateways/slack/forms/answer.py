"""Answer a question, fill in the form that a tool's server asks for, or raise limits."""

import json
from typing import Any

from slack_sdk.models.blocks import Block, InputBlock
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.fields import FormField, answer_of, fields_of
from backstay.budgets.budget import TopUp
from backstay.shown import LINE_BREAK
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import (
    LONGEST,
    MOST_OPTIONS,
    Filled,
    choice_input,
    modal,
    several_input,
    text_input,
)

CALLBACK = "backstay.answer"
_TEXT = "answer"
_NAME = 200
_OF_TEXT = 150
"""A text field that may be longer is offered several lines."""


def form(request: ApprovalRequest, place: Place) -> View:
    """Return the modal."""
    question = section(request.question.replace(LINE_BREAK, "\n"))
    if (schema := _schema(request)) is None:
        inputs: list[Block] = [text_input(_TEXT, "Your answer", multiline=True)]
    else:
        inputs = [_input(at, field) for at, field in enumerate(fields_of(schema)) if field.kind != "nothing"]
    title, submit = ("Top up", "Top up") if request.kind is RequestKind.BUDGET else ("Answer", "Answer")
    return modal(title, submit, [question, *inputs], place, CALLBACK)


def read(request: ApprovalRequest, filled: Filled) -> Any:
    """Return the answer; what does not fit is said in `filled.errors`."""
    if (schema := _schema(request)) is None:
        return filled.text(_TEXT)
    values: dict[tuple[str, ...], Any] = {}
    fields = fields_of(schema)
    for at, field in enumerate(fields):
        if field.kind == "nothing":
            values[field.path] = None
            continue
        try:
            given, value = _value(field, _block(at, field), filled)
        except ValueError as error:
            filled.wrong(_block(at, field), str(error))
            continue
        if given:
            values[field.path] = value
    if request.kind is RequestKind.BUDGET and not values and not filled.errors:
        filled.wrong(_block(0, fields[0]), "say how much to add to one of the limits")
    return answer_of(values)


def _schema(request: ApprovalRequest) -> dict[str, Any] | None:
    if request.kind is not RequestKind.BUDGET:
        return request.answer_schema
    schema = TopUp.model_json_schema()
    limits = {name: about for name, about in schema["properties"].items() if name != "quotas"}
    return {"type": "object", "properties": limits}


def _block(at: int, field: FormField) -> str:
    return f"field.{field.name}" if len(field.name) <= _NAME else f"field{at}"


def _input(at: int, field: FormField) -> InputBlock:
    block, label = _block(at, field), str(field.schema.get("title") or field.name)
    common: dict[str, Any] = {"optional": not field.required, "hint": field.line()}
    if field.kind in {"choice", "choices"} and len(field.choices) <= MOST_OPTIONS:
        options = [(str(n), choice.title or _said(choice.value)) for n, choice in enumerate(field.choices)]
        default: Any = field.default
        if field.kind == "choice":
            chosen = [str(n) for n, choice in enumerate(field.choices) if choice.value == default]
            return choice_input(block, label, options, initial=chosen[0] if chosen else None, **common)
        held = default if isinstance(default, list) else []
        initial = [str(n) for n, choice in enumerate(field.choices) if choice.value in held]
        return several_input(block, label, options, initial=initial, **common)
    if field.kind == "yes or no":
        initial_word = {True: "yes", False: "no"}.get(field.default) if isinstance(field.default, bool) else None
        return choice_input(block, label, [("yes", "Yes"), ("no", "No")], initial=initial_word, **common)
    value = "" if field.default is None else _said(field.default)
    longest = field.schema.get("maxLength")
    most = longest if field.kind == "text" and isinstance(longest, int) and longest > 0 else None
    multiline = field.kind == "JSON" or (field.kind == "text" and (most or LONGEST) > _OF_TEXT)
    return text_input(
        block, label, value=value if len(value) <= LONGEST else "", multiline=multiline, most=most, **common
    )


def _value(field: FormField, block: str, filled: Filled) -> tuple[bool, Any]:
    """Return whether a field was filled in, and its value; raises ValueError saying what is expected."""
    if field.kind == "choice" and len(field.choices) <= MOST_OPTIONS:
        chosen = filled.chosen(block)
        return bool(chosen), field.choices[int(chosen)].value if chosen else None
    if field.kind == "choices" and len(field.choices) <= MOST_OPTIONS:
        several = [field.choices[int(at)].value for at in filled.several(block)]
        return bool(several) or field.required, several
    if field.kind == "yes or no":
        word = filled.chosen(block)
        return bool(word), word == "yes"
    typed = filled.text(block)
    if not typed:
        return False, None
    # What is typed into an input of text is that text, quotes and all.
    return True, typed if field.kind == "text" else field.parse(typed.strip())


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
