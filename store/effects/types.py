"""Types for what the store records about one effect."""

from typing import Literal

from pydantic import Field

from backstay.approvals.approval import RecordedDecision
from backstay.authority import Authority
from backstay.effects.effect import Effect, EffectState
from backstay.frozen import Frozen


class Intent(Frozen):
    """Describe one send of one effect, before it is sent."""

    effect_id: str
    """`<run>/<n>`, and `<run>/<n>/undo` for its compensation."""
    run: str
    n: int
    undo: bool = False
    """Whether this is the compensation of effect n."""
    tool: str
    args_digest: str
    step: int = 0
    send: int = 1
    lease_s: float
    """For how long from now this attempt may be sending."""
    user_id: str
    arguments_sealed: str | None = None
    """Ref of the sealed arguments as they are sent; a check or an undo by id needs them."""
    authority: Authority | None = None
    """Who may decide about the effect."""
    decisions: tuple[RecordedDecision, ...] = ()
    """What permits it; written in the same transaction."""
    ruling: str = ""
    """What policy said of it, and by which rule; for the ledger."""


class EffectRow(Frozen):
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
    """Identifies the attempt that may settle it; empty when none may."""
    lease: float
    """Until when its attempt may still be sending, by the database's clock as all times here."""
    step: int
    user_id: str
    result_ref: str | None = None
    outcome: str | None = None
    undo_tool: str | None = None
    undo_sealed: str | None = None
    undo_shown: str | None = None
    arguments_sealed: str | None = None
    task_sealed: str | None = None
    """Ref of the sealed id of the task by which its server answers it later."""
    authority: Authority | None = None
    first_sent_at: float
    updated_at: float
    read_at: float
    """What time it was in the database when this was read; no column."""
    made_by: str = Field(default="", exclude_if=lambda made_by: not made_by)
    """Of an effect that a run has taken over: the workflow id of the sub-run that made it; no column."""

    @property
    def own_n(self) -> int:
        """Return its number in the run that made it."""
        return int(self.effect_id.removesuffix("/undo").rpartition("/")[2]) if self.made_by else self.n

    @property
    def lease_left_s(self) -> float:
        """Return for how long after the row was read its attempt may still be sending."""
        return max(0.0, self.lease - self.read_at) if self.state is EffectState.DISPATCHED else 0.0

    @property
    def followed(self) -> bool:
        """Return whether its server works on it as a task, whose end is not recorded."""
        return self.state is EffectState.DISPATCHED and self.task_sealed is not None

    @property
    def known(self) -> EffectState:
        """Return what is known of it: a send that was not answered, and is not under way any more, is unknown."""
        lost = self.state is EffectState.DISPATCHED and not self.lease_left_s and not self.followed
        return EffectState.UNKNOWN if lost else self.state

    def effect(self) -> Effect:
        """Return the form that people see."""
        return Effect(
            id=self.effect_id,
            n=self.n,
            tool=self.tool,
            args_digest=self.args_digest,
            state=self.known,
            step=self.step,
            send=self.send,
            undo=self.undo_shown,
            outcome=self.outcome,
            result=self.result_ref,
            authority=self.authority,
            followed=self.followed,
            made_by=self.made_by,
        )


Go = Literal["go", "recorded", "undone", "wait", "followed", "unknown", "conflict", "taken"]
"""go: send now, with this token. recorded: it was settled; do not send. undone: it would undo what a person has undone,
whose row this is; do not send. wait: another attempt may be sending for `row.lease_left_s`. followed: its
server works on it as a task, which is to be asked about. unknown: it may have been sent; do not send. conflict: the row
is about another call; do not send. taken: nothing was sent, and the number is that of an effect of a sub-run, whose row
this is; do not send."""


class IntentAnswer(Frozen):
    """Answer an Intent."""

    kind: Go
    token: str = Field(default="", repr=False)
    """Pass this to `settle`; empty unless `kind` is `go`."""
    row: EffectRow
    """The row after this call."""
    free: int = 0
    """Where `kind` is `taken`: the first number from which on no effect of a sub-run has one."""


class BoundUndo(Frozen):
    """Hold the compensation of an effect, with its arguments rendered and sealed."""

    tool: str
    sealed_ref: str
    """Ref of the sealed blob with the arguments."""
    shown: str
    """The call in a form that people read."""
