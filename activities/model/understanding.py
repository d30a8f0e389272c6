"""Understand what a model answered: by which calls, in which form, and whether it is whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from activities.model.disguise import WrittenCalls, begins_as_calls, calls_asked_for, calls_written_down
from activities.model.ends import End, end_of, ends_with_calls
from activities.model.functions import NAMES, SCHEMAS
from activities.model.observations import Form, Way
from activities.model.output import WantedOutput
from activities.model.quoting import may_be_quoted
from activities.model.transcript import Transcript
from backstay.plans.definition import PlanDefinition
from toolbox.catalog.catalog import Catalog

Functions = Callable[[str], Mapping[str, Any] | None]


@dataclass(frozen=True)
class Understood:
    """Hold an answer in the form in which calls of functions come."""

    message: dict[str, Any]
    end: End
    form: Form | None = None
    written: bool = False
    """Whether its calls were written down in place of being made."""


def functions_of(catalog: Catalog, offered: Mapping[str, PlanDefinition], wanted: WantedOutput | None) -> Functions:
    """Return what tells the schema of a function's arguments, and None of what is not a function."""
    finish = None if wanted is None else wanted.function()["function"]

    def parameters(name: str) -> Mapping[str, Any] | None:
        if finish is not None and name == finish["name"]:
            return finish["parameters"]
        if name in NAMES:
            return SCHEMAS.get(name, {})
        if name in offered:
            return {}
        definition = catalog.by_function.get(name) or catalog.definitions.get(name)
        return None if definition is None or definition.hidden else definition.parameters or {}

    return parameters


def understood(
    message: dict[str, Any],
    finish_reason: str,
    *,
    way: Way,
    step: int,
    transcript: Transcript,
    by: str | None,
    functions: Functions,
) -> Understood:
    """Return what a model answered; a call that is in its words is one only where nobody else can have said it."""
    end, content = end_of(finish_reason, message), message.get("content")
    if message.get("tool_calls") or not isinstance(content, str) or end not in {"done", "unsaid"}:
        return Understood(message, end)
    asked_for = calls_asked_for(content, functions) if way != "functions" else None
    if asked_for is not None:
        if asked_for.whole or not _was_read(asked_for, transcript):
            return Understood(_with_calls(asked_for, f"s{step}-json"), end, "json")
        return Understood(message, "disguised")
    written = calls_written_down(content, functions)
    if written is None:
        # It says that it holds calls, and none has come: its words are not the end of the task.
        is_broken = ends_with_calls(finish_reason) or (way != "functions" and begins_as_calls(content))
        return Understood(message, "malformed" if is_broken else end)
    known = all(functions(str(call["function"]["name"])) is not None for call in written.calls)
    if written.whole and known and not _calls(transcript, by) and not _was_read(written, transcript):
        return Understood(_with_calls(written, f"s{step}-text"), end, written=True)
    return Understood(message, "disguised")


def _with_calls(written: WrittenCalls, prefix: str) -> dict[str, Any]:
    calls = [{**call, "id": f"{prefix}-{index}"} for index, call in enumerate(written.calls)]
    return {"content": None, "tool_calls": calls}


def _calls(transcript: Transcript, by: str | None) -> bool:
    """Return whether the model has made calls in this run as they are to be made."""
    return any(
        item.get("calls") and "form" not in item and "written" not in item
        for item in transcript.items
        if item["kind"] == "said" and item.get("by") == by
    )


def _was_read(written: WrittenCalls, transcript: Transcript) -> bool:
    """Return whether the text of a call may come from what the model was shown."""
    return may_be_quoted(written.calls, transcript.items, forgotten=transcript.forgotten)
