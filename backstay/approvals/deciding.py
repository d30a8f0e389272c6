"""Decide which decisions a request accepts: from whom, with which proof, about which calls."""

from typing import Any

from backstay.approvals.approval import Approval, ApprovalRequest, RequestKind, Verdict
from backstay.errors import BackstayError, DecisionRefused, NotVerified, TaskInvalid
from backstay.policies.policy import Policy
from backstay.policies.ruling import Ruling

DECIDES_CALLS = frozenset({RequestKind.CALL, RequestKind.BATCH, RequestKind.PLAN})


class DecisionInvalid(DecisionRefused):
    """The decision is malformed."""


def admit(data: Any) -> Approval:
    """Validate the form of a decision; raises DecisionInvalid naming field, value and fix."""
    try:
        approval = Approval.admit(data)
    except TaskInvalid as error:
        raise DecisionInvalid(str(error)) from None
    if approval.stop and approval.verdict is not Verdict.REJECT:
        raise DecisionInvalid(f"stop: only with verdict reject, not {approval.verdict}; leave it out or reject")
    return approval


def refusal(request: ApprovalRequest, approval: Approval, user_id: str) -> BackstayError | None:
    """Return why this request does not accept this decision, or None; the proof itself is checked elsewhere."""
    if approval.verdict.value not in request.options:
        return DecisionRefused(f"verdict: {approval.verdict} is not one of {', '.join(request.options)}")
    return (
        _refused_person(request, approval, user_id)
        or _refused_digest(request, approval)
        or _refused_calls(request, approval)
    )


def needs_proof(request: ApprovalRequest) -> bool:
    """Return whether only a verified person may decide."""
    return bool(request.approvers) or request.quorum > 1 or request.no_self_approval


def _refused_person(request: ApprovalRequest, approval: Approval, user_id: str) -> BackstayError | None:
    if needs_proof(request) and approval.proof is None:
        return NotVerified(
            "proof: required, because the rule names who may decide; decide through a gateway that signs decisions"
        )
    if request.approvers and approval.by not in request.approvers:
        return DecisionRefused(f"by: {approval.by} is not an approver; the rule names {', '.join(request.approvers)}")
    if request.no_self_approval and approval.by == user_id:
        return DecisionRefused(f"by: {approval.by} started this run and the rule forbids approving one's own")
    if any(vote.get("by") == approval.by for vote in request.decided):
        return DecisionRefused(f"by: {approval.by} has already decided; another approver must")
    return None


def _refused_digest(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    if approval.args_digest is not None and approval.args_digest != request.args_digest:
        return DecisionRefused("args_digest: stale; the request is about other arguments, look at it again")
    clipped = any(call.clipped for call in request.calls)
    lets_go = approval.verdict in {Verdict.APPROVE, Verdict.MODIFY} or any(
        named.verdict != "reject" for named in (approval.calls or {}).values()
    )
    if clipped and lets_go and approval.args_digest is None:
        return DecisionRefused("args_digest: required, because the arguments are too long to be shown whole")
    return None


def _refused_calls(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    named = approval.calls or {}
    indexes = {call.index for call in request.calls}
    if named and request.kind not in DECIDES_CALLS:
        return DecisionRefused(f"calls: a request of kind {request.kind} has none; leave it out")
    for index, verdict in named.items():
        if index not in indexes:
            return DecisionRefused(f"calls.{index}: no such call; the request has {sorted(indexes)}")
        if (verdict.verdict == "modify") != (verdict.arguments is not None):
            return DecisionRefused(f"calls.{index}.arguments: required for modify, and only there")
    if approval.verdict is Verdict.MODIFY and not any(v.verdict == "modify" for v in named.values()):
        return DecisionRefused("calls: modify needs at least one call with verdict modify and its arguments")
    if approval.verdict is Verdict.ANSWER and approval.answer is None:
        return DecisionRefused("answer: required for verdict answer")
    return None


def merged(arguments: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Merge a modification by top-level key; a value equal to what was shown means unchanged."""
    return {**arguments, **changes}


def constraint(ruling: Ruling) -> tuple[Any, ...]:
    """Return what calls must share in order to be asked about in one request: who may decide."""
    return (ruling.approvers, ruling.quorum, ruling.no_self_approval)


def restricts(policy: Policy) -> bool:
    """Return whether any rule of the policy demands verified persons."""
    return any(rule.approvers or rule.quorum > 1 or rule.no_self_approval for rule in (*policy.ask, *policy.undo.ask))
