"""Approve a part of what is asked: some calls of a batch, or some steps of a plan and what it may do."""

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proposal import Proposal
from backstay.approvals.proposal_words import NarrowedLimit, narrowed_limits, process_words
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import MOST_OPTIONS, Filled, calls_of, choice_input, modal, several_input, text_input

CALLBACK = "backstay.choose"
_OUT, _PROCESSES, _COMMENT = "leave_out", "processes", "comment"


def form(request: ApprovalRequest, place: Place, by: str) -> View:
    """Return the modal for a person, whose own parts of a plan are offered."""
    proposal = request.proposal
    own = None if proposal is None else own_steps(proposal, by)
    offered = calls_of(request, own)
    what = "calls" if proposal is None else "steps"
    blocks: list[Block] = [section(f"All {what} are approved, without those that you leave out.")]
    if offered:
        hint = f"Only the first {MOST_OPTIONS} are offered here." if len(offered) > MOST_OPTIONS else ""
        blocks.append(several_input(_OUT, f"Leave out these {what}", offered, hint=hint))
    if proposal is not None:
        blocks += _toggles(proposal)
    blocks.append(text_input(_COMMENT, "Comment", optional=True, multiline=True, most=3000))
    return modal("Approve a part", "Approve", blocks, place, CALLBACK)


def _toggles(proposal: Proposal) -> list[Block]:
    blocks: list[Block] = []
    if words := process_words(proposal):
        options = [("yes", "It may start them"), ("no", "It may start none")]
        blocks.append(choice_input(_PROCESSES, "Processes", options, initial="yes", hint=words))
    for limit in narrowed_limits(proposal):
        hint = f"At most {limit.most:g}; empty leaves it so."
        blocks.append(text_input(limit.field, limit.label, optional=True, hint=hint))
    return blocks


def own_steps(proposal: Proposal, by: str) -> frozenset[int]:
    """Return the steps that still wait, those of this person's own parts if there are some."""
    waiting = [part for part in proposal.parts if not part.complete]
    own = [part for part in waiting if by in part.approvers or not part.approvers] or waiting
    return frozenset(index for part in own for index in part.steps)


def read(request: ApprovalRequest, filled: Filled) -> dict[str, object]:
    """Return the fields of the decision; what does not fit is said in `filled.errors`."""
    out = {int(index): {"verdict": "reject"} for index in filled.several(_OUT)}
    said: dict[str, object] = {"verdict": "approve", "comment": filled.text(_COMMENT)}
    if out and len(out) == len(request.calls):
        filled.wrong(_OUT, "nothing would be left; reject the request instead")
    if out:
        said["calls"] = out
    if request.proposal is not None:
        said["option"] = "approve_per_step" if out else "approve_all"
        toggles: dict[str, object] = {"external_processes": False} if filled.chosen(_PROCESSES) == "no" else {}
        limits = {limit.field: most for limit in narrowed_limits(request.proposal) if (most := _most(filled, limit))}
        toggles |= {"limits": limits} if limits else {}
        said |= {"toggles": toggles} if toggles else {}
    return said


def _most(filled: Filled, limit: NarrowedLimit) -> float | None:
    typed = filled.text(limit.field).strip()
    if not typed:
        return None
    try:
        most = int(typed) if limit.whole else float(typed)
    except ValueError:
        most = 0
    if not 0 < most <= limit.most:
        filled.wrong(limit.field, f"type a {'whole ' if limit.whole else ''}number, at most {limit.most:g}")
        return None
    return most
