"""Plans that people change, and what they say of steps: who is asked again, about what, and what the model is told."""

import asyncio
from contextlib import AsyncExitStack

import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.plans.test_proposals import ANA, BO, FREE, KEY, decide, marks, plan, propose, send, state_of, subjects
from tests.engine import PLANS, Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = """
ask:
  - {tool: "mail.send_email", when: {to: {ends_with: "@one.example"}}, approvers: ["ana@example.com"]}
  - {tool: "mail.send_email", when: {to: {ends_with: "@two.example"}}, quorum: 2}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
deny: [{tool: "mail.send_email", when: {to: {ends_with: "@denied.example"}}}]
"""


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("changed")
        given = {"policy": POLICY, "profiles": PLANS, "approver_key": KEY}
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        yield opened, scripts


async def change(handle, request, index, **arguments):
    """Have a step of a plan changed, and return the request about the changed plan."""
    before = {found["id"] for found in await pending(handle)}
    calls = {str(index): {"verdict": "modify", "arguments": arguments}}
    await decide(handle, request, verdict="modify", calls=calls, args_digest=request["args_digest"])
    async with asyncio.timeout(150):
        while not (new := [found for found in await pending(handle) if found["id"] not in before]):
            await asyncio.sleep(0.1)
    return new[0]


@promise("plans:changed-asked")
async def test_a_plan_whose_change_no_rule_minds_is_shown_again_to_those_who_were_asked(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(propose(send("b@two.example"), send("c@one.example", subject="t"))))
    (request,) = await pending(handle)
    child = await change(handle, request, 0, to=FREE)
    assert (child["calls"][0]["arguments"]["to"], child["calls"][0]["changed_by"]) == (FREE, ANA)
    # Of a step that was changed earlier, too, nobody has seen yet what becomes of it.
    child = await change(handle, child, 1, to=FREE)
    assert subjects(opened, handle) == []
    assert [call["arguments"]["to"] for call in child["calls"]] == [FREE, FREE]
    assert [(part["steps"], part["quorum"]) for part in child["proposal"]["parts"]] == [([0], 2), ([1], 1)]
    assert (await decide(handle, child))["state"] == "recorded"
    assert subjects(opened, handle) == []
    await decide(handle, child, by=BO)
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["s", "t"]


@promise("plans:changed-asked")
async def test_a_plan_of_a_task_is_shown_again_also_where_it_was_asked_about_as_a_repeat(shared):
    opened, _ = shared
    handle = await opened.start({"plan": {"steps": [send(), send()]}})
    (request,) = await pending(handle)
    assert [call["index"] for call in request["calls"]] == [1]
    child = await change(handle, request, 1, subject="another")
    assert (child["calls"][0]["arguments"]["subject"], subjects(opened, handle)) == ("another", [])
    await decide(handle, child, verdict="reject")
    assert (await ended(handle))["outcome"] == "failed"
    assert subjects(opened, handle) == []


@promise("plans:changed-needs")
async def test_a_step_that_a_person_makes_refer_to_nothing_needs_no_other_step_any_more(shared):
    opened, _ = shared
    reference = "${steps.0.result.message_id}"
    steps = [
        send("b@one.example", subject="1"),
        send("c@one.example", subject="2", body=reference),
        send("d@one.example", subject="3", body=reference),
    ]
    handle = await opened.start({"plan": {"steps": steps}})
    (request,) = await pending(handle)
    assert [step["depends_on"] for step in request["proposal"]["steps"]] == [[], [0], [0]]
    child = await change(handle, request, 1, body="nothing to refer to")
    child = await change(handle, child, 2, subject="third")
    assert [step["depends_on"] for step in child["proposal"]["steps"]] == [[], [], [0]]
    assert child["proposal"]["steps"][0]["falls"] == [2]
    await decide(handle, child, option="approve_per_step", calls={"0": {"verdict": "reject"}})
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["2"]


@promise("plans:changed-long")
async def test_a_plan_of_a_task_is_changed_in_which_a_long_text_refers_to_a_result(shared):
    opened, _ = shared
    long = send("c@one.example", subject="2", body="long " * 1000 + "${steps.0.result.to}")
    handle = await opened.start({"plan": {"steps": [send("b@one.example", subject="1"), long]}})
    (request,) = await pending(handle)
    child = await change(handle, request, 0, subject="first")
    child = await change(handle, child, 1, subject="second")
    assert [step["depends_on"] for step in child["proposal"]["steps"]] == [[], [0]]
    await decide(handle, child, args_digest=child["args_digest"])
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["first", "second"]
    query = "SELECT json_extract(arguments, '$.body') FROM requests WHERE effect_id LIKE ? ORDER BY id"
    assert opened.mailbox.rows(query, f"{handle.id}/%")[1][0].endswith("long b@one.example")


@promise("plans:rejected-told")
async def test_who_rejects_a_plan_is_named_to_the_model_though_a_step_of_it_was_denied(shared):
    opened, scripts = shared
    told = []

    def looks(talk):
        told.extend(talk.answers("propose_plan"))
        return Reply(calls=[("finish", {"summary": "done", "success": True})])

    denied = send("b@denied.example", continue_on_failure=True)
    handle = await opened.start(scripts.task(propose(denied, send("c@one.example")), looks))
    (request,) = await pending(handle)
    await decide(handle, request, verdict="reject", comment="not today")
    await ended(handle)
    assert told[0]["error"] == f"step 1 (mail.send_email) failed: Rejected: rejected by {ANA}: not today"


@promise("plans:chosen")
async def test_the_alternative_that_people_chose_is_the_current_one_though_both_were_changed(shared):
    opened, scripts = shared
    other = plan(send("c@one.example", subject="second way"))
    noted = Reply(calls=[marks(0, "done"), ("ask_person", {"question": "all right?"})])
    handle = await opened.start(scripts.task(propose(send("b@one.example"), alternatives=[other]), noted))
    requests = {request["proposal"]["plan_id"]: request for request in await pending(handle, 2)}
    chosen = await change(handle, requests["p2"], 0, subject="chosen")
    assert (chosen["proposal"]["plan_id"], chosen["proposal"]["alternatives"]) == ("p3", ["p1"])
    last = await change(handle, requests["p1"], 0, subject="last")
    assert (last["proposal"]["plan_id"], last["proposal"]["alternatives"]) == ("p4", ["p3"])
    await decide(handle, chosen)
    (question,) = await pending(handle)
    assert (await handle.query("plan"))["plan"]["id"] == "p3"
    await decide(handle, question, verdict="answer", answer="yes")
    result = await ended(handle)
    (said,) = [event for event in result["events"] if event["name"] == "plan.noted"]
    assert (said["data"]["plan"], subjects(opened, handle)) == ("p3", ["chosen"])
    assert await state_of(handle, "p4") == ("FAILED", "not_chosen", ["pending"])
