"""Read what a decision says as a whole and of each call, and refuse fields that would change nothing."""

from backstay.approvals.approval import Approval, ApprovalRequest, RequestKind, Verdict

DECIDES_CALLS = frozenset({RequestKind.CALL, RequestKind.BATCH, RequestKind.PLAN})
"""The kinds of requests in which single calls can be named."""
_PERMITS = {Verdict.REJECT: 0, Verdict.APPROVE: 1, Verdict.MODIFY: 2}
_WORDS: dict[str, str] = {
    Verdict.APPROVE: "approved",
    Verdict.MODIFY: "changed",
    Verdict.REJECT: "rejected",
    Verdict.ANSWER: "answered",
    Verdict.HAPPENED: "confirmed as done",
    Verdict.DID_NOT_HAPPEN: "reported as not done",
    Verdict.RETRY: "ordered again",
}


def most_permissive(approval: Approval) -> Verdict:
    """Return the verdict that permits most of all that a decision names: for the whole, or for a single call.

    From it follow who may decide so, and what records and notices say.
    """
    if approval.verdict not in _PERMITS:
        return approval.verdict
    named = [approval.verdict, *(Verdict(single.verdict) for single in (approval.calls or {}).values())]
    return max(named, key=lambda verdict: _PERMITS[verdict])


def verdict_of_each(request: ApprovalRequest, approval: Approval) -> dict[int, str]:
    """Return what a decision says of each call that a request asks about; nothing where it asks about none."""
    if request.kind not in DECIDES_CALLS:
        return {}
    parts = () if request.proposal is None else request.proposal.parts
    asked = {call.index for call in request.calls} | {index for part in parts for index in part.steps}
    named = {index: single.verdict for index, single in (approval.calls or {}).items()}
    if approval.verdict is Verdict.MODIFY:
        # A change is not a word about the calls beside it: they are asked about again.
        return {index: named[index] for index in sorted(asked & named.keys())}
    return {index: named.get(index, approval.verdict.value) for index in sorted(asked)}


def comes_to(request: ApprovalRequest, approval: Approval) -> Verdict:
    """Return the verdict that records and notices say: an approval that rejects every call of a request is none.

    Of a plan the steps remain about which nobody is asked.
    """
    each = verdict_of_each(request, approval)
    if request.proposal is None and each and set(each.values()) == {Verdict.REJECT.value}:
        return Verdict.REJECT
    return most_permissive(approval)


def unfit(approval: Approval) -> str:
    """Return which field of a decision would change nothing, or say two things, and what to do; empty for none."""
    return _unfit_fields(approval) or _unfit_memory(approval)


def _unfit_fields(approval: Approval) -> str:
    verdict = approval.verdict
    if approval.stop and verdict is not Verdict.REJECT:
        return f"stop: only with verdict reject, not {verdict}; leave it out or reject"
    if approval.calls and verdict is Verdict.REJECT:
        return "calls: reject refuses every call; leave it out, or use verdict approve and name the calls to reject"
    if approval.ask_again and most_permissive(approval) is not Verdict.MODIFY:
        return "ask_again: only with a call that is changed; leave it out"
    if approval.answer is not None and verdict is not Verdict.ANSWER:
        return f"answer: only with verdict answer, not {verdict}; leave it out or answer"
    for name in ("option", "toggles"):
        if getattr(approval, name) is not None and verdict is not Verdict.APPROVE:
            return f"{name}: only with verdict approve, not {verdict}; leave it out"
    if approval.option == "dry_run_only" and approval.toggles is not None:
        return "toggles: a dry run makes no call that they could narrow; leave them out"
    return ""


def _unfit_memory(approval: Approval) -> str:
    """Say what is wrong with how long a decision holds."""
    remember, verdict = approval.remember, approval.verdict
    if (approval.remember_arguments == "alike") != (approval.remember_like is not None):
        return "remember_like: goes with remember_arguments alike, and says which calls these are; give both or neither"
    if not remember:
        return "remember_arguments: only with remember; leave it out" if approval.remember_arguments != "these" else ""
    if (remember == "never") != (verdict is Verdict.REJECT):
        wanted = "reject" if remember == "never" else "approve"
        return f"remember: {remember} goes with verdict {wanted}, not {verdict}"
    if remember == "never" and approval.remember_arguments == "alike":
        return "remember_arguments: a rejection is remembered for these or for any arguments"
    if verdict is Verdict.MODIFY:
        return "remember: a changed call cannot be remembered; leave it out, or approve as it is"
    if approval.option == "dry_run_only":
        return "remember: a dry run lets no call be made; leave it out, or approve the plan"
    return ""


def verdict_words(verdict: str | None) -> str:
    """Return what a verdict has done to a request, such as "approved"; a word that is not a verdict stays as it is."""
    return _WORDS.get(verdict or "", (verdict or "decided").replace("_", " "))
