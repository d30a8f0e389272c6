"""A call that may change the world, and what is known of it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from backstay.authority import Authority
from backstay.errors import AnswerDoubtful
from backstay.frozen import Frozen
from backstay.tools.tool import OutcomeSource, ToolResult

DOUBTFUL = AnswerDoubtful.__name__
"""The type of a result that reports an error and does not prove that nothing happened."""


class EffectState(StrEnum):
    """Name what is known of an effect."""

    PLANNED = "planned"
    DISPATCHED = "dispatched"
    APPLIED = "applied"
    DOUBTFUL = "doubtful"
    """Its answer reports an error that may have come after it took effect."""
    FAILED = "failed"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"
    COMPENSATED = "compensated"
    KEPT = "kept"


SAYS_SO = " says so"
"""How the outcome ends that a person has told; the name is before it."""
UNDONE_BY_HAND = "it was undone by hand before"
"""What an undo tells that was not sent for that reason."""
LEGAL: dict[EffectState, frozenset[EffectState]] = {
    EffectState.PLANNED: frozenset({EffectState.DISPATCHED}),
    EffectState.DISPATCHED: frozenset(
        {EffectState.APPLIED, EffectState.DOUBTFUL, EffectState.FAILED, EffectState.NOT_SENT, EffectState.UNKNOWN}
    ),
    EffectState.DOUBTFUL: frozenset(
        {EffectState.APPLIED, EffectState.FAILED, EffectState.NOT_SENT, EffectState.COMPENSATED}
    ),
    EffectState.NOT_SENT: frozenset({EffectState.DISPATCHED}),
    EffectState.UNKNOWN: frozenset(
        {EffectState.APPLIED, EffectState.FAILED, EffectState.NOT_SENT, EffectState.COMPENSATED}
    ),
    EffectState.APPLIED: frozenset({EffectState.COMPENSATED, EffectState.KEPT}),
    EffectState.FAILED: frozenset(),
    EffectState.COMPENSATED: frozenset(),
    EffectState.KEPT: frozenset({EffectState.COMPENSATED}),
}
"""Which state may follow which."""


class Touch(Frozen):
    """Name an effect of a later run that touched the same thing as an effect that is to be undone."""

    workflow_id: str
    task: str = ""
    effect: int
    tool: str

    @property
    def told(self) -> str:
        """Return it in words."""
        return f"{self.tool} (effect {self.effect} of {self.workflow_id}{f': {self.task}' if self.task else ''})"


def told_of_later(later: Sequence[Touch]) -> str:
    """Return what later runs did to the same thing, in words; empty when they did nothing."""
    return f"later runs touched the same: {', '.join(touch.told for touch in later)}" if later else ""


class Effect(Frozen):
    """Show one effect to people, in redacted form."""

    id: str
    """`<workflow id>/<first execution run id>/<n>`."""
    n: int
    tool: str
    args_digest: str
    state: EffectState
    step: int = 0
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What it was called with, in short and in shown form; only where it is to be undone."""
    send: int = 1
    """Counts deliberate sends; a retry of one send keeps its number."""
    undo: str | None = None
    """What undoes it, shown form; None says it cannot be undone."""
    undo_tool: str | None = None
    """The tool that would be called for it."""
    undo_by_effect_id: bool = False
    undo_by_id: str = Field(default="", exclude_if=lambda how: not how)
    """What undoes it while its answer is lost, shown form."""
    undo_by_id_tool: str = Field(default="", exclude_if=lambda tool: not tool)
    """The tool that would be called then."""
    undo_arguments: dict[str, Any] = Field(default_factory=dict, exclude_if=lambda arguments: not arguments)
    """What that would be called with, in shown form; only where people are to be asked about it."""
    undo_digest: str = Field(default="", exclude_if=lambda digest: not digest)
    """The digest of these arguments, before large parts of them were stored apart."""
    verify: bool = False
    outcome: str | None = None
    """One redacted line: the error, or what a person said."""
    result: str | None = None
    """Ref of the stored result record."""
    authority: Authority | None = None
    """Who may decide about it; None when no rule names anybody."""
    followed: bool = Field(default=False, exclude_if=lambda followed: not followed)
    """Whether its server works on it as a task whose end is not recorded."""
    made_by: str = Field(default="", exclude_if=lambda made_by: not made_by)
    """The workflow id of the sub-run that made it, as its id says; empty where it is an effect of the run itself."""
    settle_in_s: float = 0
    """For a dispatched effect: how long until its request can no longer be under way."""
    later: tuple[Touch, ...] = ()
    """What runs that follow this one did to the same thing; told when it is to be undone."""

    @property
    def unknown(self) -> bool:
        """Return whether nobody knows whether the effect took place."""
        return self.state in {EffectState.DISPATCHED, EffectState.UNKNOWN, EffectState.DOUBTFUL}

    @property
    def recorded(self) -> ToolResult | None:
        """Return the outcome that is recorded, as if it had just come; None when none is."""
        match self.state:
            case EffectState.APPLIED | EffectState.COMPENSATED | EffectState.KEPT:
                known = ToolResult(success=True, ref=self.result, undo=self.undo, recorded=True)
                return known if self.result else known.model_copy(update=self._settled())
            case EffectState.FAILED | EffectState.DOUBTFUL:
                kind = "ToolError" if self.state is EffectState.FAILED else DOUBTFUL
                return ToolResult(success=False, ref=self.result, error=self.outcome, error_type=kind, recorded=True)
            case EffectState.NOT_SENT:
                why = self.outcome or "it did not happen"
                return ToolResult(success=False, error=why, error_type="DidNotHappen", recorded=True)
            case _:
                return None

    def _settled(self) -> dict[str, Any]:
        by = (self.outcome or "").removesuffix(SAYS_SO)
        return {"error": self.outcome, "settled": OutcomeSource(effect=self.n, by=by)}

    @property
    def sends_settled(self) -> int:
        """Return how many of its sends have a known outcome."""
        if self.unknown and self.state is not EffectState.DOUBTFUL:
            return self.send - 1
        return 0 if self.state is EffectState.PLANNED else self.send
