"""What a decision says as a whole and of each call: its authority and its record follow from all of it."""

import pytest

from backstay.approvals import admission
from backstay.approvals.approval import Approval, ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.proposal import PlanLimits, PlanToggles, Proposal, ProposalPart, ProposedStep
from backstay.approvals.verdicts import comes_to, most_permissive, verdict_of_each
from backstay.approvals.voting import said_of_plan, voted
from backstay.authority import Authority
from backstay.errors import BackstayError
from tests.requirements import promise

ALL = ("approve", "modify", "reject")
WHOLE = ("approve", "reject")
CALLS = tuple(
    RequestedCall(index=index, tool="bank.pay", arguments={}, safety="write_safe", undoable=False) for index in (0, 1)
)
PROPOSAL = Proposal(
    plan_id="p1",
    version=1,
    hash="h",
    steps=tuple(ProposedStep(idx=at, action="bank.pay", arguments={}, safety="write_safe") for at in (0, 1)),
    toggles=PlanToggles(external_processes=True, limits=PlanLimits(timeout_s=60)),
    parts=(ProposalPart(part=0, steps=(0, 1)),),
)


def request(kind, options, **more):
    fields = {"id": "r1", "question": "?", "args_digest": "digest", "may_remember": ("run", "always", "never")}
    return ApprovalRequest(kind=kind, options=options, **(fields | more))


REQUESTS = {
    "call": request(RequestKind.CALL, ALL, calls=CALLS[:1]),
    "batch": request(RequestKind.BATCH, ALL, calls=CALLS),
    "undo": request(RequestKind.CALL, WHOLE, calls=CALLS[:1], may_remember=()),
    "plan": request(RequestKind.PLAN, ALL, calls=CALLS, proposal=PROPOSAL),
    "program": request(RequestKind.PROGRAM, WHOLE, calls=CALLS[:1]),
    "budget": request(RequestKind.BUDGET, ("answer", "reject"), may_remember=()),
    "outcome": request(RequestKind.OUTCOME, ("happened", "did_not_happen", "retry"), calls=CALLS[:1], may_remember=()),
    "fault": request(RequestKind.OUTCOME, ("retry", "reject"), may_remember=()),
    "question": request(RequestKind.QUESTION, ("answer", "reject"), may_remember=()),
    "elicitation": request(RequestKind.ELICITATION, ("answer", "reject"), calls=CALLS[:1], may_remember=()),
    "escalated": request(RequestKind.CALL, ALL, calls=CALLS[:1], escalated=True, approvers=("ana", "bo")),
    "several": request(RequestKind.BATCH, ALL, calls=CALLS, quorum=2),
}
PLAINLY = {
    "answer": {"answer": {"max_steps": 1}},
    "modify": {"calls": {0: {"verdict": "modify", "arguments": {"a": 1}}}},
}
FIELDS = {
    "stop": {"stop": True},
    "answer": {"answer": "another"},
    "option": {"option": "approve_per_step"},
    "dry run": {"option": "dry_run_only"},
    "dry run, narrowed": {"option": "dry_run_only", "toggles": {"external_processes": False}},
    "dry run, remembered": {"option": "dry_run_only", "remember": "always"},
    "plan_id": {"plan_id": "p2"},
    "toggles": {"toggles": {"external_processes": False}},
    "limits": {"toggles": {"limits": {"timeout_s": 5}}},
    "args_digest": {"args_digest": "another"},
    "remember": {"remember": "always"},
    "remember for the run": {"remember": "run"},
    "never": {"remember": "never"},
    "any arguments": {"remember_arguments": "any"},
    "any arguments, remembered": {"remember": "always", "remember_arguments": "any"},
    **{
        f"calls {at} {said}": {
            "calls": {at: {"verdict": said, **({"arguments": {"a": 2}} if said == "modify" else {})}}
        }
        for at in (0, 1, 7)
        for said in ("reject", "modify")
    },
    "arguments to reject": {"calls": {0: {"verdict": "reject", "arguments": {"a": 2}}}},
    "arguments to approve": {"calls": {0: {"verdict": "approve", "arguments": {"a": 2}}}},
}


def outcome(asked, said):
    """Return what a decision comes to, as the run makes it, or why it is refused."""
    try:
        approval = admission.admit({"request_id": "r1", "by": "ana", "proof": "proof", **said})
        if (refused := admission.refusal(asked, approval, (), Authority())) is not None:
            raise refused
        vote = voted(asked, approval, approval.calls or {}, (), "now")
    except BackstayError as error:
        return str(error)
    made = {
        index: (verdict, vote.calls[index].arguments if index in vote.calls else None)
        for index, verdict in verdict_of_each(asked, approval).items()
    }
    proposal = vote.request.proposal
    plan = None if proposal is None else (proposal.toggles, proposal.per_step, proposal.dry_run, proposal.left_out)
    lines = (approval.remember, approval.remember_arguments)
    verdict = (most_permissive(approval), approval.stop, approval.answer)
    return (verdict, made, plan, said_of_plan(approval) if proposal else {}, lines)


@promise("approvals:every-field")
@pytest.mark.parametrize("kind", REQUESTS)
def test_each_field_that_a_decision_gives_changes_what_it_comes_to_or_is_refused_by_its_name(kind):
    asked = REQUESTS[kind]
    for verdict in asked.options:
        plainly = {"verdict": verdict, **PLAINLY.get(verdict, {})}
        base = outcome(asked, plainly)
        if isinstance(base, str):
            # Several who must agree decide as a whole.
            assert (kind, verdict) == ("several", "modify"), base
            continue
        for name, field in FIELDS.items():
            said = outcome(asked, plainly | field)
            assert said != base, f"{verdict} with {name}"
            if isinstance(said, str):
                assert said.partition(":")[0].partition(".")[0] in {*field, "calls"}, said


@promise("approvals:every-field")
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_rejection_that_names_calls_is_refused_whatever_it_says_of_them(kind):
    for named in ({"verdict": "approve"}, {"verdict": "modify", "arguments": {"cents": 1}}, {"verdict": "reject"}):
        assert str(outcome(REQUESTS[kind], {"verdict": "reject", "calls": {0: named}})).startswith(
            ("calls:", "verdict:")
        )


@promise("approvals:most-permissive")
@pytest.mark.parametrize("kind", ["call", "batch", "plan", "escalated"])
def test_whatever_verdict_a_call_is_given_the_authority_is_that_of_the_most_permissive_one(kind):
    asked = REQUESTS[kind].model_copy(update={"no_self_approval": True, "approvers": ("ana",)})
    if asked.proposal is not None:
        parts = tuple(part.model_copy(update={"no_self_approval": True}) for part in asked.proposal.parts)
        asked = asked.model_copy(update={"proposal": asked.proposal.model_copy(update={"parts": parts})})
    for top in ("approve", "reject"):
        for named in ("approve", "reject"):
            # Built without the door, which would refuse some of them.
            approval = Approval.model_validate(
                {"request_id": "r1", "verdict": top, "calls": {0: {"verdict": named}}, "by": "ana", "proof": "p"}
            )
            refused = admission.refusal(asked, approval, {"ana"}, Authority())
            assert (refused is None) == (top == named == "reject")
            assert most_permissive(approval) == ("reject" if top == named == "reject" else "approve")


@promise("approvals:most-permissive")
def test_the_verdict_of_each_call_is_what_is_done_with_it():
    batch = REQUESTS["batch"]
    part = Approval(request_id="r1", verdict="approve", calls={1: {"verdict": "reject"}}, by="ana")
    assert verdict_of_each(batch, part) == {0: "approve", 1: "reject"}
    changed = Approval(request_id="r1", verdict="modify", calls={1: {"verdict": "modify", "arguments": {}}}, by="ana")
    assert (most_permissive(changed), verdict_of_each(batch, changed)) == ("modify", {1: "modify"})
    beside = Approval.model_validate(changed.model_dump() | {"verdict": "approve"})
    assert (most_permissive(beside), verdict_of_each(batch, beside)) == ("modify", {0: "approve", 1: "modify"})
    assert verdict_of_each(REQUESTS["question"], Approval(request_id="r1", verdict="answer", answer=1, by="a")) == {}


@promise("approvals:said-twice")
@pytest.mark.parametrize("index", ["00", "0.0", "+0", " 0", "0_0", "1" * 5000, "x"])
def test_one_call_cannot_be_named_under_two_spellings_of_its_index(index):
    calls = {"0": {"verdict": "reject"}, index: {"verdict": "approve"}}
    said = outcome(REQUESTS["batch"], {"verdict": "approve", "calls": calls})
    assert isinstance(said, str)
    assert said.startswith("calls: ")
    assert "write it as a plain number" in said
    assert outcome(REQUESTS["batch"], {"verdict": "approve", "calls": {"0": {"verdict": "reject"}}})[1] == {
        0: ("reject", None),
        1: ("approve", None),
    }


@promise("approvals:most-permissive")
def test_an_approval_that_rejects_every_call_is_recorded_as_what_it_comes_to():
    rejects = {"verdict": "reject"}
    for kind, calls in {"call": {0: rejects}, "batch": {0: rejects, 1: rejects}}.items():
        all_of_them = Approval(request_id="r1", verdict="approve", calls=calls, by="ana")
        assert (comes_to(REQUESTS[kind], all_of_them), most_permissive(all_of_them)) == ("reject", "approve")
        assert voted(REQUESTS[kind], all_of_them, all_of_them.calls, (), "now").vote["verdict"] == "reject"
    for kind in ("batch", "plan"):
        some = Approval(request_id="r1", verdict="approve", calls={0: rejects}, by="ana")
        assert comes_to(REQUESTS[kind], some) == "approve"


@promise("approvals:one-person")
@pytest.mark.parametrize("by", ["", " ", "\t\n", "\u3000"])
def test_nobody_decides_under_a_name_of_white_space_only(by):
    with pytest.raises(BackstayError, match=r"^by: "):
        admission.admit({"request_id": "r1", "verdict": "approve", "by": by})


@promise("plans:left-out-by")
def test_whoever_let_a_plan_start_no_processes_is_named_also_when_another_one_decides_last():
    parts = (
        ProposalPart(part=0, steps=(0,), approvers=("ana",)),
        ProposalPart(part=1, steps=(1,), approvers=("bo",)),
    )
    asked = REQUESTS["plan"].model_copy(update={"proposal": PROPOSAL.model_copy(update={"parts": parts})})
    none = {"toggles": {"external_processes": False}}
    for at, (by, more) in enumerate({"ana": none, "bo": {}}.items()):
        approval = admission.admit({"request_id": "r1", "verdict": "approve", "by": by, "proof": "p", **more})
        asked = voted(asked, approval, {}, (), str(at)).request
    assert asked.proposal.complete
    assert asked.proposal.no_processes_by == "ana"
    assert PROPOSAL.no_processes_by == ""
