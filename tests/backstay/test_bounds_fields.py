"""A field with a bound takes what fills it, whatever the signs, and can be read again; one byte more is refused."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from backstay.approvals.admission import DecisionInvalid, admit
from backstay.bounds import ARGUMENTS, DECISION, TASK, size_of
from backstay.budgets.budget import TopUp
from backstay.client.connecting import DATA_CONVERTER
from backstay.errors import ArgumentsInvalid, BackstayError, TaskInvalid
from backstay.requests import OpenRun
from backstay.task.lane import LaneJob
from backstay.task.plan import resolve
from backstay.task.task import Task, too_long
from tests.requirements import promise
from tests.sizes import sized
from workflows.asking.said import said_in
from workflows.read_run import ReadRequest
from workflows.undo_run import UndoRequest

SIGNS = ['"', "\\", "\n", "\x01", "\x7f", "é", "中", "🦉", '{"a": ["', "${", "&lt;"]
"""What is escaped, what takes several bytes, and what looks like JSON, a reference or markup."""
ASK = {"request_id": "r1", "verdict": "reject", "by": "ana"}
ANSWER = {**ASK, "verdict": "answer"}


class Field(NamedTuple):
    """Name a bounded field: what opens its door, what it is put into, and how much of it fits."""

    name: str
    door: Callable[[Any], Any]
    within: Callable[[str], Any]
    most: int
    """Bytes of JSON."""
    characters: int = 1_000_000
    besides: int = 0
    """Bytes that stand around the text and count as well."""
    size: Callable[[str], int] = size_of


def whole(name: str, door: Callable[[Any], Any], within: Callable[[str], Any], most: int, besides: int = 0) -> Field:
    """Return a field of which everything counts that stands around the text."""
    return Field(name, door, within, most, besides=size_of(within("")) - size_of("") + besides)


def started(given: dict[str, Any]) -> None:
    """Admit a task as the client does, and read it as an activity does."""
    task = Task.admit(given)
    if (refused := too_long(given)) is not None:
        raise refused
    converter = DATA_CONVERTER.payload_converter
    ask = OpenRun(task=task, at="", workflow_run_id="")
    (read,) = converter.from_payloads(converter.to_payloads([ask]), [OpenRun])
    assert read.task == task


def size_as_it_is(text: str) -> int:
    """Return the bytes of a text between quotation marks, of which nothing is escaped."""
    return len(text.encode()) + 2


def job(given: dict[str, Any]) -> None:
    """Admit a job of a plugin as its lane does."""
    try:
        LaneJob.model_validate(given)
    except ValidationError as error:
        raise TaskInvalid(str(error)) from None


def undo(given: dict[str, Any]) -> None:
    said_in("undo", given)


def filled_in(given: dict[str, Any]) -> None:
    resolve({**given, "b": "${input.x}"}, {"input": {"x": 1}})


def follows(text: str) -> dict[str, Any]:
    return {"text": "t", "follows": {"workflow_id": text, "run_id": "r"}}


def changed(text: str) -> dict[str, Any]:
    return {**ASK, "verdict": "modify", "calls": {"0": {"verdict": "modify", "arguments": {"a": text}}}}


FIELDS = [
    Field("text", started, lambda text: {"text": f"t{text}"}, 400_000, 99_999, besides=1),
    Field("session_id", started, lambda text: {"text": "t", "session_id": text}, 1_200),
    Field("proof", started, lambda text: {"text": "t", "proof": text}, 1_200),
    Field("follows.workflow_id", started, follows, 1_002, size=size_as_it_is),
    Field("policy", started, lambda text: {"text": "t", "policy": {"a": [text]}}, 131_072, besides=8),
    Field("budget.quotas", started, lambda text: {"text": "t", "budget": {"quotas": {text: 1}}}, 32_768, besides=4),
    whole("Task", started, lambda text: {"text": "t", "input": {"a": text}}, TASK),
    Field("request_id", admit, lambda text: {**ASK, "request_id": text}, 1_200),
    Field("proof", admit, lambda text: {**ASK, "proof": text}, 1_200),
    Field("args_digest", admit, lambda text: {**ASK, "args_digest": text}, 1_200),
    Field("plan_id", admit, lambda text: {**ASK, "plan_id": text}, 1_200),
    Field("event_id", admit, lambda text: {**ASK, "event_id": text}, 1_200, 200),
    Field("comment", admit, lambda text: {**ASK, "comment": text}, 16_000, 4_000),
    Field("answer", admit, lambda text: {**ANSWER, "answer": text}, 65_536),
    Field("answer", admit, lambda text: {**ANSWER, "answer": {"a": [[text]]}}, 65_536, besides=10),
    whole("decision", admit, changed, DECISION),
    Field("reason", undo, lambda text: {"reason": text}, 16_000, 4_000),
    Field("proof", undo, lambda text: {"proof": text}, 1_200),
    Field("event_id", undo, lambda text: {"event_id": text}, 1_200, 200),
    Field("quotas", TopUp.admit, lambda text: {"quotas": {text: 1}}, 32_768, besides=4),
    Field("workflow_id", UndoRequest.admit, lambda text: {"workflow_id": text}, 1_002, size=size_as_it_is),
    Field(
        "workflow_id",
        ReadRequest.admit,
        lambda text: {"workflow_id": text, "after": 0},
        1_002,
        size=size_as_it_is,
    ),
    Field("workflow_id", job, lambda text: {"workflow_id": text, "task": {}}, 1_002, size=size_as_it_is),
    whole("arguments", filled_in, lambda text: {"a": text}, ARGUMENTS, besides=len(',"b":"${input.x}"') + 1),
]


def filled(sign: str, most: int, characters: int, size: Callable[[str], int] = size_of) -> str:
    """Return a text of a sign that fills as many bytes of JSON, or characters, as are allowed."""
    room = most - 2
    text = sign * min(room // (size(sign) - 2), characters // len(sign))
    return text + "x" * min(room - (size(text) - 2), characters - len(text))


@promise("runs:bounds-filled")
@pytest.mark.parametrize("field", FIELDS, ids=lambda field: f"{field.name} of {field.most}")
@settings(max_examples=sized(100, 8))
@given(sign=st.one_of(st.sampled_from(SIGNS), st.characters(exclude_categories=["Cs"])))
def test_a_field_takes_what_fills_it_and_refuses_one_byte_more_by_its_name(field, sign):
    full = filled(sign, field.most - field.besides, field.characters, field.size)
    field.door(field.within(full))
    with pytest.raises(BackstayError) as refused:
        field.door(field.within(full + "x"))

    assert isinstance(refused.value, TaskInvalid | DecisionInvalid | ArgumentsInvalid)
    assert field.name in str(refused.value)
    assert len(str(refused.value)) < 500


@promise("runs:bounds-filled")
@pytest.mark.parametrize("field", FIELDS[:-1], ids=lambda field: f"{field.name} of {field.most}")
def test_half_a_character_is_refused_where_it_is_sent(field):
    with pytest.raises((TaskInvalid, DecisionInvalid), match=r"half a character|unicode string"):
        field.door(field.within("\ud800"))
