"""Lay a request out for a page: the engine's facts, what the model says, and what this visitor may do."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.forecast import ForecastEntry
from backstay.approvals.layout import argument_parts
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.approvals.proposal_words import (
    NarrowedLimit,
    more_words,
    narrowed_limits,
    part_lines,
    process_words,
    step_marks,
)
from backstay.approvals.whole import unseen
from backstay.provenance.telling import told_together
from backstay.shown import CLIPPED, MASKED, kept_bytes, one_line, unseen_words
from gateways.web.words import moment
from store.notices.requests import RequestRow

_DIFF = {"+": "added", "-": "removed", "@": "place"}
_FOLDED, _FOLDED_LINES = 1500, 30
"""Longer values are folded: one of so many characters, or lines."""
_BEGINS, _BEGINS_LINES = 600, 8
"""How much of a folded value is seen."""
OUTCOMES = ("happened", "did_not_happen", "retry")


class ShownArgument(NamedTuple):
    """Hold one argument: its name, its value as lines, and where it first appeared."""

    name: str
    lines: list[str]
    """What is seen at once."""
    more: list[str]
    """All of it, where that is so long that it is folded."""
    size: int
    """How many characters it has."""


class ShownCall(NamedTuple):
    """Hold one call, or one step of a plan, as people read it."""

    number: int
    tool: str
    safety: str
    marks: str
    summary: str
    arguments: list[ShownArgument]
    unseen: str
    changes: str
    diff: list[tuple[str, str]]
    """Lines with the kind of each."""
    repeats: str
    writes: bool
    undoable: bool
    undo_how: str
    asked: bool
    """Whether a decision is about it."""
    changed: list[str]
    """What people have changed of it."""
    changed_by: str
    sources: str
    """Where its arguments came from, in one line."""
    minded: str
    """Of these, what policy asks because of."""


class ShownRequest(NamedTuple):
    """Hold a request as a page shows it."""

    request: ApprovalRequest
    calls: list[ShownCall]
    parts: list[str]
    more: str
    """How many steps of a plan are not shown."""
    processes: str
    """Which steps of a plan start processes, where an approver can forbid it."""
    limits: list[NarrowedLimit]
    """Of what an approver can give the steps of a plan less."""
    forecast: list[ForecastEntry]
    masked: str
    who: str
    escalated: str
    """Who was asked, too, or again, when nobody had decided in time."""
    unseen: str
    """What of it is not shown; empty where all of it is."""
    program: list[ShownArgument]
    """The source of the program that makes its calls; nothing where no program does."""

    @property
    def folded(self) -> bool:
        """Return whether some of it is folded."""
        shown = [argument for call in self.calls for argument in call.arguments]
        return any(argument.more for argument in (*shown, *self.program))


def shown(request: ApprovalRequest, *, waits: bool = True) -> ShownRequest:
    """Return a request as a page shows it; of one that is decided, nobody is missing any more."""
    proposal = request.proposal
    return ShownRequest(
        request=request,
        calls=[_call(call) for call in request.calls] if proposal is None else _steps(proposal, request.calls),
        parts=[] if proposal is None else list(part_lines(proposal, waits=waits)),
        more="" if proposal is None else more_words(proposal),
        processes="" if proposal is None else process_words(proposal),
        limits=[] if proposal is None else list(narrowed_limits(proposal)),
        forecast=list(request.forecast),
        masked=MASKED if request.masked else "",
        who=_who(request),
        escalated=request.escalation,
        unseen=unseen(request),
        program=[]
        if request.program is None
        else [_argument(name, value) for name, value in request.program.arguments.items()],
    )


def _steps(proposal: Proposal, calls: Sequence[RequestedCall]) -> list[ShownCall]:
    """Return the steps of a plan in order, those that a decision is about with all that is known of their calls."""
    asked = {call.index: call for call in calls}
    several = len(proposal.parts) > 1
    return [
        _call(asked[step.idx], "; ".join(step_marks(step, several=several)), step.summary)
        if step.idx in asked
        else _step(step, "; ".join(step_marks(step, several=several)))
        for step in proposal.steps
    ]


def _call(call: RequestedCall, marks: str = "", summary: str = "") -> ShownCall:
    return ShownCall(
        number=call.index,
        tool=call.tool,
        safety=str(call.safety),
        marks=marks,
        summary=summary,
        arguments=[_argument(name, value) for name, value in call.arguments.items()],
        unseen=unseen_words(call.left_out, call.count, call.clipped, kept_bytes(call.arguments)),
        changes=", ".join(call.side_effects),
        diff=list(_diff(call.diff)),
        repeats=call.repeats or "",
        writes=call.safety.level > 0,
        undoable=call.undoable,
        undo_how=call.undo_how or "",
        asked=True,
        changed=list(call.changed),
        changed_by=call.changed_by,
        sources=_told(call, minded=False),
        minded=_told(call, minded=True),
    )


def _step(step: ProposedStep, marks: str) -> ShownCall:
    return ShownCall(
        number=step.idx,
        tool=step.action,
        safety=str(step.safety),
        marks=marks,
        summary=step.summary,
        arguments=[_argument(name, value) for name, value in step.arguments.items()],
        unseen="",
        changes=", ".join(step.side_effects),
        diff=list(_diff(step.diff_preview)),
        repeats="",
        writes=step.safety.level > 0,
        undoable=step.undoable,
        undo_how=step.undo_how or "",
        asked=False,
        changed=[],
        changed_by="",
        sources="",
        minded="",
    )


def _told(call: RequestedCall, *, minded: bool) -> str:
    """Return where the arguments of a call came from, those that policy minds or the others."""
    told = {name: call.told(name) for name in call.arguments}
    return one_line(told_together({name: said.text for name, said in told.items() if said.minded == minded}), 1000)


def _argument(name: str, value: Any) -> ShownArgument:
    said, lines = argument_parts(name, value)
    size = sum(map(len, lines)) + len(lines) - 1
    folded = size > _FOLDED or len(lines) > _FOLDED_LINES
    return ShownArgument(
        name=said,
        lines=_beginning(lines) if folded else lines,
        more=lines if folded else [],
        size=size,
    )


def _beginning(lines: Sequence[str]) -> list[str]:
    first = list(lines[:_BEGINS_LINES])
    if sum(map(len, first)) > _BEGINS:
        first = [line[:_BEGINS] + (CLIPPED if len(line) > _BEGINS else "") for line in first[:1]]
    return first


def _diff(diff: str | None) -> Iterator[tuple[str, str]]:
    for line in (diff or "").splitlines():
        yield _DIFF.get(line[:1], "same"), line


def _who(request: ApprovalRequest) -> str:
    """Return who may decide a request that is no plan, and how many of them must."""
    if request.proposal is not None:
        return ""
    named = ", ".join(request.approvers) or (
        "any verified person" if request.authority.restricts else "anybody who may open this page"
    )
    count = f"; {request.quorum} must agree" if request.quorum > 1 else ""
    own = "; not who started the run" if request.no_self_approval else ""
    return f"{named}{count}{own}"


def reminders(row: RequestRow | None) -> str:
    """Return how often people were reminded of a request, and when they last were; empty where they were not."""
    if row is None or row.reminded_at is None:
        return ""
    at = moment(row.reminded_at)
    return f"reminded once, at {at}" if row.reminded == 1 else f"reminded {row.reminded} times, last at {at}"


def hindrance(request: ApprovalRequest, by: str, *, signs: bool) -> str:
    """Return why this visitor cannot decide a request, as far as a page can know; empty when nothing speaks against it.

    The run itself decides; this only spares people buttons that it would refuse.
    """
    named = request.deciders
    if named and by not in named:
        return f"Only these people may decide this: {', '.join(sorted(named))}."
    parts = () if request.proposal is None else request.proposal.parts
    restricts = request.authority.restricts if request.proposal is None else any(p.authority.restricts for p in parts)
    if restricts and not signs:
        return "Only verified people may decide this, and this page has no approver key to verify anybody."
    votes = [vote for vote in request.decided if vote.get("by") == by]
    if request.kind in {RequestKind.CALL, RequestKind.BATCH} and votes:
        return f"You have decided: {votes[-1].get('verdict')}. It waits for others."
    open_parts = [part for part in parts if not part.complete and (not part.approvers or by in part.approvers)]
    if parts and all(any(vote.get("by") == by for vote in part.decided) for part in open_parts):
        return "You have decided your part. It waits for others."
    return ""
