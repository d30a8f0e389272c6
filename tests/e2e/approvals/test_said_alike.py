"""What people must know of a request, and of what they decided, is said in the same words at every door."""

import pytest

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.proposal import PlanToggles, Proposal, ProposedStep
from backstay.approvals.view import RequestView
from backstay.cli.render import remembered_lines, request_lines
from backstay.policies.accepted import HOLDS, remembered_words
from gateways.slack.drawing.request import Shown, request_blocks
from gateways.web.deciding import outcome_line
from gateways.web.identity import Visitor
from people.requests.form import DecisionForm
from tests.requirements import promise
from tests.slack_blocks import text_of


def terminal(request):
    return "\n".join(line for line, _ in request_lines("w", request))


def page(request):
    seen, form = RequestView.of(request), DecisionForm.of(request)
    return "\n".join([*(call.marks for call in seen.calls), form.processes, *(limit.now for limit in form.limits)])


def slack(request):
    return text_of([block.to_dict() for block in request_blocks(Shown(workflow_id="w", request=request))])


@promise("plans:told-alike")
@pytest.mark.parametrize("door", [terminal, page, slack])
def test_every_door_says_which_steps_fall_away_and_what_can_be_narrowed(door):
    first = ProposedStep(
        idx=0,
        action="mail.send",
        arguments={},
        safety="write_safe",
        needs_approval=True,
        falls=(1,),
        starts_process=True,
    )
    second = ProposedStep(idx=1, action="crm.note", arguments={}, safety="write_safe", depends_on=(0,))
    limits = {"timeout_s": 30, "memory_mb": 512, "cpu_s": 10, "artifacts_mb": 64}
    proposal = Proposal(
        plan_id="p1",
        version=1,
        hash="h",
        steps=(first, second),
        toggles=PlanToggles.model_validate({"external_processes": True, "limits": limits}),
    )
    call = RequestedCall(index=0, tool="mail.send", arguments={}, safety="write_safe", undoable=False)
    said = door(ApprovalRequest(kind="plan", question="May it?", calls=(call,), proposal=proposal)).lower()

    assert "if it is left out, step 1 is not made either" in said
    assert "uses what step 0 returned" in said
    assert "step 0 starts processes; without them step 1 is not made either" in said
    for words in ("may take 30 s", "512 mb of memory", "10 s of processor time", "may write 64 mb"):
        assert words in said


@promise("approvals:remembered-alike")
@pytest.mark.parametrize("holds", HOLDS)
def test_every_door_says_for_what_a_decision_holds_and_what_it_waits_for(holds):
    line = {"line": "abc", "tool": "mail.send", "holds": holds, "waits": "" if holds == "always" else "1 more"}
    answer = {"state": "decided", "verdict": "approve", "remembered": [line]}
    at_terminal = "\n".join(text for text, _ in remembered_lines(line))
    on_page = outcome_line(answer, Visitor(by="ana@example.com"))
    in_slack = "; ".join(remembered_words(line))

    for said in (at_terminal, on_page, in_slack):
        assert f"remembered for {HOLDS[holds]}: mail.send" in said
        assert ("1 more" in said, "backstay policy accept abc" in said) == (holds != "always",) * 2
