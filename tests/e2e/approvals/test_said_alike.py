"""What people must know of a request, and of what they decided, is said in the same words at every door."""

import html

import pytest

from backstay.approvals.approval import ApprovalRequest, RequestedCall
from backstay.approvals.proposal import PlanToggles, Proposal, ProposedStep
from backstay.approvals.view import RequestView
from backstay.policies.accepted import HOLDS, remembered_words
from backstay.task.result import Result, Undone
from gateways.slack.drawing.request import request_blocks
from gateways.terminal.render import ending_lines, remembered_lines, request_lines
from gateways.web.deciding import outcome_line
from gateways.web.identity import Visitor
from people.requests.form import DecisionForm
from people.requests.posted import PostedRequest
from people.runs.words import undone_line
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Scripts, ended, engine
from tests.requirements import promise
from tests.slack_blocks import text_of
from tests.web.pages import behind_a_proxy, served_page


def terminal(request):
    return "\n".join(line for line, _ in request_lines("w", request))


def page(request):
    seen, form = RequestView.of(request), DecisionForm.of(request)
    return "\n".join([*(call.marks for call in seen.calls), form.processes, *(limit.now for limit in form.limits)])


def slack(request):
    return text_of([block.to_dict() for block in request_blocks(PostedRequest(workflow_id="w", request=request))])


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


@promise("approvals:unknown-alike")
async def test_every_door_says_of_an_error_that_it_may_have_come_after_the_call_took_effect(temporal, tmp_path):
    check = {"tool": "found", "arguments": {}, "applied_if": "{{ result.found }}"}
    answers = {"pay": {"error": "the connection to the bank was lost"}, "found": {"error": "busy"}}
    bank = ScriptedServer(tmp_path / "bank.json", [writes("pay"), reads("found")], answers, {"pay": {"verify": check}})
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: allow}"
    given = {"toolbox": toolbox_of_servers(tmp_path, bank=bank), "policy": policy}
    async with engine(temporal, tmp_path, Scripts(), **given, **behind_a_proxy()) as running:
        handle = await running.start({"plan": {"title": "pay", "steps": [{"tool": "bank.pay", "arguments": {}}]}})
        result = await ended(handle)
        async with served_page(running) as served, served.person("ana@example.com") as person:
            at_page = html.unescape((await person.get(f"/runs/{handle.id}")).text)
    (undone,) = result["undone"]
    at_terminal = "\n".join(line for line, _ in ending_lines(Result.model_validate(result)))
    in_slack = undone_line(Undone.model_validate(undone))
    for said in (at_terminal, at_page, in_slack):
        assert "the error may have come after it took effect: the connection to the bank was lost" in said
        assert "check by hand whether it took effect" in said
