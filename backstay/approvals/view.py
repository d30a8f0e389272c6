"""What a person sees of a request, from the request alone: every door paints this, and decides only how it looks."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.fields import form_lines
from backstay.approvals.layout import argument_lines
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.approvals.proposal_words import more_words, part_lines, step_marks, summary_words
from backstay.approvals.undo_words import undo_words
from backstay.approvals.verdicts import verdict_words
from backstay.approvals.whole import unseen
from backstay.provenance.telling import ArgumentOrigin, told_together
from backstay.shown import MASKED, kept_bytes, minute, money, one_line, shell_words, unseen_words
from backstay.tools.tool import Safety

_DIFF: dict[str, "Kind"] = {"+": "added", "-": "removed", "@": "place"}
_NOTHING = ArgumentOrigin("", minded=False)
Kind = Literal[
    "call",
    "alike",
    "row",
    "summary",
    "argument",
    "source",
    "minded",
    "changed by",
    "changed",
    "unseen",
    "changes",
    "added",
    "removed",
    "place",
    "same",
    "repeats",
    "undo",
    "no undo",
]
"""What a line of a call says; a door gives each kind its look."""


class Line(NamedTuple):
    """Hold one line of what is shown of a call."""

    kind: Kind
    text: str


class ArgumentView(NamedTuple):
    """Hold one argument as people see it."""

    name: str
    value: Any
    told: ArgumentOrigin = _NOTHING
    """Where it came from."""

    def lines(self) -> Iterator[Line]:
        """Yield all of it as lines, each with its kind."""
        yield from (Line("argument", line) for line in argument_lines(self.name, self.value))
        if self.told.text:
            yield Line("minded" if self.told.minded else "source", self.told.text)


class OmittedParts(NamedTuple):
    """Count what is not shown of a call: arguments of how many, characters, and bytes that are kept apart."""

    arguments: int
    of: int
    characters: int
    kept: int


class CallView(NamedTuple):
    """Hold one call, or one step of a plan, as people see it."""

    number: int
    tool: str
    safety: Safety
    arguments: tuple[ArgumentView, ...]
    undoable: bool
    undo_how: str
    changes: str
    """What the operator says that it changes."""
    diff: tuple[Line, ...]
    """What it would change."""
    hidden: OmittedParts
    marks: str = ""
    """Of a step: how it is in its plan."""
    summary: str = ""
    """Of a step: what the author of the plan says of it."""
    asked: bool = False
    """Whether a decision is about it."""
    args_digest: str = ""
    repeats: str = ""
    changed: tuple[str, ...] = ()
    """What people have changed of it."""
    changed_by: str = ""

    @property
    def writes(self) -> bool:
        """Return whether it may change something; of other calls nobody needs to know how they are undone."""
        return self.safety.level > 0

    @property
    def says(self) -> str:
        """Return what the author of the plan says of it, marked as that."""
        return summary_words(self.summary)

    @property
    def unseen(self) -> str:
        """Return what of it is not shown, in words."""
        return unseen_words(*self.hidden)

    def sources(self, *, minded: bool) -> str:
        """Return where its arguments came from, in one line: those that policy asks because of, or the others."""
        told = {each.name: each.told.text for each in self.arguments if each.told.minded == minded}
        return one_line(told_together(told), 1000)

    def lines(self) -> Iterator[Line]:
        """Yield all of it as lines, each with its kind."""
        head = f"[{self.number}] {self.tool}  ({self.safety.value})"
        yield Line("call", f"{head}  {self.marks}" if self.marks else head)
        if self.summary:
            yield Line("summary", self.says)
        for argument in self.arguments:
            yield from argument.lines()
        yield from self.facts()
        if self.writes:
            yield self.undo_line(self.undo_how)

    def facts(self, *, alike: bool = False) -> Iterator[Line]:
        """Yield what is known of it beside its arguments; `alike`: not what calls have in common that are alike."""
        if self.changed:
            yield Line("changed by", f"CHANGED by {self.changed_by}:")
            yield from (Line("changed", line) for line in self.changed)
        if unseen := self.unseen:
            yield Line("unseen", f"{unseen}; digest {self.args_digest}" if self.args_digest else unseen)
        if self.changes and not alike:
            yield Line("changes", f"changes: {self.changes}")
        yield from self.diff
        if self.repeats:
            yield Line("repeats", f"REPEATED: {self.repeats}")

    def undo_line(self, how: str) -> Line:
        """Return in one line how a call is undone that may change something, or why not; `how` may be empty."""
        if not self.undoable:
            return Line("no undo", f"CANNOT BE UNDONE: {how}" if how else "CANNOT BE UNDONE")
        return Line("undo", f"can be undone: {how}" if how else "can be undone")


class RequestView(NamedTuple):
    """Hold a request as people see it: the engine's facts; the model's words are apart in it, marked."""

    request: ApprovalRequest
    calls: tuple[CallView, ...]
    """Its calls; of a plan all its steps in order, those that are asked about among them."""
    program: CallView | None
    """The program that makes its calls, as its source."""
    parts: tuple[str, ...]
    """Who decides which part of a plan, who has, and who is missing."""
    more: str
    """How many steps of a plan are not shown."""
    form: tuple[str, ...]
    """What an answer consists of, a line for each field."""
    masked: str
    unseen: str
    """What of it is not shown; empty where all of it is."""
    who: str
    """Who may decide it, if not anybody may; of a plan its parts say so."""

    @classmethod
    def of(cls, request: ApprovalRequest, *, waits: bool = True) -> "RequestView":
        """Return a request as people see it; of one that is decided, nobody is missing any more."""
        proposal, schema = request.proposal, request.answer_schema
        return cls(
            request=request,
            calls=tuple(map(call_view, request.calls) if proposal is None else _steps(proposal, request.calls)),
            program=None if request.program is None else call_view(request.program),
            parts=() if proposal is None else tuple(part_lines(proposal, waits=waits)),
            more="" if proposal is None else more_words(proposal),
            form=() if schema is None else tuple(form_lines(schema)),
            masked=MASKED if request.masked else "",
            unseen=unseen(request),
            who=_who(request),
        )

    @property
    def plan(self) -> str:
        """Return the plan in one line; empty where there is none."""
        plan = self.request.proposal
        return "" if plan is None else f"{plan.title or 'untitled'} (id {plan.plan_id}, version {plan.version})"

    @property
    def votes(self) -> list[str]:
        """Return how people have decided who were not enough yet; of a plan its parts say so."""
        votes = self.request.decided if self.request.proposal is None else ()
        return [
            f"{verdict_words(vote.get('verdict'))} by {vote.get('by')}{'' if vote.get('verified') else ' (unverified)'}"
            for vote in votes
        ]

    def standing(self, *, expiry: bool = True) -> Iterator[str]:
        """Yield which rule asks, who may decide and until when, and what the run has cost.

        `expiry`: whether its time is among them; a door may have a way of its own to write times.
        """
        request = self.request
        yield f"asked by rule: {request.rule or 'none'}"
        if self.who:
            yield f"who may decide: {self.who}"
        if request.escalation:
            yield f"{request.escalation[0].lower()}{request.escalation[1:]}"
        if expiry and request.expires_at:
            yield f"expires {minute(request.expires_at)}, then: {request.then}"
        yield f"cost so far: {money(request.cost_so_far)} USD"


def commands(workflow_id: str, request: ApprovalRequest) -> list[str]:
    """Return the literal commands that decide a request as it is shown; a shell takes the ids literally."""
    every = {
        "approve": "approve",
        "reject": "reject",
        "happened": "answer --verdict happened",
        "did_not_happen": "answer --verdict did_not_happen",
        "retry": "answer --verdict retry",
        "answer": "answer --answer JSON",
    }
    flags = f"--by YOU --args-digest {request.args_digest}" if request.args_digest else "--by YOU"
    named = shell_words(workflow_id, request.id)
    # The `--` that ends the flags must come after them.
    rest = f"{flags} {named}" if named.startswith("-") else f"{named} {flags}"
    if request.proposal is not None and len(request.calls) > 1:
        every["modify"] = "approve --reject-step STEP"
    return [f"backstay {every[option]} {rest}" for option in request.options if option in every]


def call_view(call: RequestedCall, marks: str = "", summary: str = "") -> CallView:
    """Return a call as people see it; of a step of a plan, with its marks and what the plan says of it."""
    return CallView(
        number=call.index,
        tool=call.tool,
        safety=call.safety,
        arguments=tuple(ArgumentView(name, value, call.told(name)) for name, value in call.arguments.items()),
        undoable=call.undoable,
        undo_how=undo_words(call.undo_how or "", call.arguments) if call.undoable else call.undo_how or "",
        changes=", ".join(call.side_effects),
        diff=tuple(_diff(call.diff)),
        marks=marks,
        summary=summary,
        asked=True,
        args_digest=call.args_digest,
        hidden=OmittedParts(call.left_out, call.count, call.clipped, kept_bytes(call.arguments)),
        repeats=call.repeats or "",
        changed=call.changed,
        changed_by=one_line(call.changed_by, 300),
    )


def _steps(proposal: Proposal, calls: Sequence[RequestedCall]) -> Iterator[CallView]:
    """Yield the steps of a plan in order, those that a decision is about with all that is known of their calls."""
    asked, several = {call.index: call for call in calls}, len(proposal.parts) > 1
    for step in proposal.steps:
        marks = "; ".join(step_marks(step, several=several))
        call = asked.get(step.idx)
        yield _step(step, marks) if call is None else call_view(call, marks, step.summary)


def _step(step: ProposedStep, marks: str) -> CallView:
    return CallView(
        number=step.idx,
        tool=step.action,
        safety=step.safety,
        arguments=tuple(ArgumentView(name, value) for name, value in step.arguments.items()),
        undoable=step.undoable,
        undo_how=undo_words(step.undo_how or "", step.arguments) if step.undoable else step.undo_how or "",
        changes=", ".join(step.side_effects),
        diff=tuple(_diff(step.diff_preview)),
        hidden=OmittedParts(0, len(step.arguments), 0, 0),
        marks=marks,
        summary=step.summary,
    )


def _diff(diff: str | None) -> Iterator[Line]:
    for line in (diff or "").splitlines():
        yield Line(_DIFF.get(line[:1], "same"), line)


def _who(request: ApprovalRequest) -> str:
    if request.proposal is not None or not (request.authority.restricts or request.quorum > 1):
        return ""
    named = ", ".join(request.approvers) or "any verified person"
    own = "; not who started the run" if request.no_self_approval else ""
    return f"{named}; needed: {request.quorum}; so far: {len(request.decided)}{own}"
