"""Who may decide once nobody did in time: those whom the rule names, and nobody before their time."""

import asyncio

import pytest

from backstay.approvals.approval import ApprovalRequest
from backstay.testing import Reply
from gateways.terminal.render import request_lines
from tests.engine import pending
from tests.requirements import promise

POLICY = """
default: {write_safe: allow, read_only: allow}
ask:
  - {tool: mail.send_email, when: {to: {equals: now@x.example}}, approvers: [bo], timeout: 2s, on_expiry: escalate,
     escalate_to: [cy]}
  - {tool: mail.send_email, approvers: [ana], timeout: 1h, on_expiry: escalate, escalate_to: [di]}
"""


def mail(to):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}


async def escalated(handle, count):
    async with asyncio.timeout(150):
        while True:
            requests = await pending(handle, count)
            if any(request["escalated_to"] for request in requests):
                return requests
            await asyncio.sleep(0.2)


@promise("policy:escalation")
@pytest.mark.thorough
async def test_a_request_that_is_asked_again_says_so_where_nobody_else_is_named(open_engine):
    policy = """
    default: {write_safe: allow}
    ask: [{tool: mail.send_email, approvers: [ana], timeout: 3s, on_expiry: escalate}]
    """
    async with open_engine(
        [Reply(calls=[("mail__send_email", mail("a@x.example")["arguments"])])], policy=policy, approver_key="a key"
    ) as engine:
        handle = await engine.start("write")
        asked = ApprovalRequest.model_validate((await pending(handle))[0])
        async with asyncio.timeout(150):
            while not (again := ApprovalRequest.model_validate((await pending(handle))[0])).escalated:
                await asyncio.sleep(0.2)
        await handle.terminate()
    assert (asked.escalation, asked.then) == ("", "escalate")
    assert (again.escalation, again.then) == ("Asked again, because nobody had decided in time", "reject")
    lines = [line for line, _ in request_lines(handle.id, again)]
    assert "  asked again, because nobody had decided in time" in lines
    assert any(line.endswith(", then: reject") for line in lines)


@promise("policy:escalation")
@pytest.mark.thorough
async def test_who_was_asked_before_is_not_among_those_who_are_asked_in_addition(open_engine):
    policy = """
    default: {write_safe: allow}
    ask: [{tool: mail.send_email, approvers: [ana, bo], timeout: 2s, on_expiry: escalate, escalate_to: [bo, cy]}]
    """
    calls = [("mail__send_email", mail("a@x.example")["arguments"])]
    async with open_engine([Reply(calls=calls)], policy=policy, approver_key="a key") as engine:
        handle = await engine.start("write")
        (request,) = await escalated(handle, 1)
        await handle.terminate()
    assert (request["escalated_to"], request["approvers"]) == (["cy"], ["ana", "bo", "cy"])


@promise("policy:escalation")
@pytest.mark.thorough
async def test_of_a_plan_each_part_is_decided_by_others_only_when_its_own_time_is_over(open_engine):
    async with open_engine([], policy=POLICY, approver_key="a key") as engine:
        steps = [mail("now@x.example"), mail("later@x.example")]
        handle = await engine.start({"plan": {"title": "two", "steps": steps}})
        (request,) = await escalated(handle, 1)
        await handle.terminate()
    assert request["escalated_to"] == ["cy"]
    assert [part["approvers"] for part in request["proposal"]["parts"]] == [["bo", "cy"], ["ana"]]


@promise("policy:escalation")
async def test_of_a_batch_the_calls_that_others_may_decide_later_are_asked_about_apart(open_engine):
    calls = [("mail__send_email", mail(to)["arguments"]) for to in ("now@x.example", "later@x.example")]
    policy = POLICY.replace("[bo]", "[ana]").replace("[di]", "[cy]")
    async with open_engine([Reply(calls=calls)], policy=policy, approver_key="a key") as engine:
        handle = await engine.start("write")
        requests = await escalated(handle, 2)
        await handle.terminate()
    assert [request["approvers"] for request in requests] == [["ana", "cy"], ["ana"]]
