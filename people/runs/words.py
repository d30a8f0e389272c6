"""The words and the tones in which people are told of runs."""

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
