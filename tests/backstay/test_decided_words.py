"""What records and notices say of a decision beside its verdict."""

import pytest

from backstay.approvals import admission
from backstay.approvals.approval import ApprovalRequest, RecordedDecision, RequestedCall, RequestKind
from backstay.approvals.decided_words import decided_words
from backstay.approvals.notice import DecisionNotice
from backstay.approvals.proposal import PlanLimits, PlanToggles, Proposal, ProposalPart, ProposedStep
from backstay.approvals.voting import said_of_plan, voted
from tests.requirements import promise

CALLS = tuple(
    RequestedCall(index=index, tool="bank.pay", arguments={}, safety="write_safe", undoable=False) for index in range(3)
)
BATCH = ApprovalRequest(
    id="r1",
    kind=RequestKind.BATCH,
    question="?",
    calls=CALLS,
    options=("approve", "modify", "reject"),
    may_remember=("run", "always", "never"),
)
PLAN = BATCH.model_copy(
    update={
        "kind": RequestKind.PLAN,
        "proposal": Proposal(
            plan_id="p1",
            version=1,
            hash="h",
            steps=tuple(ProposedStep(idx=at, action="a.b", arguments={}, safety="write_safe") for at in range(3)),
            toggles=PlanToggles(external_processes=True, limits=PlanLimits(timeout_s=60)),
            parts=(ProposalPart(part=0, steps=(0, 1)), ProposalPart(part=1, steps=(2,), approvers=("bo",))),
        ),
    }
)


def told(request, *decisions):
    """Return what a notice says of decisions of which the last completes a request."""
    for at, said in enumerate(decisions):
        approval = admission.admit({"request_id": "r1", "by": "ana", **said})
        request = voted(request, approval, approval.calls or {}, (), str(at)).request
    return DecisionNotice.of(request, approval, (), verified=False, again=admission.asks_again(request, approval))


@promise("approvals:told-whole")
@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"verdict": "approve"}, []),
        ({"verdict": "approve", "calls": {"1": {"verdict": "reject"}}}, ["without call 1"]),
        (
            {"verdict": "approve", "calls": {"0": {"verdict": "reject"}, "2": {"verdict": "reject"}}},
            ["without calls 0, 2"],
        ),
        ({"verdict": "reject"}, []),
        (
            {"verdict": "modify", "calls": {"0": {"verdict": "modify", "arguments": {"a": 1}}}},
            ["asked again with the change, before anything is sent"],
        ),
        (
            {"verdict": "approve", "calls": {"0": {"verdict": "modify", "arguments": {"a": 1}}}},
            [],
        ),
        ({"verdict": "reject", "stop": True}, ["it ends the run"]),
        ({"verdict": "approve", "remember": "run"}, ["to be remembered for this run"]),
    ],
)
def test_what_became_of_each_call_and_of_the_run_is_told_with_a_decision(said, words):
    assert decided_words(told(BATCH, said)) == words


@promise("approvals:told-whole")
def test_what_each_of_several_people_left_out_or_narrowed_of_a_plan_is_told_with_the_last_decision():
    first = {"verdict": "approve", "calls": {"1": {"verdict": "reject"}}, "toggles": {"external_processes": False}}
    last = {"verdict": "approve", "by": "bo", "proof": "p", "toggles": {"limits": {"timeout_s": 5}}}
    decision = told(PLAN, first, last)
    words = ["without step 1", "it may start no processes", "at most 5 s for a step"]
    assert (decision.by, decided_words(decision)) == ("bo", words)
    assert decided_words(told(PLAN, {"verdict": "approve", "option": "dry_run_only"})) == ["a dry run only"]


@promise("approvals:told-whole")
def test_a_record_says_the_same_as_the_notice_also_as_json():
    said = {"verdict": "approve", "calls": {"1": {"verdict": "reject"}}, "toggles": {"external_processes": False}}
    approval = admission.admit({"request_id": "r1", "by": "ana", **said})
    record = RecordedDecision(n=1, at="", update="decide", by="ana", verified=False, verdict="approve")
    record = record.model_copy(update=said_of_plan(approval))
    assert decided_words(record) == decided_words(record.plain()) == ["without step 1", "it may start no processes"]
