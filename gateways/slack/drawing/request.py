"""Draw a request: the engine's facts first, then what the model says, marked, and the buttons that decide it."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from slack_sdk.models.blocks import ActionsBlock, Block, ButtonElement, PlainTextObject

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.fields import form_lines
from backstay.approvals.forecast import forecast_lines
from backstay.approvals.layout import argument_lines
from backstay.approvals.notice import Decision
from backstay.approvals.proposal import Proposal, ProposedStep
from backstay.approvals.proposal_words import (
    more_words,
    narrowed_limits,
    part_lines,
    process_words,
    step_marks,
    summary_words,
)
from backstay.approvals.whole import unseen
from backstay.frozen import Frozen
from backstay.shown import LINE_BREAK, MASKED, kept_bytes, one_line, unseen_words
from gateways.slack.aim import Aim
from gateways.slack.drawing.page import Page, escaped

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


class Shown(Frozen):
    """Hold a request as people are to see it now."""

    workflow_id: str
    request: ApprovalRequest
    state: str = "open"
    decision: Decision | None = None
    waits: bool = True
    """Whether the run itself says that it waits; without that there are no buttons."""


def request_blocks(shown: Shown) -> list[Block]:
    """Return the message of a request."""
    page = _drawn(shown)
    page.ours(_links(shown))
    if shown.state == "open" and shown.waits:
        page.ours(_link_to_approve(shown, page.hidden))
        page.blocks.extend(_buttons(shown, hidden=page.hidden))
    return page.blocks


def left_out_of(shown: Shown) -> str:
    """Return what the message of a request leaves out; empty when it shows everything."""
    return _left_out(shown.request, _drawn(shown).hidden)


def _drawn(shown: Shown) -> Page:
    """Return all of a message but its links and buttons."""
    request, page = shown.request, Page()
    page.head(_heading(shown))
    page.say(_lines_of(request.question, _QUESTION))
    page.fine(*_context(request))
    if request.proposal is not None:
        _plan(page, request.proposal, request.calls)
    else:
        page.code(line for call in request.calls for line in call_lines(call))
    if request.program is not None:
        page.fine("Made by this program:")
        source = request.program.arguments.items()
        page.code(f"    {line}" for name, value in source for line in argument_lines(name, value))
    if request.forecast:
        page.fine("Foretold by a rehearsal:")
        page.code(forecast_lines(request.forecast))
    if request.answer_schema is not None and request.kind is RequestKind.ELICITATION:
        page.fine("The answer's form:")
        page.code(form_lines(request.answer_schema))
    who, said = request.unchecked
    if said:
        page.say(f"{who.capitalize()} says (nobody checked this): {_lines_of(said, _QUESTION)}")
    page.end()
    page.fine(page.unseen, MASKED if request.masked else "")
    page.fine(*_standing(request))
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
        yield f"{request.place[0].upper()}{request.place[1:]}"


def call_lines(call: RequestedCall, marks: str = "", summary: str = "") -> Iterator[str]:
    """Yield a call as lines: tool, arguments and where they come from, what it changes, and how it is undone."""
    yield f"[{call.index}] {call.tool}  ({call.safety.value}){f'  {marks}' if marks else ''}"
    if summary:
        yield f"    {summary_words(summary)}"
    for name, value in call.arguments.items():
        yield from (f"    {line}" for line in argument_lines(name, value))
        if where := call.told(name).text:
            yield f"      ({where})"
    if call.changed:
        yield f"    CHANGED by {one_line(call.changed_by, 300)}:"
        yield from (f"      {line}" for line in call.changed)
    if missing := unseen_words(call.left_out, call.count, call.clipped, kept_bytes(call.arguments)):
        yield f"    {missing}; digest {call.args_digest}"
    if call.side_effects:
        yield f"    changes: {', '.join(call.side_effects)}"
    yield from (f"    {line}" for line in (call.diff or "").splitlines())
    if call.repeats:
        yield f"    REPEATED: {call.repeats}"
    yield f"    {_undo(call.undoable, call.undo_how)}"
    yield ""


def _undo(undoable: bool, how: str | None) -> str:  # noqa: FBT001  # a fact of the call
    return (f"can be undone: {how}" if how else "can be undone") if undoable else "CANNOT BE UNDONE"


def _plan(page: Page, proposal: Proposal, calls: Sequence[RequestedCall]) -> None:
    """Add a plan whole: its steps in order, what it changes, who decides which part, and what else is proposed."""
    page.say(f"Plan: {proposal.title or 'untitled'} (id {proposal.plan_id}, version {proposal.version})")
    asked = {call.index: call for call in calls}
    lines: list[str] = []
    for step in proposal.steps:
        marks = "; ".join(step_marks(step, several=len(proposal.parts) > 1))
        call = asked.get(step.idx)
        lines += _step_lines(step, marks) if call is None else call_lines(call, marks, step.summary)
    page.code(lines)
    page.fine(more_words(proposal))
    changes = ", ".join(proposal.estimated_side_effects)
    cost = f"{proposal.estimated_cost_usd:.4f} USD" if proposal.estimated_cost_usd else ""
    page.fine(f"Changes: {changes}" if changes else "", f"Costs at models: {cost}" if cost else "")
    page.fine(*part_lines(proposal))
    page.fine(*toggle_words(proposal))
    others = ", ".join(proposal.alternatives)
    page.fine(f"Instead of it: {others}, in a message of its own; approve one of them" if others else "")


def toggle_words(proposal: Proposal) -> Iterator[str]:
    """Yield what an approver can narrow."""
    if words := process_words(proposal):
        yield f"{words[0].upper()}{words[1:]}. Choose lets it go without them."
    elif proposal.toggles.external_processes is False:
        yield "It may start no processes."
    for limit in narrowed_limits(proposal):
        yield f"{limit.now[0].upper()}{limit.now[1:]}; Choose gives it less."


def _step_lines(step: ProposedStep, marks: str) -> Iterator[str]:
    """Yield a step of a plan that nobody is asked about."""
    yield f"[{step.idx}] {step.action}  ({step.safety.value})  {marks}"
    if step.summary:
        yield f"    {summary_words(step.summary)}"
    for name, value in step.arguments.items():
        yield from (f"    {line}" for line in argument_lines(name, value))
    yield from (f"    {line}" for line in (step.diff_preview or "").splitlines())
    if step.safety.level:
        yield f"    {_undo(step.undoable, step.undo_how)}"
    yield ""


def _standing(request: ApprovalRequest) -> Iterator[str]:
    """Yield who asks, who may decide and who has, and until when."""
    yield f"Asked by rule: {request.rule or 'none'}"
    if request.proposal is None and (request.approvers or request.quorum > 1):
        named = ", ".join(request.approvers) or "any verified person"
        yield f"Who may decide: {named}; needed: {request.quorum}; so far: {len(request.decided)}"
    if request.proposal is None:
        yield from (_vote(vote) for vote in request.decided)
    if request.escalation:
        yield request.escalation
    yield f"Cost so far: {request.cost_so_far:.4f} USD"


def _vote(vote: dict[str, Any]) -> str:
    return f"{vote.get('verdict')} by {vote.get('by')}{'' if vote.get('verified') else ' (unverified)'}"


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
    """Return what decides a request, as its options allow."""
    request, aim = shown.request, Aim.at(shown.workflow_id, shown.request)
    if not aim.fits:
        return []
    several = len(request.calls) > 1
    # What a message does not hold is read, and approved, on the page; here it can be looked at, changed and rejected.
    whole = not _left_out(request, hidden)
    wanted: list[tuple[str, str, str | None]] = []
    if "approve" in request.options and whole:
        wanted.append((APPROVE, "Approve all of it" if request.proposal else "Approve", "primary"))
        if several or request.proposal is not None:
            wanted.append((CHOOSE, "Choose…", None))
        if request.proposal is not None and "dry_run_only" in request.proposal.approve_options:
            wanted.append((DRY_RUN, "Dry run only", None))
    if "answer" in request.options:
        wanted.append((ANSWER, "Top up…" if request.kind is RequestKind.BUDGET else "Answer…", "primary"))
    for option, action in (("happened", HAPPENED), ("did_not_happen", DID_NOT_HAPPEN), ("retry", RETRY)):
        if option in request.options:
            wanted.append((action, {"retry": "Try again"}.get(option, f"It {option.replace('_', ' ')}"), None))
    if "modify" in request.options:
        wanted.append((EDIT, "Edit…", None))
    if "reject" in request.options:
        wanted.append((REJECT, "Reject…", "danger"))
    if request.may_remember and whole:
        wanted.append((ALWAYS, "Remember…", None))
    if request.calls:
        wanted.append((MORE, "Show all", None))
    return [ActionsBlock(elements=[_button(*each, aim=aim) for each in wanted])] if wanted else []


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
