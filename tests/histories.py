"""Read from a history what the activities of a run were asked, and what they answered."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

TOGETHER = "act_and_ask"
"""The activity that makes calls and asks the model after them."""
READS = "call_together"
"""The activity that makes reads which travel together."""


class Made(NamedTuple):
    """Hold one thing that a run ordered."""

    name: str
    given: dict[str, Any]
    answer: Any
    """None where there was none."""


def activities_in(events: Iterable[Any]) -> list[Made]:
    """Return every activity, in order; calls that were made together, and the question after them, each by itself."""
    scheduled: dict[int, Any] = {}
    answers: dict[int, Any] = {}
    for event in events:
        match event.WhichOneof("attributes"):
            case "activity_task_scheduled_event_attributes":
                scheduled[event.event_id] = event.activity_task_scheduled_event_attributes
            case "activity_task_completed_event_attributes":
                completed = event.activity_task_completed_event_attributes
                answers[completed.scheduled_event_id] = json.loads(completed.result.payloads[0].data)
            case _:
                pass
    found: list[Made] = []
    for number, given in scheduled.items():
        made = Made(given.activity_type.name, json.loads(given.input.payloads[0].data), answers.get(number))
        found.extend(_apart(made) if made.name in {TOGETHER, READS} else [made])
    return found


def _apart(made: Made) -> list[Made]:
    """Return the calls that an activity has made, and its question to the model where it was asked."""
    given, answer = dict(made.given), made.answer or {}
    asked, ask = given.pop("calls"), given.pop("ask", None)
    results = answer.get("results") or [None] * len(asked)
    parts = [Made("call_tool", {**given, **call}, result) for call, result in zip(asked, results, strict=True)]
    return [*parts, Made("ask_model", {**given, **ask}, answer.get("decision"))] if answer.get("asked") else parts


def asks_model(event: Any) -> bool:
    """Return whether an event orders a question to the model."""
    return event.activity_task_scheduled_event_attributes.activity_type.name in {"ask_model", TOGETHER}
