"""Approve a part of what is asked: some calls of a batch, or some steps of a plan and what it may do."""

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.proposal import Proposal
from gateways.slack.aim import Place
from gateways.slack.drawing.page import section
from gateways.slack.forms.inputs import MOST_OPTIONS, Filled, calls_of, choice_input, modal, several_input, text_input

CALLBACK = "backstay.choose"
_OUT, _PROCESSES, _TIMEOUT, _COMMENT = "leave_out", "processes", "timeout_s", "comment"


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
    toggles = proposal.toggles
    blocks: list[Block] = []
    if toggles.external_processes:
        options = [("yes", "It may start them"), ("no", "It may start none")]
        blocks.append(choice_input(_PROCESSES, "Processes", options, initial="yes"))
    if toggles.limits is not None and toggles.limits.timeout_s is not None:
        hint = f"At most {toggles.limits.timeout_s:g}; empty leaves it so."
        blocks.append(text_input(_TIMEOUT, "Seconds for each step", optional=True, hint=hint))
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
        if (seconds := _seconds(filled)) is not None:
            toggles["limits"] = {"timeout_s": seconds}
        said |= {"toggles": toggles} if toggles else {}
    return said


def _seconds(filled: Filled) -> float | None:
    typed = filled.text(_TIMEOUT).strip()
    if not typed:
        return None
    try:
        seconds = float(typed)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 600:
        filled.wrong(_TIMEOUT, "type a number of seconds, at most 600")
        return None
    return seconds
