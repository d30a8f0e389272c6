"""Say in JSON what a caller is told of a run, within the bytes that one answer may have."""

from collections.abc import Mapping, Sequence
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.canonical import canonical
from backstay.effects.compensation import Undone
from backstay.effects.effect import told_of_later
from backstay.errors import DecisionRefused
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.reading import PAGE_BYTES
from people.runs.looking import FIRST_LATE

MOST_EFFECTS = 20
_WORDS = 300
_ANSWER = "answer"
_WHERE_KNOWN = ("output_ref", "effects_ref", "events_ref", "programs_unavailable", "ledger_head")
_LEFT_OUT = ("outputs", "output", "effects", "undone", "summary")
"""What is left out of a result that is too large, in this order."""


def result_view(run: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a caller is told of how a run ended; too large an answer is left out, and says how it is read."""
    usage = result.get("usage") or {}
    effects = [_effect(each) for each in result.get("effects") or ()]
    told: dict[str, Any] = {
        "run": run,
        "status": "completed",
        "outcome": result.get("outcome"),
        "success": bool(result.get("success")),
        "summary": result.get("final_summary") or "",
        "output": result.get("output"),
        "outputs": result.get("raw_outputs") or {},
        "effects": effects[-MOST_EFFECTS:],
        "undone": [_undone(each) for each in result.get("undone") or ()][-MOST_EFFECTS:],
        "error": result.get("error"),
        "usage": {name: usage.get(name) for name in ("steps", "tool_calls", "llm_cost_usd")},
    }
    told |= {name: result[name] for name in _WHERE_KNOWN if result.get(name)}
    for name in _LEFT_OUT:
        if (size := _size(told)) <= PAGE_BYTES:
            break
        told[name] = {"left_out": f"the answer would have {size:,} bytes; read it with path {name!r}"}
    return told


def whole_view(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result under the names that a caller knows, whole, to be read a page at a time."""
    names = {"summary": "final_summary", "output": "output", "outputs": "raw_outputs", "error": "error"}
    return {name: result.get(kept) for name, kept in names.items()} | {
        "effects": [_effect(each) for each in result.get("effects") or ()],
        "undone": [_undone(each) for each in result.get("undone") or ()],
    }


def _effect(effect: Mapping[str, Any]) -> dict[str, Any]:
    return {name: effect.get(name) for name in ("n", "tool", "state", "undo")}


def _undone(undone: Mapping[str, Any]) -> dict[str, Any]:
    told = Undone.model_validate(undone)
    known = {"effect": told.effect, "tool": told.tool, "arguments": told.arguments, "state": told.state}
    return known | {"by_hand": told.by_hand, "detail": told.detail, "later": told_of_later(told.later)}


def waits_for(requests: Sequence[ApprovalRequest]) -> list[dict[str, Any]]:
    """Return what a run waits for that its caller cannot give: people decide it, at another door."""
    told = ({"kind": each.kind.value, "asks": one_line(each.question, _WORDS)} | _link(each) for each in requests[:10])
    return list(told)


def questions_of(requests: Sequence[ApprovalRequest]) -> list[dict[str, Any]]:
    """Return the questions that a caller may answer."""
    return [{"question": each.id, "asks": each.question} for each in requests]


def waiting_words(people: Sequence[ApprovalRequest], questions: Sequence[ApprovalRequest]) -> str:
    """Return in a line what a run waits for; empty where that is nothing."""
    if questions:
        return f"the run asks: {one_line(questions[0].question, _WORDS)}"
    if people:
        more = f", and {len(people) - 1} more" if len(people) > 1 else ""
        link = people[0].links.page
        return f"waits for a person: {one_line(people[0].question, _WORDS)}{more}{f' ({link})' if link else ''}"
    return ""


def _link(request: ApprovalRequest) -> dict[str, str]:
    return {} if request.links.page is None else {"page": request.links.page}


def event_view(event: Event) -> dict[str, Any]:
    """Return what a caller is told of one event; one that came late has no number, since nothing comes after it."""
    number: dict[str, Any] = {"n": event.n} if event.n < FIRST_LATE else {"late": True}
    return {**number, "at": event.at, "name": event.name, "text": one_line(event.text, _WORDS)}


def elicitation(question: ApprovalRequest) -> dict[str, Any]:
    """Return a question as an input request of MCP."""
    asked = {"type": "string", "title": "Answer"}
    form = {"type": "object", "properties": {_ANSWER: asked}, "required": [_ANSWER]}
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": question.question, "requestedSchema": form},
    }


def verdict_of(key: str, response: Any) -> dict[str, Any] | None:
    """Return the decision that an elicitation result stands for; None where nobody has answered yet.

    Raises DecisionRefused for what is no such result.
    """
    action = response.get("action") if isinstance(response, dict) else None
    content = response.get("content") if isinstance(response, dict) else None
    match action, content:
        case "accept", {"answer": str(answer)}:
            return {"verdict": "answer", "answer": answer}
        case "accept", _:
            raise DecisionRefused(f"inputResponses.{one_line(key, 40)}.content.answer: must be a string")
        case "decline", _:
            return {"verdict": "reject"}
        case "cancel", _:
            return None
        case _:
            raise DecisionRefused(f"inputResponses.{one_line(key, 40)}.action: must be accept, decline or cancel")


def _size(told: Any) -> int:
    return len(canonical(told).encode("utf-8", "replace"))
