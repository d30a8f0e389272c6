"""Admit decisions: their form, and whether they fit the request as it is now."""

from collections.abc import Collection
from typing import Any

from backstay.approvals.approval import Approval, ApprovalRequest, Verdict
from backstay.approvals.approvers import refused_person
from backstay.approvals.proposal import Proposal
from backstay.approvals.verdicts import DECIDES_CALLS, most_permissive, unfit
from backstay.authority import Authority
from backstay.bounds import ANSWER, DECISION, DEEPEST, cut_to, sent_size, size_of
from backstay.canonical import deeper_than, differs, digest_of
from backstay.errors import BackstayError, DecisionRefused, TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import kept_bytes


class DecisionInvalid(DecisionRefused):
    """The decision is malformed."""


NOT_OPEN = "request_id: no request "
"""How the refusal of a decision begins whose request the run does not have now."""


def admit(data: Any) -> Approval:
    """Validate the form of a decision; raises DecisionInvalid naming field, value and fix."""
    _refuse_large(data)
    try:
        approval = Approval.admit(data)
    except TaskInvalid as error:
        raise DecisionInvalid(str(error)) from None
    if fault := unfit(approval):
        raise DecisionInvalid(fault)
    return approval


def readable(data: Any) -> Any:
    """Return a decision that came without a way back, its answer cut to what the model can be given.

    The sender of a signal would not learn that it was refused. Signed answers, and those that are not text, stay as
    they are.
    """
    if not isinstance(data, dict) or data.get("verdict") != Verdict.ANSWER or data.get("proof") is not None:
        return data
    answer = data.get("answer")
    if not isinstance(answer, str) or size_of(answer) <= ANSWER:
        return data
    return data | {"answer": cut_to(answer, ANSWER)}


def _refuse_large(data: Any) -> None:
    if not isinstance(data, dict):
        return
    if deeper_than(data, DEEPEST):
        raise DecisionInvalid(f"decision: nested deeper than {DEEPEST} levels; flatten it")
    try:
        large = sent_size(_as_json(data)) > DECISION
    except ValueError as error:
        raise DecisionInvalid(f"decision: {error}") from None
    if large:
        raise DecisionInvalid(f"decision: larger than {DECISION:,} bytes of JSON; put large content in a file")


def _as_json(value: Any) -> Any:
    """Return a decision without the objects of Python programs, such as verdicts of single calls."""
    if isinstance(value, Frozen):
        return value.plain()
    known: dict[Any, Any] = value if isinstance(value, dict) else {}
    return {name: _as_json(item) for name, item in known.items()} if known else value


def answer_digest(approval: Approval) -> str | None:
    """Return the digest of an answer, so that the votes of several people can be compared."""
    return None if approval.answer is None else digest_of(approval.answer)


def refusal(
    request: ApprovalRequest, approval: Approval, starters: Collection[str], run: Authority
) -> BackstayError | None:
    """Return why this request does not accept this decision, or None; the proof itself is checked elsewhere.

    `run` is the authority over the run as a whole, which a rejection needs that stops it.
    """
    if approval.verdict.value not in request.options:
        return DecisionRefused(f"verdict: {approval.verdict} is not one of {', '.join(request.options)}")
    for index, single in (approval.calls or {}).items():
        if request.kind in DECIDES_CALLS and single.verdict not in request.options:
            said = f"{single.verdict} is not one of {', '.join(request.options)}"
            return DecisionRefused(f"calls.{index}.verdict: {said}; it is decided as a whole")
    return (
        _refused_person(request, approval, starters, run)
        or _refused_digest(request, approval)
        or _refused_calls(request, approval)
        or (_refused_option(request, approval) if request.proposal is None else None)
        or _refused_remember(request, approval)
    )


def _refused_person(
    request: ApprovalRequest, approval: Approval, starters: Collection[str], run: Authority
) -> BackstayError | None:
    if request.proposal is not None:
        return _refused_for_plan(request, request.proposal, approval, starters, run)
    refused = refused_person(_needed(request.authority, approval), approval.by, approval.proof, starters)
    if refused is None and approval.stop:
        # It ends the run and undoes what the run did.
        refused = refused_person(run.for_stopping(), approval.by, approval.proof, starters)
    if refused is not None:
        return refused
    said = (most_permissive(approval).value, answer_digest(approval))
    for vote in request.decided:
        if vote.get("by") == approval.by and (
            request.kind in DECIDES_CALLS or (vote.get("verdict"), vote.get("answer")) == said
        ):
            return DecisionRefused(f"by: {approval.by} has already decided; another approver must")
    return None


def parts_to_decide(request: ApprovalRequest, approval: Approval, starters: Collection[str]) -> frozenset[int]:
    """Return the parts of a plan that a decision counts for: those still open that this person may decide."""
    open_parts = () if request.proposal is None else (part for part in request.proposal.parts if not part.complete)
    return frozenset(
        part.part
        for part in open_parts
        if all(vote.get("by") != approval.by for vote in part.decided)
        and refused_person(_needed(part.authority, approval), approval.by, approval.proof, starters) is None
    )


def _needed(authority: Authority, approval: Approval) -> Authority:
    return authority.for_stopping() if most_permissive(approval) is Verdict.REJECT else authority


def _refused_for_plan(
    request: ApprovalRequest, proposal: Proposal, approval: Approval, starters: Collection[str], run: Authority
) -> BackstayError | None:
    """Return why somebody may decide no part of a plan, or not what they say of it."""
    mine = parts_to_decide(request, approval, starters)
    if not mine:
        if any(vote.get("by") == approval.by for part in proposal.parts for vote in part.decided):
            return DecisionRefused(f"by: {approval.by} has already decided; another approver must")
        left = next(part for part in proposal.parts if not part.complete)
        return refused_person(_needed(left.authority, approval), approval.by, approval.proof, starters)
    if approval.stop:
        # It ends the run and undoes what the run did.
        stops = refused_person(run.for_stopping(), approval.by, approval.proof, starters)
        if stops is not None:
            return stops
    refused = _refused_steps(proposal, approval, mine) if approval.verdict is not Verdict.REJECT else None
    return refused or _refused_option(request, approval)


def _refused_steps(proposal: Proposal, approval: Approval, mine: Collection[int]) -> DecisionRefused | None:
    """Return why somebody may not decide a step that they name, or None; `mine` are the parts that they decide."""
    own = sorted({index for part in proposal.parts if part.part in mine for index in part.steps})
    asked = {index for part in proposal.parts for index in part.steps}
    for index in sorted((approval.calls or {}).keys() - own):
        if index in asked:
            return DecisionRefused(f"calls.{index}: other people decide this step; name only {own}")
        if any(step.idx == index for step in proposal.steps):
            return DecisionRefused(
                f"calls.{index}: nobody is asked about this step, because the policy allows it; name only {own}, "
                "or reject the whole plan and say why in comment"
            )
    return None


def _refused_option(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    """Return why a plan is not approved in this way, or None."""
    proposal = request.proposal
    if proposal is None:
        given = [name for name in ("option", "plan_id", "toggles") if getattr(approval, name) is not None]
        return DecisionRefused(f"{given[0]}: only for a plan; leave it out") if given else None
    if approval.plan_id is not None and approval.plan_id != proposal.plan_id:
        return DecisionRefused(
            f"plan_id: this request is about {proposal.plan_id}; decide the request of {approval.plan_id}"
        )
    if approval.ask_again:
        return DecisionRefused("ask_again: a changed plan is always proposed again; leave it out")
    if approval.option is not None and approval.option not in proposal.approve_options:
        return DecisionRefused(f"option: {approval.option} is not one of {', '.join(proposal.approve_options)}")
    for index, named in sorted((approval.calls or {}).items()):
        if approval.verdict is Verdict.MODIFY and named.verdict != "modify":
            return DecisionRefused(
                f"calls.{index}: a change makes a new plan; {named.verdict} its steps when that is proposed"
            )
        if approval.verdict is not Verdict.MODIFY and named.verdict == "modify":
            return DecisionRefused(f"calls.{index}: a changed step needs verdict modify; a new plan is proposed then")
    if approval.option == "approve_all" and approval.calls:
        return DecisionRefused("calls: approve_all leaves no step out; use approve_per_step, or leave calls out")
    if approval.option == "dry_run_only" and approval.calls:
        return DecisionRefused("calls: a dry run makes no call that could be left out; leave calls out")
    if approval.toggles is None:
        return None
    if approval.verdict is not Verdict.APPROVE:
        return DecisionRefused("toggles: only with verdict approve; leave it out")
    refusal = proposal.toggles.refusal(approval.toggles)
    return None if refusal is None else DecisionRefused(refusal)


def _refused_digest(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    if approval.args_digest is not None and approval.args_digest != request.args_digest:
        return DecisionRefused("args_digest: stale; the request is about other arguments, look at it again")
    more = request.proposal is not None and request.proposal.more
    clipped = more or any(call.clipped or kept_bytes(call.arguments) for call in request.calls)
    lets_go = most_permissive(approval) in {Verdict.APPROVE, Verdict.MODIFY}
    if clipped and lets_go and approval.args_digest is None:
        what = "plan is" if more else "arguments are"
        return DecisionRefused(f"args_digest: required, because the {what} too long to be shown whole")
    return None


def _refused_calls(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    named = approval.calls or {}
    parts = () if request.proposal is None else request.proposal.parts
    indexes = {call.index for call in request.calls} | {index for part in parts for index in part.steps}
    if named and request.kind not in DECIDES_CALLS:
        return DecisionRefused(f"calls: a request of kind {request.kind} has none; leave it out")
    for index, verdict in named.items():
        if index not in indexes:
            return DecisionRefused(f"calls.{index}: no such call; the request has {sorted(indexes)}")
        if (verdict.verdict == "modify") != (verdict.arguments is not None):
            return DecisionRefused(f"calls.{index}.arguments: required for modify, and only there")
        if verdict.without and verdict.verdict != "modify":
            return DecisionRefused(f"calls.{index}.without: only with verdict modify; leave it out")
    if approval.verdict is Verdict.MODIFY and not any(v.verdict == "modify" for v in named.values()):
        return DecisionRefused("calls: modify needs at least one call with verdict modify and its arguments")
    if approval.verdict is Verdict.ANSWER and approval.answer is None:
        return DecisionRefused("answer: required for verdict answer")
    return None


def _refused_remember(request: ApprovalRequest, approval: Approval) -> DecisionRefused | None:
    if not approval.remember or approval.remember in request.may_remember:
        return None
    if request.may_remember:
        return DecisionRefused(
            f"remember: {approval.remember} is not one of {', '.join(request.may_remember)}, because the task has no "
            "session_id"
        )
    return DecisionRefused(
        f"remember: not here, because more than a default of policy.yaml asks: {request.rule or request.question}"
    )


def asks_again(request: ApprovalRequest, approval: Approval) -> bool:
    """Return whether a change is asked about again before any call is made.

    So it is wherever a decision with `modify` says nothing of a call: a change is not a word about the calls beside it.
    With `approve`, whoever decides says what becomes of those. A changed plan is proposed anew in any case.
    """
    named = approval.calls or {}
    if request.proposal is not None or not any(verdict.verdict == "modify" for verdict in named.values()):
        return False
    silent = approval.verdict is Verdict.MODIFY and any(call.index not in named for call in request.calls)
    return approval.ask_again or silent


def changes(shown: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return what was changed of arguments, by top-level key; a value equal to what was shown means unchanged."""
    return {key: value for key, value in given.items() if key not in shown or differs(shown[key], value)}
