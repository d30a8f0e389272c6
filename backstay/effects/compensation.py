"""What would take effects back, in the order it must happen."""

from collections.abc import Sequence
from functools import reduce

from backstay.authority import Authority
from backstay.frozen import Frozen


class Compensation(Frozen):
    """Hold one dispatched effect and how it would be undone."""

    effect: int
    """The effect's n."""
    tool: str
    step: int
    undo_tool: str | None = None
    """The tool that would be called, `provider.tool`; None says that it cannot be undone."""
    shown: str | None = None
    """What would be called, for people."""
    by_effect_id: bool = False
    """Whether it can be undone even when its outcome is unknown."""
    verify: bool = False
    unknown: bool = False
    """Whether nobody knows yet if the effect took place."""
    authority: Authority | None = None
    """Who may decide about the effect, and so about undoing it; None when that was never recorded."""


def authority_over(slots: Sequence[Compensation], run: Authority) -> Authority:
    """Return who may undo these effects: those who may change the run and decide about every one of the effects."""
    named = (slot.authority.for_stopping() for slot in slots if slot.authority is not None)
    return reduce(Authority.also, named, run.for_stopping())


class UndoStack(Frozen):
    """Keep compensations in order of dispatch; the last one is undone first."""

    slots: tuple[Compensation, ...] = ()

    def push(self, slot: Compensation) -> "UndoStack":
        """Return the stack with one more slot, replacing an earlier slot of the same effect."""
        return UndoStack(slots=(*(s for s in self.slots if s.effect != slot.effect), slot))

    def drop(self, effect: int) -> "UndoStack":
        """Return the stack without that effect."""
        return UndoStack(slots=tuple(s for s in self.slots if s.effect != effect))

    def to_undo(self, to_step: int | None = None) -> tuple[Compensation, ...]:
        """Return what must be undone, last first; effects of steps up to and including `to_step` stay."""
        chosen = [s for s in self.slots if to_step is None or s.step > to_step]
        return tuple(sorted(chosen, key=lambda s: s.effect, reverse=True))


class Undone(Frozen):
    """Tell what became of one effect when it was to be taken back."""

    effect: int
    tool: str
    state: str
    """compensated | kept | parked"""
    shown: str | None = None
    detail: str | None = None
    """Why it was parked or kept, with the manual steps."""
