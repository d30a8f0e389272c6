"""Count the votes of the people who decide about one request."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from backstay.approvals import admission
from backstay.approvals.approval import Approval, ApprovalRequest, CallVerdict, Verdict
from backstay.approvals.proposal import Proposal
from backstay.approvals.verdicts import comes_to
from backstay.errors import DecisionRefused
from backstay.shown import one_line

MOST_KEPT = 500
"""Characters of each comment that are kept while others are still to decide."""


class VoteResult(NamedTuple):
    """Hold a request after a vote."""

    request: ApprovalRequest
    complete: bool
    """Whether nothing is left to decide."""
    calls: dict[int, CallVerdict]
    """What was decided about single calls, by all votes together."""
    vote: dict[str, Any]


def comments_of(request: ApprovalRequest, approval: Approval) -> str:
    """Return what people said who decided as this approval does, each with their name where there are several."""
    said = comes_to(request, approval).value
    votes = [vote for vote in request.decided if vote.get("verdict") == said and vote.get("comment")]
    if len(votes) == 1 and votes[0].get("by") == approval.by:
        return approval.comment
    return "; ".join(f"{vote.get('by')}: {vote['comment']}" for vote in votes)


def said_of_plan(approval: Approval) -> dict[str, Any]:
    """Return what a decision says of a plan beside its verdict, as fields of its record; nothing for other requests."""
    left_out = sorted(index for index, verdict in (approval.calls or {}).items() if verdict.verdict == "reject")
    said = {"option": approval.option, "left_out": tuple(left_out), "toggles": approval.toggles}
    return {name: value for name, value in said.items() if value}


def with_vote(votes: Mapping[str, float], by: str, now: float, hold_s: float) -> dict[str, float]:
    """Return who has asked for a change that needs several people, and when, with one who asks now.

    A word holds for `hold_s` seconds: nobody's old word makes up a number with a new one.
    """
    held = {person: at for person, at in votes.items() if now - at <= hold_s and person != by}
    return held | {by: now}


def voted(
    request: ApprovalRequest,
    approval: Approval,
    changes: dict[int, CallVerdict],
    starters: Collection[str],
    at: str,
) -> VoteResult:
    """Return the request with one more vote that it accepts; raises DecisionRefused for changes under a quorum."""
    verdict = comes_to(request, approval)
    vote = {"by": approval.by, "verdict": verdict.value, "verified": approval.proof is not None}
    # The words of each of several people stay with their vote until all have decided.
    said = {"comment": one_line(approval.comment, MOST_KEPT)} if approval.comment else {}
    if request.proposal is not None:
        return _voted_on_plan(request, request.proposal, approval, changes, starters, vote | {"at": at} | said)
    if request.quorum > 1 and changes:
        # With a quorum, a person must not add arguments that the other approvers have not seen.
        raise DecisionRefused("calls: a request with a quorum is decided as a whole; reject it to have it changed")
    answer = admission.answer_digest(approval)
    kept = {"at": at} | said | ({"answer": answer} if answer else {})
    # Of several people who must agree, each may change what they said.
    others = tuple(earlier for earlier in request.decided if earlier.get("by") != approval.by)
    request = request.model_copy(update={"decided": (*others, vote | kept)})
    agreeing = sum((v.get("verdict"), v.get("answer")) == (vote["verdict"], answer) for v in request.decided)
    complete = verdict is Verdict.REJECT or agreeing >= request.quorum
    return VoteResult(request, complete, changes, vote)


def _voted_on_plan(  # noqa: PLR0917  # called in one place, by what they are
    request: ApprovalRequest,
    proposal: Proposal,
    approval: Approval,
    changes: dict[int, CallVerdict],
    starters: Collection[str],
    vote: dict[str, Any],
) -> VoteResult:
    """Count an approval for every part that this person may decide; other verdicts are for the whole plan."""
    said = {name: value for name, value in vote.items() if name not in {"at", "comment"}}
    if approval.toggles is not None and approval.toggles.external_processes is False:
        vote = vote | {"no_processes": True}
    decided = (*request.decided, vote)
    if approval.verdict is not Verdict.APPROVE:
        return VoteResult(request.model_copy(update={"decided": decided}), True, changes, said)
    parts = admission.parts_to_decide(request, approval, starters)
    rejected = {index for index, verdict in changes.items() if verdict.verdict == "reject"}
    proposal = proposal.with_vote(parts, vote, rejected, one_line(approval.comment, 500))
    toggles = proposal.toggles if approval.toggles is None else proposal.toggles.narrowed(approval.toggles)
    proposal = proposal.model_copy(update={"toggles": toggles})
    if approval.option == "approve_per_step":
        proposal = proposal.model_copy(update={"per_step": True})
    if approval.option == "dry_run_only":
        proposal = proposal.model_copy(update={"dry_run": True})
    calls = {index: CallVerdict(verdict="reject") for index in proposal.left_out}
    request = request.model_copy(update={"decided": decided, "proposal": proposal})
    return VoteResult(request, proposal.complete, calls, said)
