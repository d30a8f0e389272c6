"""Draw a request: the engine's facts first, then what the model says, marked, and the buttons that decide it."""

from collections.abc import Iterator
from datetime import datetime

from slack_sdk.models.blocks import ActionsBlock, Block, ButtonElement, PlainTextObject

from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.approvals.decided_words import decided_words
from backstay.approvals.forecast import forecast_lines
from backstay.approvals.notice import Decision
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import toggle_lines
from backstay.approvals.view import CallView, RequestView
from backstay.approvals.whole import unseen
from backstay.frozen import Frozen
from backstay.shown import LINE_BREAK, one_line
from gateways.slack.aim import Aim
from gateways.slack.drawing.page import Page, escaped
from people.requests.form import DecisionForm

APPROVE, EDIT, REJECT, ANSWER, ALWAYS = (
    f"backstay.{name}" for name in ("approve", "edit", "reject", "answer", "always")
)
CHOOSE, DRY_RUN, MORE = (f"backstay.{name}" for name in ("choose", "dry_run", "more"))
HAPPENED, DID_NOT_HAPPEN, RETRY = (f"backstay.{name}" for name in ("happened", "did_not_happen", "retry"))
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
_APPROVES = frozenset({"approve", "choose", "dry_run"})
_SOURCES = {"source": "({})", "minded": "(Warning: {})"}
_INDENTS = {"call": 0, "source": 6, "minded": 6, "changed": 6}
"""How far in a line of a call stands, if not as its arguments do."""


class Shown(Frozen):
    """Hold a request as people are to see it now."""

    workflow_id: str
    request: ApprovalRequest
    state: str = "open"
    decision: Decision | None = None
    waits: bool = True
    """Whether the run itself says that it waits; without that there are no buttons."""

    @property
    def is_open(self) -> bool:
        """Return whether it still waits, as the store has it and as its run says."""
        return self.state == "open" and self.waits


def request_blocks(shown: Shown) -> list[Block]:
    """Return the message of a request."""
    page = _drawn(shown)
    page.ours(_links(shown))
    if shown.is_open:
        page.ours(_link_to_approve(shown, page.hidden))
        page.blocks.extend(_buttons(shown, hidden=page.hidden))
    return page.blocks


def left_out_of(shown: Shown) -> str:
    """Return what the message of a request leaves out; empty when it shows everything."""
    return _left_out(shown.request, _drawn(shown).hidden)


def _drawn(shown: Shown) -> Page:
    """Return all of a message but its links and buttons."""
    request, page = shown.request, Page()
    view = RequestView.of(request, waits=shown.is_open)
    page.head(_heading(shown))
    page.say(_lines_of(request.question, _QUESTION))
    page.fine(*_context(request))
    if view.plan:
        page.say(f"Plan: {view.plan}")
    page.code(line for call in view.calls for line in call_lines(call))
    if request.proposal is not None:
        _plan(page, view, request.proposal)
    if view.program is not None:
        page.fine("Made by this program:")
        page.code(f"    {line.text}" for line in view.program.lines() if line.kind == "argument")
    if request.forecast:
        page.fine("Foretold by a rehearsal:")
        page.code(forecast_lines(request.forecast))
    if request.kind is RequestKind.ELICITATION and view.form:
        page.fine("The answer's form:")
        page.code(view.form)
    who, said = request.unchecked
    if said:
        page.say(f"{who.capitalize()} says (nobody checked this): {_lines_of(said, _QUESTION)}")
    page.end()
    page.fine(page.unseen, view.masked)
    page.fine(*map(_sentence, view.standing(expiry=False)), *view.votes)
    if shown.decision is not None and (said := decided_words(shown.decision)):
        page.fine(_sentence(one_line("; ".join(said), 500)))
    if shown.decision is not None and shown.decision.comment:
        page.say(f"Comment: {_lines_of(shown.decision.comment, _QUESTION)}")
    if shown.decision is not None and shown.decision.changed:
        page.code(line for each in shown.decision.changed for line in (f"changed call {each.index}:", *each.lines))
    return page


def headline(shown: Shown) -> str:
    """Return the request in one line, for notifications."""
    return one_line(f"{_heading(shown)} {shown.request.question}", 300)


def _heading(shown: Shown) -> str:
    if shown.state == "decided" and shown.decision is not None:
        return f"{shown.decision.verdict.value.replace('_', ' ').capitalize()}: by {shown.decision.by}"
    if shown.state != "open":
        return _BECAME.get(shown.state, shown.state)
    return _ASKS[shown.request.kind] if shown.waits else "No longer waits"


def _lines_of(text: str, most: int) -> str:
    """Return a text as people read it, with its line breaks."""
    return text[:most].replace(LINE_BREAK, "\n") + ("…" if len(text) > most else "")


def _context(request: ApprovalRequest) -> Iterator[str]:
    if request.task:
        yield f"Task: {request.task}"
    if request.user_id:
        yield _sentence(request.place)


def call_lines(call: CallView) -> Iterator[str]:
    """Yield a call as lines: tool, arguments and where they come from, what it changes, and how it is undone."""
    for kind, text in call.lines():
        yield f"{' ' * _INDENTS.get(kind, 4)}{_SOURCES.get(kind, '{}').format(text)}"
    yield ""


def _plan(page: Page, view: RequestView, proposal: Proposal) -> None:
    """Add what a plan changes, who decides which part, what can be narrowed, and what else is proposed."""
    page.fine(view.more)
    changes = ", ".join(proposal.estimated_side_effects)
    cost = f"{proposal.estimated_cost_usd:.4f} USD" if proposal.estimated_cost_usd else ""
    page.fine(f"Changes: {changes}" if changes else "", f"Costs at models: {cost}" if cost else "")
    page.fine(*view.parts)
    page.fine(*map(_sentence, toggle_lines(proposal, _WITHOUT, _LESS)))
    others = ", ".join(proposal.alternatives)
    page.fine(f"Instead of it: {others}, in a message of its own; approve one of them" if others else "")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _links(shown: Shown) -> str:
    """Return the links of a request, and when it expires in the time of who reads it."""
    request = shown.request
    links = {"The request": request.links.page, "The run in Temporal": request.links.web_ui}
    said = [f"<{address}|{name}>" for name, address in links.items() if address and _is_plain(address)]
    if shown.decision is not None:
        said.insert(0, "verified" if shown.decision.verified else "unverified")
    if request.expires_at and shown.state == "open":
        at = int(datetime.fromisoformat(request.expires_at).timestamp())
        when = f"<!date^{at}^{{date_short_pretty}} {{time}}|{request.expires_at}>"
        said.insert(0, f"Expires {when}, then: {request.then}")
    return "  ·  ".join(said)


def _is_plain(address: str) -> bool:
    return not set(address) & set("<>| \n")


def _buttons(shown: Shown, *, hidden: int) -> list[Block]:
    """Return what decides a request, as its form allows."""
    request, aim = shown.request, Aim.at(shown.workflow_id, shown.request)
    choices = DecisionForm.of(request).choices
    if not aim.fits:
        return []
    # What a message does not hold is read, and approved, on the page; here it can be looked at, changed and rejected.
    whole = not _left_out(request, hidden)
    plan, budget = request.proposal is not None, request.kind is RequestKind.BUDGET
    wanted = [
        ("approve", APPROVE, "Approve all of it" if plan else "Approve", "primary"),
        ("choose", CHOOSE, "Choose…", None),
        ("dry_run", DRY_RUN, "Dry run only", None),
        ("answer", ANSWER, "Top up…" if budget else "Answer…", "primary"),
        ("happened", HAPPENED, "It happened", None),
        ("did_not_happen", DID_NOT_HAPPEN, "It did not happen", None),
        ("retry", RETRY, "Try again", None),
        ("modify", EDIT, "Edit…", None),
        ("reject", REJECT, "Reject…", "danger"),
    ]
    offered = [each for each in wanted if each[0] in choices and (whole or each[0] not in _APPROVES)]
    buttons = [(action, name, style) for _, action, name, style in offered]
    if request.may_remember and whole:
        buttons.append((ALWAYS, "Remember…", None))
    if request.calls:
        buttons.append((MORE, "Show all", None))
    return [ActionsBlock(elements=[_button(*each, aim=aim) for each in buttons])] if buttons else []


def _left_out(request: ApprovalRequest, hidden: int) -> str:
    said = [unseen(request), f"about {hidden:,} characters that have no room in a message" if hidden else ""]
    return " and ".join(part for part in said if part)


def _link_to_approve(shown: Shown, hidden: int) -> str:
    """Say where a request is approved of which the message does not hold everything; empty for any other."""
    left_out, page = _left_out(shown.request, hidden), shown.request.links.page
    if not left_out or "approve" not in shown.request.options:
        return ""
    where = "look at it and approve it at a terminal, with backstay attach"
    if page and _is_plain(page):
        where = f"<{page}|look at all of it and approve it on the page>"
    return f"Not all of it is shown here ({escaped(left_out)}); {where}."


def _button(action: str, name: str, style: str | None, *, aim: Aim) -> ButtonElement:
    return ButtonElement(text=PlainTextObject(text=name), action_id=action, value=aim.value, style=style)
