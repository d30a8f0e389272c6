"""The calls that would take effects back, in the order in which they must happen."""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from pydantic import Field

from backstay.authority import NOBODY, Authority
from backstay.canonical import digest_of
from backstay.effects.effect import Effect, Touch
from backstay.frozen import Frozen
from backstay.tools.recipients import call_line
from backstay.tools.tool import Tool

KEPT_UNDONE = 100
"""How many outcomes of undone effects are named one by one; of all others only the number is kept."""

UNDO_DIGEST = "args_digest"
"""Under which name the call that undoes an effect carries the digest of what it is agreed to be called with."""


class Compensation(Frozen):
    """Hold one dispatched effect and how it would be undone."""

    effect: int
    """The effect's n."""
    tool: str
    step: int
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What it was called with, in short and in shown form; empty where only the store knows."""
    undo_tool: str | None = None
    """The tool that would be called, `provider.tool`; None says that it cannot be undone."""
    shown: str | None = None
    """What would be called, for people."""
    by_effect_id: bool = False
    """Whether it can be undone even when its outcome is unknown."""
    by_id: str = Field(default="", exclude_if=lambda how: not how)
    """What would be called then, for people."""
    by_id_tool: str = Field(default="", exclude_if=lambda tool: not tool)
    """The tool that would be called then."""
    verify: bool = False
    unknown: bool = False
    """Whether nobody knows yet if the effect took place."""
    authority: Authority | None = None
    """Who may decide about the effect, and so about undoing it; None when no rule names anybody."""
    later: tuple[Touch, ...] = ()
    """What runs that follow this one did to the same thing, as far as it is named."""
    made_by: str = Field(default="", exclude_if=lambda made_by: not made_by)
    """The workflow id of the sub-run that made it; empty where the run did."""

    @property
    def told(self) -> str:
        """Return the effect and its state in one line."""
        return f"effect {self.effect}: {self.called}: {'unknown' if self.unknown else 'applied'}"

    @property
    def called(self) -> str:
        """Return the tool and what it was called with, and by which sub-run."""
        return call_line(self.tool, self.arguments) + (f" (by {self.made_by})" if self.made_by else "")

    def without_answer(self) -> "Compensation":
        """Return it as the effect is undone while nothing is bound to its answer: by its id, where that is declared."""
        if not self.by_id_tool:
            return self
        return self.model_copy(update={"undo_tool": self.by_id_tool, "shown": self.by_id})

    def with_answer(self, undo: str | None) -> "Compensation":
        """Return it as the effect is known to have taken place; `undo`: what its answer says would be called, if any.

        A compensation that could not be prepared stays named, for a person to do.
        """
        if undo is None and self.by_effect_id:
            return self.without_answer().model_copy(update={"unknown": False})
        prepared = {"shown": undo or self.shown, "undo_tool": None if undo is None else self.undo_tool}
        return self.model_copy(update={"unknown": False} | prepared)


def compensation_by(
    tool: Tool, effect: int, step: int, arguments: dict[str, Any], authority: Authority
) -> Compensation:
    """Return how an effect of a tool would be undone that is about to be sent."""
    return Compensation(
        effect=effect,
        authority=authority,
        tool=tool.name,
        step=step,
        arguments=arguments,
        undo_tool=tool.undo_tool,
        shown=tool.undo_before_answer,
        by_effect_id=tool.undo_by_effect_id,
        by_id=tool.undo_by_id,
        by_id_tool=tool.undo_by_id_tool,
        verify=tool.verify,
        unknown=True,
    )


def compensation_of(effect: Effect) -> Compensation:
    """Return how an effect that the store holds would be undone."""
    return Compensation(
        effect=effect.n,
        tool=effect.tool,
        step=effect.step,
        arguments=effect.arguments,
        undo_tool=effect.undo_tool,
        shown=effect.undo,
        by_effect_id=effect.undo_by_effect_id,
        by_id=effect.undo_by_id,
        by_id_tool=effect.undo_by_id_tool,
        verify=effect.verify,
        unknown=effect.unknown,
        authority=effect.authority,
        later=effect.later,
        made_by=effect.made_by,
    )


def authority_over(slots: Sequence[Compensation], run: Authority) -> Authority:
    """Return who may undo these effects: those who may change the run and decide about every one of the effects."""
    return all_of((slot.authority for slot in slots), run.for_stopping())


def all_of(authorities: Iterable[Authority | None], run: Authority = Authority()) -> Authority:  # noqa: B008 - frozen
    """Return what satisfies every one of these about stopping, and `run` itself; None restricts nothing."""
    return reduce(Authority.also, (named.for_stopping() for named in authorities if named is not None), run)


class UndoStack(Frozen):
    """Keep compensations in order of dispatch; the last one is undone first.

    Of those of the oldest effects it may keep only how many they are and who may undo them: the store holds the rest.
    """

    slots: tuple[Compensation, ...] = ()
    below: int = 0
    """How many effects only the store holds, as far as is known."""
    below_effect: int = 0
    """The highest number among them; 0 where there are none."""
    below_step: int = 0
    """The highest step among them."""
    below_authority: Authority = Authority()
    """Who may undo all of them."""
    below_after: int = -1
    """Only effects of later steps are among them."""

    @property
    def count(self) -> int:
        """Return how many effects could be undone, as far as is known."""
        return self.below + len(self.slots)

    def push(self, slot: Compensation) -> "UndoStack":
        """Return the stack with one more slot, replacing an earlier slot of the same effect."""
        return self.model_copy(update={"slots": (*(s for s in self.slots if s.effect != slot.effect), slot)})

    def drop(self, effect: int) -> "UndoStack":
        """Return the stack without that effect."""
        return self.model_copy(update={"slots": tuple(s for s in self.slots if s.effect != effect)})

    def to_undo(self, to_step: int | None = None) -> tuple[Compensation, ...]:
        """Return what must be undone, last first; effects of steps up to and including `to_step` stay.

        Those that only the store holds come after these.
        """
        chosen = [s for s in self.slots if to_step is None or s.step > to_step]
        return tuple(sorted(chosen, key=lambda s: s.effect, reverse=True))

    def digest(self, to_step: int | None = None) -> str:
        """Return what names the effects that an undo to that step is about, those in the store included."""
        below = (self.below_effect, self.below) if self.reaches_below(to_step) else ()
        return digest_of([[[slot.effect, slot.tool] for slot in self.to_undo(to_step)], list(below)])

    def joined(self, slots: Sequence[Compensation], count: int, authority: Authority) -> "UndoStack":
        """Return the stack with `count` effects of sub-runs on top, of which these are the newest.

        Where there are others, only the store holds those from now on, and all that came before them.
        """
        ordered = sorted(slots, key=lambda slot: slot.effect)
        if count <= len(slots):
            return reduce(UndoStack.push, ordered, self)
        before = self.trimmed(0)
        # After a reset of the run, sub-runs may have lower numbers than what it did itself since: none is kept then.
        kept = ordered if ordered[0].effect > before.below_effect else []
        update = {
            "slots": tuple(kept),
            "below": before.below + count - len(kept),
            "below_effect": ordered[0].effect - 1 if kept else max(before.below_effect, ordered[-1].effect),
            "below_step": max(before.below_step, *(slot.step for slot in ordered)),
            "below_authority": before.below_authority.also(authority),
        }
        return before.model_copy(update=update)

    def trimmed(self, keep: int) -> "UndoStack":
        """Return the stack with only the newest slots; the store holds the others, so nothing may be in flight."""
        ordered = sorted(self.slots, key=lambda slot: slot.effect)
        gone = ordered[: max(0, len(ordered) - keep)]
        if not gone:
            return self
        update = {
            "slots": tuple(slot for slot in self.slots if slot.effect > gone[-1].effect),
            "below": self.below + len(gone),
            "below_effect": max(self.below_effect, gone[-1].effect),
            "below_step": max(self.below_step, *(slot.step for slot in gone)),
            "below_authority": all_of((slot.authority for slot in gone), self.below_authority),
        }
        return self.model_copy(update=update)

    def reaches_below(self, to_step: int | None = None) -> bool:
        """Return whether an undo to that step undoes effects that only the store holds."""
        return self.below_effect > 0 and (to_step is None or to_step < self.below_step)

    def authority(self, to_step: int | None, run: Authority) -> Authority:
        """Return who may undo what came after that step.

        Where that reaches what only the store holds, it is who may undo all of that: perhaps stricter than needed.
        """
        kept = authority_over(self.to_undo(to_step), run)
        return kept.also(self.below_authority) if self.reaches_below(to_step) else kept

    def covers(self, slot: Compensation) -> bool:
        """Return whether whoever may undo what only the store holds may undo this effect, too."""
        mine = self.below_authority
        return mine.quorum >= NOBODY or all_of([slot.authority], mine) == mine

    def dealt_with(self, effect: int) -> "UndoStack":
        """Return the stack after an effect was dealt with, and with it all later ones that only the store holds."""
        dropped = self.drop(effect)
        if effect > self.below_effect:
            return dropped
        return dropped.model_copy(update={"below": max(0, self.below - 1), "below_effect": effect - 1})

    def dealt_with_below(self, to_step: int | None) -> "UndoStack":
        """Return the stack after everything that came after that step was dealt with."""
        if to_step is None:
            return UndoStack(slots=self.slots, below_after=self.below_after)
        return self.model_copy(update={"below_step": min(self.below_step, to_step)})


class Undone(Frozen):
    """Tell what became of one effect when it was to be undone."""

    effect: int
    tool: str
    state: str
    """compensated | kept | parked"""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """What the tool had been called with, in short and in shown form."""
    shown: str | None = None
    detail: str | None = None
    """Why it was parked or kept, with the manual steps."""
    later: tuple[Touch, ...] = ()
    """What runs that follow this one did to the same thing; it stands."""

    @property
    def by_hand(self) -> str:
        """Say what is left for a person to do; empty where nothing is."""
        return left_to_people(self.shown) if self.state == "parked" else ""


def left_to_people(shown: str | None) -> str:
    """Say that a person must take an effect back, and what its undo would have called."""
    return f"a person must undo it by hand{f': {shown}' if shown else ''}"


def standing(stack: UndoStack, undone: Sequence[Undone], first: int) -> list[str]:
    """Return one line for each effect from that number on that stands, in their order; of many, the last ones."""
    left = [(u.effect, f"effect {u.effect}: {u.tool}: {u.state}") for u in undone if u.state != "compensated"]
    told = sorted((n, line) for n, line in [*left, *((slot.effect, slot.told) for slot in stack.slots)] if n >= first)
    hidden = len(told) > KEPT_UNDONE or stack.below_effect >= first
    lines = [line for _, line in told[-KEPT_UNDONE:]]
    return [f"effects from number {first} on, as many as come before the following ones", *lines] if hidden else lines


class UndoOutcome(Frozen):
    """Tell what became of many effects that were to be undone: how many ended how, and the last of them."""

    compensated: int = 0
    kept: int = 0
    parked: int = 0
    last: tuple[Undone, ...] = ()
    """The last ones in order of undoing; a parked one makes room last, since a person must read it."""

    @property
    def count(self) -> int:
        """Return how many they are."""
        return self.compensated + self.kept + self.parked

    def plus(self, undone: Undone) -> "UndoOutcome":
        """Return the same with one more."""
        update = {undone.state: getattr(self, undone.state) + 1, "last": tuple(newest((*self.last, undone)))}
        return self.model_copy(update=update)


def newest(undone: Sequence[Undone]) -> list[Undone]:
    """Return as many as are named one by one; where there are more, the oldest that need nobody go first."""
    kept = list(undone)
    while len(kept) > KEPT_UNDONE:
        kept.pop(next((place for place, ended in enumerate(kept[:-1]) if ended.state != "parked"), 0))
    return kept
