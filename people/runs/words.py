"""The words and the tones in which people are told of runs."""

from backstay.effects.compensation import Undone, left_to_people
from backstay.effects.effect import EffectState, told_of_later
from backstay.shown import one_line
from backstay.tools.recipients import call_line

OUTCOMES = {
    "all": "all",
    "open": "open",
    "starting": "starting",
    "deciding": "thinking",
    "calling": "working",
    "computing": "computing",
    "running": "running",
    "waiting": "waiting for people",
    "paused": "paused",
    "undoing": "undoing",
    "done": "ending",
    "completed": "completed",
    "failed": "failed",
    "budget_exceeded": "budget used up",
    "rejected": "rejected",
    "cancelled": "cancelled",
    "rolled_back": "rolled back",
    "rollback_failed": "rollback failed",
    "stopped": "stopped without a result",
    "pruned": "pruned",
}
"""What states and outcomes are called here."""
EFFECTS = {
    EffectState.PLANNED: "planned",
    EffectState.DISPATCHED: "under way",
    EffectState.APPLIED: "done",
    EffectState.DOUBTFUL: "doubtful",
    EffectState.FAILED: "failed",
    EffectState.NOT_SENT: "not made",
    EffectState.UNKNOWN: "unknown",
    EffectState.COMPENSATED: "undone",
    EffectState.KEPT: "kept",
}
NOT_UNDONE = "not undone"
UNDONE = {"compensated": "undone", "kept": "kept", "parked": NOT_UNDONE}
"""What became of an effect that was to be undone."""
PLANS = {
    "DRAFT": "draft",
    "PROPOSED": "proposed",
    "APPROVED": "approved",
    "EXECUTING": "under way",
    "REVIEWING": "being reviewed",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "ROLLBACK_COMPLETED": "undone",
    "ROLLBACK_FAILED": "not fully undone",
}
PLAN_STEPS = {
    "pending": "to do",
    "running": "under way",
    "success": "done",
    "failed": "failed",
    "rolled_back": "undone",
}
_LONGEST, _LONGEST_REASON = 300, 600
_TONES = {
    "good": ("completed", "success", "applied", "COMPLETED", "approved"),
    "bad": ("failed", "rollback_failed", "stopped", "FAILED", "ROLLBACK_FAILED", "parked"),
    "wait": ("waiting", "paused", "PROPOSED", "unknown", "doubtful", "budget_exceeded", "rejected", "kept"),
    "live": (
        *("open", "starting", "deciding", "calling", "computing", "running", "undoing"),
        *("EXECUTING", "REVIEWING", "APPROVED", "dispatched"),
    ),
}
_TONE = {state: tone for tone, states in _TONES.items() for state in states}
_EVENT_TONES = {
    "action.failed": "bad",
    "model.failed": "bad",
    "effect.unknown": "bad",
    "effect.late": "bad",
    "budget.exceeded": "bad",
    "budget.overshot": "bad",
    "program.diverged": "bad",
    "approval.asked": "wait",
    "approval.reminded": "wait",
    "approval.escalated": "wait",
    "approval.expired": "bad",
    "approval.decided": "good",
    "run.paused": "wait",
    "undo.ran": "wait",
    "undo.withheld": "wait",
    "undo.left": "wait",
    "tools.missing": "wait",
    "message.received": "live",
    "message.unread": "wait",
    "action.called": "good",
    "program.ended": "good",
}


def tone_of(state: str) -> str:
    """Return how something in this state looks: good, bad, wait, live or quiet."""
    return _TONE.get(state, "quiet")


def event_tone(name: str) -> str:
    """Return how an event looks."""
    return _EVENT_TONES.get(name, "quiet")


def undone_line(undone: Undone) -> str:
    """Return which effect was to be undone, how that ended, and what is left to a person."""
    how = UNDONE.get(undone.state, undone.state)
    if undone.state == "parked":
        # The reason may name the call already.
        is_named = undone.shown is not None and undone.shown in (undone.detail or "")
        how += f"; {one_line(left_to_people(None if is_named else undone.shown), _LONGEST)}"
    elif undone.state == "compensated" and undone.shown:
        how += f" by {one_line(undone.shown, _LONGEST)}"
    said = "; ".join(filter(None, (undone.detail, told_of_later(undone.later))))
    what = one_line(call_line(undone.tool, undone.arguments), _LONGEST)
    return f"{what}: {how}{f' ({one_line(said, _LONGEST_REASON)})' if said else ''}"
