"""A request as a message of a chat: its heading, its paragraphs in order, and the choices that it offers.

A door gives each paragraph its look, counts what has no room, and is told here which choices that leaves.
"""

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.decided_words import decided_words
from backstay.approvals.forecast import forecast_lines
from backstay.approvals.notice import DecisionNotice
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import toggle_lines
from backstay.approvals.tables import CallTable, groups_of
from backstay.approvals.titles import title_of
from backstay.approvals.verdicts import verdict_words
from backstay.approvals.view import CallView, RequestView
from backstay.approvals.whole import unseen
from backstay.canonical import canonical
from backstay.frozen import Frozen
from backstay.shown import LINE_BREAK, money, one_line
from backstay.tools.recipients import is_recipient
from people.requests.form import DecisionForm

_ASKS: dict[RequestKind, str] = {
    RequestKind.CALL: "May this call be made?",
    RequestKind.BATCH: "May these calls be made?",
    RequestKind.PLAN: "May this plan be carried out?",
    RequestKind.PROGRAM: "May this program run?",
    RequestKind.BUDGET: "A limit is reached",
    RequestKind.OUTCOME: "A person must say what happened",
    RequestKind.QUESTION: "A question",
    RequestKind.ELICITATION: "A tool asks for details",
}
_BECAME = {
    "decided": "Decided",
    "expired": "Expired: nobody decided in time",
    "withdrawn": "Withdrawn: no longer needed",
    "ended": "The run has ended",
}
_QUESTION = 2500
_WITHOUT, _LESS = ". Choose lets it go without them.", "; Choose gives it less."
_APPROVES = frozenset({"approve", "choose", "dry_run", "remember"})
_HOW_LONG = {
    "run": "Approve, for the rest of this run",
    "session": "Approve, for this session",
    "always": "Approve, in every run of this user",
    "never": "Reject, in every run of this user",
}
_SOURCES = {"source": "({})", "minded": "(Warning: {})"}
_INDENTS = {"call": 0, "row": 2, "source": 6, "minded": 6, "changed": 6}
"""How far in a line of a call stands, if not as its arguments do."""


class PostedRequest(Frozen):
    """Hold a request as people are to see it now."""

    workflow_id: str
    request: ApprovalRequest
    state: str = "open"
    decision: DecisionNotice | None = None
    waits: bool = True
    """Whether the run itself says that it waits; without that there are no buttons."""

    @property
    def is_open(self) -> bool:
        """Return whether it still waits, as the store has it and as its run says."""
        return self.state == "open" and self.waits

    @property
    def heading(self) -> str:
        """Return what it asks, or what became of it."""
        if self.state == "decided" and self.decision is not None:
            return f"{verdict_words(self.decision.verdict).capitalize()} by {self.decision.by}"
        if self.state != "open":
            return _BECAME.get(self.state, self.state)
        return _ASKS[self.request.kind] if self.waits else "No longer waits"

    @property
    def headline(self) -> str:
        """Return the request in one line, for notifications."""
        return one_line(f"{self.heading} {title_of(self.request)}", 300)

    @property
    def votes(self) -> int:
        """Return a checksum of how people have voted, on the whole or on a part; 0 where nobody has.

        A count would not do: of several people who must agree, each may change what they said.
        """
        parts = () if self.request.proposal is None else self.request.proposal.parts
        votes = [self.request.decided, *(part.decided for part in parts)]
        return zlib.crc32(canonical(votes).encode()) >> 1 if any(votes) else 0


class Paragraph(NamedTuple):
    """Hold lines that stand together.

    `text` is for reading, `note` is small, `code` keeps its lines and their indents. `end` begins what must be there in
    any case: how much has no room, which only the door knows, and then its lines.
    """

    kind: Literal["heading", "text", "note", "code", "end"]
    lines: tuple[str, ...]

    @classmethod
    def of(cls, kind: Literal["heading", "text", "note", "code", "end"], *lines: str) -> "Paragraph":
        """Return a paragraph of these lines, without those that are empty unless it is code."""
        return cls(kind, lines if kind == "code" else tuple(filter(None, lines)))


class OfferedChoice(NamedTuple):
    """Hold something that a person can choose, with the words of its button; one with `…` asks for more first."""

    name: str
    title: str
    style: Literal["primary", "danger"] | None = None


def paragraphs(posted: PostedRequest, *, expiry: bool) -> Iterator[Paragraph]:
    """Yield a request as paragraphs: the engine's facts first, then what the model says, marked, then how it stands.

    `expiry`: whether its time is among them; a door may have a way of its own to write times.
    """
    request, of = posted.request, Paragraph.of
    view = RequestView.of(request, waits=posted.is_open)
    yield of("heading", posted.heading)
    yield of("text", text_of(request.question))
    yield of(
        "note",
        *(f"Part of: {line}" for line in request.above),
        f"Task: {request.task}" if request.task else "",
        *([_sentence(request.place)] if request.user_id else ()),
    )
    yield of("text", f"Plan: {view.plan}" if view.plan else "")
    yield of("code", *(line for group in groups_of(view) for line in call_lines(group)))
    if request.proposal is not None:
        yield from _plan(view, request.proposal)
    if view.program is not None:
        yield of("note", "Made by this program:")
        yield of("code", *(f"    {line.text}" for line in view.program.lines() if line.kind == "argument"))
    if request.forecast:
        yield of("note", "Foretold by a rehearsal:")
        yield of("code", *forecast_lines(request.forecast))
    if request.kind is RequestKind.ELICITATION and view.form:
        yield of("note", "The answer's form:")
        yield of("code", *view.form)
    who, said = request.unchecked
    yield of("text", f"{who.capitalize()} says (nobody checked this): {text_of(said)}" if said else "")
    yield of("end", view.masked)
    yield of("note", *map(_sentence, view.standing(expiry=expiry)), *view.votes)
    if posted.decision is not None:
        yield from _decision(posted.decision)


def call_lines(call: CallView | CallTable) -> Iterator[str]:
    """Yield a call as lines: tool, arguments and where they come from, what it changes, and how it is undone.

    Of a table, what its calls share comes before what each has of its own. Only the first line has no indent.
    """
    for kind, text in call.lines():
        yield f"{' ' * _INDENTS.get(kind, 4)}{_SOURCES.get(kind, '{}').format(text)}"
    yield ""


def offered_choices(posted: PostedRequest, hidden: int) -> list[OfferedChoice]:
    """Return what decides a request, as its form allows; `hidden`: how many characters a message has no room for.

    A request that is not shown as a whole is not approved from there; it can still be changed, rejected and answered.
    """
    request = posted.request
    choices = DecisionForm.of(request).choices if posted.is_open else ()
    whole = not left_out(request, hidden)
    answer = "Top up…" if request.kind is RequestKind.BUDGET else "Answer…"
    every = [
        OfferedChoice("approve", "Approve" if request.proposal is None else "Approve all of it", "primary"),
        OfferedChoice("choose", "Choose…"),
        OfferedChoice("dry_run", "Dry run only"),
        OfferedChoice("answer", answer, "primary"),
        OfferedChoice("happened", "It happened"),
        OfferedChoice("did_not_happen", "It did not happen"),
        OfferedChoice("retry", "Try again"),
        OfferedChoice("modify", "Edit…"),
        OfferedChoice("reject", "Reject…", "danger"),
        OfferedChoice("remember", "Remember…"),
    ]
    known = {*choices, *(("remember",) if posted.is_open and request.may_remember else ())}
    return [each for each in every if each.name in known and (whole or each.name not in _APPROVES)]


def left_out(request: ApprovalRequest, hidden: int) -> str:
    """Return in words what a message leaves out that has no room for that many characters; empty for nothing."""
    said = [unseen(request), f"about {hidden:,} characters that have no room in a message" if hidden else ""]
    return " and ".join(part for part in said if part)


def text_of(text: str) -> str:
    """Return a string as people read it, with its line breaks; of a long one the beginning."""
    return text[:_QUESTION].replace(LINE_BREAK, "\n") + ("…" if len(text) > _QUESTION else "")


def call_options(calls: Sequence[RequestedCall]) -> list[tuple[str, str]]:
    """Return calls as options, each with to whom it goes first: of a long one, the rest may not fit."""
    return [
        (str(call.index), one_line(f"[{call.index}] {call.tool} {', '.join(map(str, _telling_first(call)))}", 70))
        for call in calls
    ]


def remember_options(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return for how long a decision can be remembered, and what is decided with that."""
    return [(how, _HOW_LONG[how]) for how in request.may_remember]


def _telling_first(call: RequestedCall) -> list[Any]:
    return [call.arguments[name] for name in sorted(call.arguments, key=lambda name: not is_recipient(name))]


def _plan(view: RequestView, proposal: Proposal) -> Iterator[Paragraph]:
    """Yield what a plan changes, who decides which part, what can be narrowed, and what else is proposed."""
    changes = ", ".join(proposal.estimated_side_effects)
    cost = f"{money(proposal.estimated_cost_usd)} USD" if proposal.estimated_cost_usd else ""
    others = ", ".join(proposal.alternatives)
    yield Paragraph.of("note", view.more)
    yield Paragraph.of("note", f"Changes: {changes}" if changes else "", f"Costs at models: {cost}" if cost else "")
    yield Paragraph.of("note", *view.parts)
    yield Paragraph.of("note", *map(_sentence, toggle_lines(proposal, _WITHOUT, _LESS)))
    instead = f"Instead of it: {others}, in a message of its own; approve one of them"
    yield Paragraph.of("note", instead if others else "")


def _decision(decision: DecisionNotice) -> Iterator[Paragraph]:
    said = decided_words(decision)
    yield Paragraph.of("note", _sentence(one_line("; ".join(said), 500)) if said else "")
    yield Paragraph.of("text", f"Comment: {text_of(decision.comment)}" if decision.comment else "")
    changed = (line for each in decision.changed for line in (f"changed call {each.index}:", *each.lines))
    yield Paragraph.of("code", *changed)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
