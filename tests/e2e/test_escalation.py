"""Who may decide once nobody did in time: those whom the rule names, and nobody before their time."""

import asyncio

from backstay.testing import Reply
from tests.engine import pending

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
    async with asyncio.timeout(60):
        while True:
            requests = await pending(handle, count)
            if any(request["escalated_to"] for request in requests):
                return requests
            await asyncio.sleep(0.2)


async def test_of_a_plan_each_part_is_decided_by_others_only_when_its_own_time_is_over(open_engine):
    async with open_engine([], policy=POLICY, approver_key="a key") as engine:
        steps = [mail("now@x.example"), mail("later@x.example")]
        handle = await engine.start({"plan": {"title": "two", "steps": steps}})
        (request,) = await escalated(handle, 1)
        await handle.terminate()
    assert request["escalated_to"] == ["cy"]
    assert [part["approvers"] for part in request["proposal"]["parts"]] == [["bo", "cy"], ["ana"]]


async def test_of_a_batch_the_calls_that_others_may_decide_later_are_asked_about_apart(open_engine):
    calls = [("mail__send_email", mail(to)["arguments"]) for to in ("now@x.example", "later@x.example")]
    policy = POLICY.replace("[bo]", "[ana]").replace("[di]", "[cy]")
    async with open_engine([Reply(calls=calls)], policy=policy, approver_key="a key") as engine:
        handle = await engine.start("write")
        requests = await escalated(handle, 2)
        await handle.terminate()
    assert [request["approvers"] for request in requests] == [["ana", "cy"], ["ana"]]
