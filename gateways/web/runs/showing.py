"""Put what is known of a run into the form in which its page shows it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from backstay.approvals.titles import title_of
from backstay.budgets.budget import Budget
from backstay.effects.compensation import Undone, left_to_people
from backstay.effects.effect import EffectState, Touch, told_of_later
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.result import Result
from backstay.task.status import State
from people.runs.looking import FIRST_LATE, MOST_EFFECTS, RunView
from people.runs.plans import plans_of
from people.runs.words import EFFECTS, NOT_UNDONE, OUTCOMES, UNDONE, event_tone, tone_of
from store.effects.types import EffectRow

_LONGEST = 20_000
_SHOWN = 400
_LIMITS = (
    ("max_steps", "steps", "Steps"),
    ("max_tool_calls", "tool_calls", "Tool calls"),
    ("max_code_runs", "code_runs", "Programs"),
)


def view_of(seen: RunView) -> dict[str, Any]:
    """Return everything that the page of a run shows."""
    result = None if seen.result is None else Result.model_validate(seen.result)
    effects = _effects(seen)
    return {
        "head": _head(seen, result),
        "limits": list(_limits(seen, result)),
        "usage": _usage(seen, result),
        "timeline": list(_timeline(seen)),
        "earlier": seen.events[0].n if seen.earlier_events and seen.events else None,
        "plans": plans_of(seen),
        "effects": effects,
        "parked": [effect for effect in effects if effect["by_hand"]],
        "more_effects": max(0, sum(not row.undo for row in seen.effects) - MOST_EFFECTS),
        "undo": undo_view(seen.undo),
        "waiting": [_request(seen, request) for request in seen.pending],
        "result": None if result is None else _result(result),
        "decisions": [decision.plain() for decision in reversed(seen.decisions)],
        "topped_up": _raisable(seen),
    }


def _head(seen: RunView, result: Result | None) -> dict[str, Any]:
    found, row = seen.found, seen.found.row
    opened = {} if row is None else row.opened
    state = _state(seen, result)
    return {
        "text": found.text or str(opened.get("task_line", "")),
        "state": OUTCOMES.get(state, state),
        "tone": tone_of(state),
        "step": seen.status.step if seen.status else None,
        "paused": seen.status.paused if seen.status else None,
        "started_at": found.started_at,
        "ended_at": found.ended_at,
        "model": str(opened.get("model", "")),
        "started_by": str(opened.get("started_by", "")),
        "web_ui": _web_ui(seen, str(opened.get("web_ui", ""))),
        "pruned_at": None if row is None else row.pruned_at,
    }


def _state(seen: RunView, result: Result | None) -> str:
    row = seen.found.row
    if row is not None and row.pruned_at is not None:
        return "pruned"
    if seen.undoing:
        return "undoing"
    if seen.status is not None:
        return "paused" if seen.status.paused is not None and not seen.status.pending else seen.status.state.value
    if seen.found.is_open:
        return "open" if row is not None else "not begun"
    return result.outcome.value if result is not None else "stopped"


def _web_ui(seen: RunView, web_ui: str) -> str:
    """Return the run in Temporal's Web UI; empty where nobody said where that is, or where it is not a page."""
    if not web_ui.startswith(("http://", "https://")):
        return ""
    status = seen.status
    namespace = status.namespace if status is not None else ""
    namespace = namespace or next((str(row.request.get("namespace", "")) for row in seen.requests), "") or "default"
    name, run_id = quote(seen.found.workflow_id, safe=""), quote(seen.found.run_id, safe="")
    return f"{web_ui}/namespaces/{quote(namespace, safe='')}/workflows/{name}/{run_id}"


def _limits(seen: RunView, result: Result | None) -> Iterator[dict[str, Any]]:
    """Yield what the run may use, and what of it is used."""
    usage = _used(seen, result)
    given = seen.budget.get("budget") or (None if result is None else result.budget.plain())
    if given is None:
        return
    budget = Budget.model_validate(given)
    spent, ceiling = float(usage.get("llm_cost_usd", 0)), budget.max_llm_cost_usd
    yield _limit("Model cost", spent, ceiling, unit="USD")
    if usage.get("plan_steps"):
        yield _limit("Steps of the plan", usage["plan_steps"], None)
    for limit, used, name in _LIMITS:
        allowed = getattr(budget, limit)
        # A limit that a run neither uses nor is short of says nothing.
        if usage.get(used) or limit != "max_code_runs":
            yield _limit(name, usage.get(used, 0), allowed)
    if budget.max_tokens is not None:
        yield _limit("Tokens", _tokens(usage), budget.max_tokens)
    if budget.max_wall_seconds is not None:
        yield _limit("Running time", round(float(seen.budget.get("active_seconds", 0))), budget.max_wall_seconds, "s")
    for tool, most in budget.quotas.items():
        yield _limit(f"Calls of {tool}", (usage.get("calls_by_tool") or {}).get(tool, 0), most)


def _limit(name: str, used: float, allowed: float | None, unit: str = "") -> dict[str, Any]:
    share = None if not allowed else min(1.0, used / allowed)
    return {"name": name, "used": used, "allowed": allowed, "unit": unit, "share": share, "tone": _tone(share)}


def _tone(share: float | None) -> str:
    if share is None:
        return "quiet"
    return next((tone for least, tone in ((1, "bad"), (0.8, "wait")) if share >= least), "good")


def _used(seen: RunView, result: Result | None) -> dict[str, Any]:
    if seen.status is not None:
        return seen.status.usage
    return {} if result is None else result.usage


def _tokens(usage: dict[str, Any]) -> int:
    names = ("input_new_tokens", "input_cached_tokens", "output_tokens")
    return sum(int(model.get(name, 0)) for model in usage.get("models", {}).values() for name in names)


def _usage(seen: RunView, result: Result | None) -> list[dict[str, Any]]:
    """Return what each model was asked and what it cost."""
    models = _used(seen, result).get("models", {})
    return [{"model": name, **spent} for name, spent in models.items()]


def _timeline(seen: RunView) -> Iterator[dict[str, Any]]:
    """Yield the events in groups: one for each step of the model, and one for what came after the end."""
    group: dict[str, Any] | None = None
    ended = False
    for event in sorted(seen.events, key=lambda event: (event.at, event.n)):
        key = "after" if ended and event.name != "run.ended" else event.step_index
        if group is None or group["key"] != key:
            if group is not None:
                yield group
            step = f"Step {key}" if key else "Before the first step"
            title = "After the end" if key == "after" else step
            group = {"key": key, "title": title, "events": [], "cost": 0.0, "model": ""}
        group["events"].append(_event(seen, event))
        group["cost"] += float(event.data.get("cost_usd") or 0)
        group["model"] = group["model"] or str(event.data.get("model", "") if event.name == "model.asked" else "")
        ended = ended or event.name == "run.ended"
    if group is not None:
        yield group


def _event(seen: RunView, event: Event) -> dict[str, Any]:
    data = event.data
    text = event.said.replace(" -> ", " → ")
    tool = str(data.get("tool", "")) if event.name.startswith("action.") else ""
    if text and not tool:
        text = text[0].upper() + text[1:]
    if event.name == "model.asked":
        text = text.replace("_", " ")
    return {
        "n": event.n,
        "name": event.name,
        "at": event.at,
        "tone": tone_of(data.get("outcome", "")) if event.name == "run.ended" else event_tone(event.name),
        "tool": tool,
        "text": text or ("" if tool else event.name),
        "arguments": data.get("arguments", {}),
        "asked": data.get("request", "") if event.name.startswith("approval.") else "",
        "ref": str(data.get("summary_ref") or ""),
        "effect": data.get("effect"),
        "late": event.n >= FIRST_LATE,
        "data": json.dumps(data, indent=2, ensure_ascii=False)[:_LONGEST] if data else "",
    }


def _effects(seen: RunView) -> list[dict[str, Any]]:
    """Return what the run did to the world, the newest first."""
    own = [row for row in reversed(seen.effects) if not row.undo]
    # The store does not know yet what an open run has told since it last handed its events over.
    told = {event.data.get("effect"): event.data.get("state") for event in seen.events if event.name == "undo.ran"}
    parked = (seen.parked - told.keys()) | {n for n, state in told.items() if state == "parked"}
    return [_effect(row, seen.arguments.get(row.n, {}), parked=row.n in parked) for row in own[:MOST_EFFECTS]]


def _effect(row: EffectRow, arguments: dict[str, Any], *, parked: bool) -> dict[str, Any]:
    undone = row.state is EffectState.COMPENSATED
    left = left_to_people(row.undo_shown) if parked and not undone else ""
    told = "parked" if left else row.known.value
    return {
        "n": row.n,
        "tool": row.tool,
        "step": row.step,
        "arguments": arguments,
        "state": NOT_UNDONE if left else EFFECTS[row.known],
        "tone": "quiet" if undone else tone_of(told),
        "undo": row.undo_shown,
        "undone": undone,
        "by_hand": left,
        "outcome": row.outcome,
        "ref": row.result_ref,
        "at": row.first_sent_at,
    }


def undo_view(undo: dict[str, Any]) -> dict[str, Any]:
    """Return what an undo would do, as pages show it."""
    rows = [_undo_row(effect) for effect in undo.get("effects", [])]
    return undo | {"effects": rows, "stays": sum(not row["shown"] for row in rows)}


def _undo_row(effect: dict[str, Any]) -> dict[str, Any]:
    later = told_of_later([Touch.model_validate(touch) for touch in effect.get("later", ())])
    return {"arguments": {}} | effect | {"later": later, "unknown": bool(effect.get("unknown"))}


def _request(seen: RunView, request: Any) -> dict[str, Any]:
    same = (row.workflow_id for row in seen.requests if row.request_id == request.id and row.state == "open")
    workflow = next(same, "")
    return {
        "id": request.id,
        "workflow_id": workflow or seen.found.workflow_id,
        "question": request.question,
        "title": title_of(request),
        "kind": request.kind.value,
        "expires_at": request.expires_at,
        "calls": len(request.calls),
    }


def _result(result: Result) -> dict[str, Any]:
    outcome = result.outcome.value
    outputs = {} if set(result.raw_outputs) == {"steps"} else result.raw_outputs
    return {
        "outcome": OUTCOMES.get(outcome, outcome),
        "tone": tone_of(outcome),
        "summary": result.final_summary,
        "outputs": _pretty(outputs) if outputs else "",
        "output": _pretty(result.output) if result.output is not None else "",
        "output_ref": result.output_ref,
        "error": result.error,
        "undone": [_undone(undone) for undone in result.undone],
        "programs_unavailable": result.programs_unavailable,
        "ledger_head": result.ledger_head,
    }


def _pretty(value: Any) -> str:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\n…"


def _undone(undone: Undone) -> dict[str, Any]:
    state = str(undone.state)
    return {
        "tool": undone.tool,
        "arguments": undone.arguments,
        "state": UNDONE.get(state, state),
        "tone": "good" if state == "compensated" else tone_of(state),
        "by_hand": undone.by_hand,
        "detail": one_line(undone.detail or "", _SHOWN),
        "later": told_of_later(undone.later),
    }


def _raisable(seen: RunView) -> Sequence[str]:
    """Return the limits that people are offered to raise: those that the run has."""
    budget = seen.budget.get("budget") or {}
    return [name for name in ("max_steps", "max_tool_calls", "max_llm_cost_usd") if budget.get(name) is not None]


def is_held(seen: RunView) -> bool:
    """Return whether the run is paused, also while it waits for people."""
    return seen.status is not None and (seen.status.paused is not None or seen.status.state is State.PAUSED)
