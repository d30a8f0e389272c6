"""Say of a run what programs read, which is the same at every door."""

from typing import Any

from backstay.errors import TaskInvalid
from people.runs.looking import MOST_EFFECTS, RunView
from people.runs.plans import known_plans
from store.effects.types import EffectRow, EffectState


def wire_of(seen: RunView) -> dict[str, Any]:
    """Return everything that is known of a run, in the objects of the wire."""
    found = seen.found
    return {
        "workflow_id": found.workflow_id,
        "run_id": found.run_id,
        "user_id": found.user_id,
        "session_id": found.session_id,
        "text": found.text,
        "open": found.is_open,
        "older": found.is_older,
        "started_at": found.started_at,
        "ended_at": found.ended_at,
        "pruned_at": None if found.row is None else found.row.pruned_at,
        "known_to_temporal": found.execution is not None or bool(found.fault),
        "status": None if seen.status is None else seen.status.plain(),
        "budget": seen.budget or None,
        "plans": _plans(seen),
        "undo": seen.undo | {"effects": _standing(seen), "undone": _undone(seen)},
        "undoing": seen.undoing,
        "pending": [request.plain() for request in seen.pending],
        "effects": [_effect(seen, row) for row in seen.effects if not row.undo][-MOST_EFFECTS:],
        "decisions": [decision.plain() for decision in seen.decisions],
        "events": [event.plain() for event in seen.events],
        "earlier_events": seen.earlier_events,
        "result": seen.result,
        "follows": [row.workflow_id for row in seen.before if found.row and row.run == found.row.follows],
        "followed_by": [row.workflow_id for row in seen.after],
        "part_of": [above.workflow_id for above in seen.above],
        "sub_runs": [row.workflow_id for row in seen.subruns],
        "fault": seen.fault or None,
    } | _failure(seen)


def _plans(seen: RunView) -> list[dict[str, Any]]:
    """Return every plan as the run says it or, where that says nothing, as the store has it."""
    known = {plan.plan.id: {"plan": plan.plan.plain(), **plan.life.plain()} for plan in known_plans(seen)}
    return list((known | seen.plans).values())


def _effect(seen: RunView, row: EffectRow) -> dict[str, Any]:
    return row.effect().plain() | {"arguments": seen.arguments.get(row.n, {})}


def _standing(seen: RunView) -> list[dict[str, Any]]:
    """Return what an undo would do now; of what an undo has failed for, `parked` says so."""
    effects = seen.undo.get("effects", [])
    return [effect | ({"parked": True} if effect["effect"] in seen.parked else {}) for effect in effects]


def _undone(seen: RunView) -> list[dict[str, Any]]:
    gone = [row for row in seen.effects if not row.undo and row.state is EffectState.COMPENSATED]
    return [{"effect": row.n, "tool": row.tool, "arguments": seen.arguments.get(row.n, {})} for row in gone]


def _failure(seen: RunView) -> dict[str, str]:
    """Return why a run ended without a Result, where it did."""
    if seen.failure is None:
        return {}
    if isinstance(seen.failure, TaskInvalid):
        return {"invalid": str(seen.failure)}
    return {"error": f"{type(seen.failure).__name__}: {seen.failure}"}
