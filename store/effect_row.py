"""Everything the store knows of one effect."""

from pydantic import Field

from backstay.effect import Effect, EffectState
from backstay.noun import Noun


class EffectRow(Noun):
    """Hold one row of the table `effects`."""

    effect_id: str
    run: str
    n: int
    undo: bool
    """Whether this is the compensation of effect n."""
    tool: str
    args_digest: str
    state: EffectState
    send: int
    token: str = Field(repr=False)
    """The attempt that may settle it; empty when none may."""
    lease: float
    step: int
    user_id: str
    result_ref: str | None = None
    outcome: str | None = None
    undo_tool: str | None = None
    undo_sealed: str | None = None
    undo_shown: str | None = None
    arguments_sealed: str | None = None
    first_sent_at: float
    updated_at: float

    def effect(self) -> Effect:
        """Return the form that people see."""
        return Effect(
            id=self.effect_id,
            n=self.n,
            tool=self.tool,
            args_digest=self.args_digest,
            state=self.state,
            step=self.step,
            send=self.send,
            undo=self.undo_shown,
            outcome=self.outcome,
            result=self.result_ref,
        )
