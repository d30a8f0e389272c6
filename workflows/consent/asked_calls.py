"""The calls that one request is about: how they were ruled on, and how people see them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from temporalio import workflow

from backstay.approvals.approval import RequestedCall, RequestKind
from backstay.approvals.edits import change_lines
from backstay.approvals.undo_words import UndoTold, undo_told
from backstay.canonical import digest_of
from backstay.policies.policy import Policy
from backstay.policies.ruling import Ruling
from backstay.shown import one_line, shown_arguments
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall

PROGRAM_SHOWN = 6_000
"""Characters of its program that a request about calls shows."""
SHOWN_CHARACTERS = 30_000
"""How much of its arguments one request shows; every query answer must stay under 128 KiB."""


@dataclass(frozen=True)
class RuledCall:
    """Hold one call of a batch with its ruling."""

    index: int
    call: ToolCall
    ruling: Ruling
    undo: UndoTold | None = None
    """Whether it can be undone by the policy; None where it was not looked at."""
    repeats: str = ""
    """When the run made the same call before, and what came of it."""
    whole: bool = False
    """Whether it is approved or rejected as it is, and cannot be changed."""
    by_default: bool = False
    """Whether nothing but the policy's default asks, so that a decision can be remembered."""
    first: ToolCall | None = None
    """The call as the run wanted it, where people have changed it since."""
    changed_by: tuple[str, ...] = ()
    """Who changed it."""
    comments: tuple[str, ...] = ()
    """What they said."""

    @property
    def foretold(self) -> "RuledCall":
        """Return it as people are asked about it who approve a forecast: its writes are asked about in any case."""
        if self.ruling.verdict == "ask":
            return self
        rule = f"engine: what a rehearsal foretells is approved ({self.ruling.rule})"
        return replace(self, ruling=self.ruling.model_copy(update={"verdict": "ask", "rule": rule}))


def kind_of(group: list[RuledCall], kind: RequestKind | None) -> RequestKind:
    """Return what a request about these calls is, unless `kind` says."""
    return kind or (RequestKind.CALL if len(group) == 1 else RequestKind.BATCH)


def shown_ruled(item: RuledCall, most: int, diff: str | None) -> RequestedCall:
    """Return a call that is asked about as people see it, with what they have changed of it."""
    call = shown_call(item.call, item.index, most, diff, item.repeats or None, item.undo)
    call = call.model_copy(update={"minded": item.ruling.minds})
    if item.first is None:
        return call
    lines = change_lines(item.first.arguments, item.call.arguments, most)
    return call.model_copy(update={"changed": lines, "changed_by": ", ".join(item.changed_by)})


def key_of(group: list[RuledCall], kind: RequestKind, purpose: Purpose) -> str:
    """Return what a request is about, so that whoever asks about the same again goes on with it."""
    about = [[item.index, item.call.tool.name, item.call.tool.definition, item.call.arguments] for item in group]
    return f"{kind} {purpose} {digest_of(about)}"


def tools_of(group: Sequence[RuledCall]) -> str:
    """Return the tools of calls in words, each once."""
    names = list(dict.fromkeys(item.call.tool.name for item in group))
    return one_line(", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else ""), 300)


def question_of(group: list[RuledCall], kind: RequestKind, purpose: Purpose) -> str:
    """Return what people are asked about these calls."""
    if purpose is Purpose.UNDO:
        return f"May the run undo an effect: {one_line(str(group[0].call.arguments['undo']), 300)}?"
    if kind is RequestKind.PROGRAM:
        return "May the run start this program? Each call it makes is ruled on when it is made."
    what = f"{len(group)} calls" if len(group) > 1 else "one call"
    people = ", ".join(dict.fromkeys(person for item in group for person in item.changed_by))
    changed_by = f", as changed by {one_line(people, 300)}" if people else ""
    return f"May the run make {what} of {tools_of(group)}{changed_by}?"


def with_undo(ruled: Sequence[RuledCall], policy: Policy) -> list[RuledCall]:
    """Return calls with whether they can be undone, by the rules of the policy about undo."""
    today = workflow.now().date().isoformat() if policy.has_days else ""
    return [replace(item, undo=undo_told(item.call.tool, policy, today)) for item in ruled]


def shown_call(  # noqa: PLR0917  # called in few places, by what they are
    call: ToolCall,
    index: int = 0,
    most: int = 2000,
    diff: str | None = None,
    repeats: str | None = None,
    undo: UndoTold | None = None,
) -> RequestedCall:
    """Return a call as people see it before they decide."""
    shown, tool = shown_arguments(call.arguments, most), call.tool
    undo = undo or undo_told(tool)
    return RequestedCall(
        index=index,
        tool=one_line(tool.name, 200),
        arguments=shown.arguments,
        safety=tool.safety,
        undoable=undo.undoable,
        undo_how=undo.how,
        side_effects=tuple(one_line(effect, 200) for effect in tool.side_effects[:20]),
        diff=diff,
        clipped=shown.clipped,
        left_out=shown.left_out,
        args_digest=digest_of(call.arguments),
        repeats=repeats,
        sources={} if call.sources is None else call.sources.of_leaves(call.arguments, max(1, most // 250)),
    )
