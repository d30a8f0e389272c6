"""The rules by which one of several attempts may send: pure, so that they can be tested alone."""

from backstay.effects.effect import EffectState
from store.effects.types import EffectRow, Go, Intent

_RECORDED = frozenset({EffectState.APPLIED, EffectState.FAILED, EffectState.COMPENSATED, EffectState.KEPT})


def admit_first(intent: Intent, *, attempt: int, epoch_differs: bool) -> Go:
    """Rule on an effect without a row.

    After a restore the row of an earlier attempt may be lost; a later send without the earlier send's row proves
    the same.
    """
    lost = (epoch_differs and attempt > 1) or intent.send > 1
    return "unknown" if lost else "go"


def admit_again(row: EffectRow, intent: Intent, *, now: float, idempotency_ttl: float | None) -> Go:
    """Rule on an effect that has a row."""
    if (row.tool, row.args_digest, row.undo) != (intent.tool, intent.args_digest, intent.undo):
        return "conflict"
    if row.state is EffectState.FAILED and intent.undo and intent.send > row.send:
        # The tool said that its compensation failed; another deliberate send may succeed.
        return "go"
    if row.state in _RECORDED:
        return "recorded"
    if intent.send < row.send:
        return "conflict"
    match row.state:
        case EffectState.NOT_SENT:
            # Without a token a check or a person closed this send: an attempt that slept since must not revive it.
            return "recorded" if intent.send == row.send and not row.token else "go"
        case EffectState.DISPATCHED if now < row.lease:
            return "wait"
        case EffectState.DISPATCHED if intent.send == row.send and idempotency_ttl is not None:
            return "go" if now < row.first_sent_at + idempotency_ttl else "unknown"
        case _:
            return "unknown"
