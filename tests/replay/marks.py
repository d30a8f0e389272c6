"""Tell in a word or two what an event of a history is kept for, and which events are commands of the workflow."""

import json
from typing import Any

from temporalio.client import WorkflowHistory

COMMANDS = frozenset(
    {
        "activity_task_scheduled",
        "activity_task_cancel_requested",
        "timer_started",
        "timer_canceled",
        "upsert_workflow_search_attributes",
        "workflow_execution_update_accepted",
        "workflow_execution_update_completed",
        "workflow_execution_continued_as_new",
        "workflow_execution_completed",
        "workflow_execution_failed",
        "workflow_execution_canceled",
    }
)
"""The events that come from commands of workflow code; markers are left out, since a gate adds them."""


def mark_of(event: Any) -> str:
    """Return what an event is kept for; empty where it is kept for nothing."""
    match event.WhichOneof("attributes"):
        case "activity_task_scheduled_event_attributes":
            scheduled = event.activity_task_scheduled_event_attributes
            ask = json.loads(scheduled.input.payloads[0].data)
            how = ask.get("purpose") or ask.get("verdict") or ("answering" if "question" in ask else "")
            return f"{scheduled.activity_type.name} {how}".strip()
        case "activity_task_completed_event_attributes":
            said = json.loads(event.activity_task_completed_event_attributes.result.payloads[0].data)
            return f"-> {said.get('error_type')}" if isinstance(said, dict) else ""
        case "activity_task_timed_out_event_attributes":
            return "timed out"
        case "activity_task_cancel_requested_event_attributes":
            return "activity cancelled"
        case "timer_started_event_attributes":
            return "timer"
        case "workflow_execution_canceled_event_attributes":
            return "canceled"
        case "workflow_execution_update_accepted_event_attributes":
            return f"update {event.workflow_execution_update_accepted_event_attributes.accepted_request.input.name}"
        case _:
            return ""


def holds(history: WorkflowHistory, wanted: list[str]) -> bool:
    """Return whether everything wanted happened, in this order; what goes together counts as if it went by itself."""
    happened = iter([mark for event in history.events for mark in (mark_of(event), *_parts_of(event))])
    return all(mark in happened for mark in wanted)


def _parts_of(event: Any) -> list[str]:
    """Return what an activity that makes several calls is kept for, as if each were an activity of its own."""
    match event.WhichOneof("attributes"):
        case "activity_task_scheduled_event_attributes":
            scheduled = event.activity_task_scheduled_event_attributes
            ask = json.loads(scheduled.input.payloads[0].data)
            return (
                ["call_tool"] * len(ask["calls"])
                if scheduled.activity_type.name in {"act_and_ask", "call_together"}
                else []
            )
        case "activity_task_completed_event_attributes":
            said = json.loads(event.activity_task_completed_event_attributes.result.payloads[0].data)
            if not isinstance(said, dict) or "results" not in said:
                return []
            failed = [f"-> {result['error_type']}" for result in said["results"] if result and "error_type" in result]
            return [*failed, "ask_model"] if said.get("asked") else failed
        case _:
            return []


def commands_of(history: WorkflowHistory) -> list[str]:
    """Return the commands of a history, in their order, as words."""
    kinds = [(event, event.WhichOneof("attributes").removesuffix("_event_attributes")) for event in history.events]
    return [mark_of(event) or kind.replace("_", " ") for event, kind in kinds if kind in COMMANDS]
