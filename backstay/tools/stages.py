"""Which stages a tool call passes on its one way to the world: a table of purposes and stages."""

from enum import StrEnum


class Purpose(StrEnum):
    """Name what a call is made for."""

    CALL = "call"
    """The model decided on it."""
    PROGRAM = "program"
    """A program makes it."""
    PLAN_STEP = "plan_step"
    """An explicit plan holds it; the plan is ruled on and asked about as a whole, before its first step."""
    SIMULATE = "simulate"
    """A rehearsal foretells it: nothing is sent, and a token stands for each value of its answer."""
    VERIFY = "verify"
    """It checks whether an effect took place."""
    UNDO = "undo"
    """It takes an effect back."""
    VERIFY_UNDO = "verify_undo"
    """It checks whether an effect was undone."""


class Stage(StrEnum):
    """Name the stages, in their order."""

    RULE = "rule"
    ASK = "ask"
    RESERVE = "reserve"
    INTENT = "intent"
    CALL = "call"
    SETTLE = "settle"
    BIND_UNDO = "bind undo"
    DIGEST = "digest"
    EVENT = "event"


_APPLIES: dict[Stage, str | None] = dict.fromkeys(Stage)
_VERIFY: dict[Stage, str | None] = _APPLIES | {
    Stage.RULE: "the operator declared the check together with the tool, and it only reads",
    Stage.ASK: "no rule can ask about it",
    Stage.RESERVE: "no limit may keep the engine from finding out what happened; it is counted apart",
    Stage.INTENT: "it only reads",
    Stage.SETTLE: "it has no outcome of its own: what it finds settles the effect that it checks",
    Stage.BIND_UNDO: "it changes nothing that could be undone",
    Stage.EVENT: "the event `effect.settled` says what the check proved",
}
TABLE: dict[Purpose, dict[Stage, str | None]] = {
    Purpose.CALL: _APPLIES,
    Purpose.PROGRAM: _APPLIES,
    Purpose.PLAN_STEP: _APPLIES,
    Purpose.SIMULATE: _APPLIES
    | {
        Stage.RULE: "whoever rehearses has ruled on it, and what is denied is not rehearsed",
        Stage.ASK: "people decide about the forecast as a whole",
        Stage.RESERVE: "nothing is sent, so that no limit counts it",
        Stage.INTENT: "it changes nothing but a copy of the workspace that is thrown away",
        Stage.SETTLE: "it has no outcome but what is made up",
        Stage.BIND_UNDO: "it leaves nothing to undo",
    },
    Purpose.VERIFY: _VERIFY,
    Purpose.VERIFY_UNDO: _VERIFY,
    Purpose.UNDO: _APPLIES
    | {
        Stage.RESERVE: "no limit may keep an effect from being undone; it is counted apart",
        Stage.BIND_UNDO: "a compensation is never undone itself",
        Stage.EVENT: "the event `undo.ran` is written for every effect, also for one that needs no call",
    },
}
"""Why a stage does not apply to a purpose; None says that it applies."""
READS: dict[Stage, str] = {
    Stage.INTENT: "a read may be repeated",
    Stage.SETTLE: "a read whose answer is lost is made again",
    Stage.BIND_UNDO: "a read leaves nothing to undo",
}
"""Why a stage does not apply to a call of a read-only tool, whatever its purpose."""


def applies(purpose: Purpose, stage: Stage, *, reads: bool = False) -> bool:
    """Return whether a call passes a stage; `reads` says that its tool is read-only."""
    return TABLE[purpose][stage] is None and not (reads and stage in READS)
