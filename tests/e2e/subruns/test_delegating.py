"""Delegation: what a sub-run is given, what it may spend, and what comes back to the run that delegated."""

import json

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.subruns.family import PROFILES, SEND, begun, children_of, delegate, finish, send, spent_by
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
ask: [{tool: "engine.delegate", when: {task: {contains: "ask "}}}]
allow: ["engine.delegate", "mail.send_email"]
deny: [{tool: "engine.delegate", when: {task: {contains: "evil"}}}]
delegation: {max_depth: 2, max_runs: 4}
"""
SCRIPTS = Scripts()
READ = Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 1})])


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("delegating")
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, profiles=PROFILES) as running:
        yield running


def noting(told, name="delegate"):
    """Finish, and note what the calls of a function were answered."""

    def looks(talk):
        told.extend(talk.answers(name))
        return finish("done")

    return looks


@promise("subruns:delegate")
async def test_a_sub_run_works_within_its_share_and_its_summary_comes_back(opened):
    told = []
    child = SCRIPTS.task(READ, send("one@example.com"), finish("sent one", outputs={"sent": 1}))
    handle = await opened.start(SCRIPTS.task(delegate(child, share=0.5), noting(told), budget={"max_steps": 9}))
    result = await ended(handle)
    (name,) = await children_of(handle)
    theirs = await ended(opened.client.get_workflow_handle(name))
    answer = told[0]["data"]

    assert result["outcome"] == theirs["outcome"] == "completed"
    assert theirs["budget"]["max_steps"] == 4
    assert (answer["summary"], answer["outputs"], answer["outcome"]) == ("sent one", {"sent": 1}, "completed")
    assert answer["spent"]["steps"] == result["usage"]["delegated_steps"] == theirs["usage"]["steps"] == 3


@promise("subruns:sums")
async def test_what_sub_runs_have_spent_counts_as_spent_by_the_run_to_the_millionth(opened):
    inner = SCRIPTS.task(READ, send("deep@example.com"))
    first, second = SCRIPTS.task(delegate(inner, share=0.5), READ), SCRIPTS.task(READ, READ)
    budget = {"max_steps": 60, "max_tool_calls": 40, "max_tokens": 400_000, "quotas": {"mail.list_customers": 9}}
    handle = await opened.start(SCRIPTS.task(READ, delegate(first, second), budget=budget))
    result = await ended(handle)
    every = [handle.id, *await children_of(handle)]
    every += [name for child in every[1:] for name in await children_of(opened.client.get_workflow_handle(child))]
    own = [await spent_by(opened, name) for name in every]
    usage = result["usage"]

    assert len(every) == 4
    assert round(usage["llm_cost_usd"] * 1e6) == sum(spent["micro"] for spent in own)
    assert usage["tool_calls"] == sum(spent["calls"] for spent in own)
    assert usage["delegated_steps"] + usage["steps"] == sum(spent["steps"] for spent in own)
    assert usage["calls_by_tool"]["mail.list_customers"] == 5
    assert usage["calls_by_tool"]["engine.delegate"] == 3


@promise("subruns:asks")
async def test_a_delegation_asks_a_person_who_sees_task_share_and_narrowing_and_decides_it_as_a_whole(opened):
    told = []
    child = SCRIPTS.task(READ)
    asks = {"text": f"{child['text']} ask "}
    policy = {"deny": ["mail.send_email"]}
    handle = await opened.start(SCRIPTS.task(delegate(asks, asks, share=0.25, policy=policy), noting(told)))
    (request,) = await pending(handle)
    assert [call["tool"] for call in request["calls"]] == ["engine.delegate"] * 2
    assert request["calls"][0]["arguments"]["share"]["max_steps"] == 2
    assert request["calls"][0]["arguments"]["policy"] == policy
    assert request["options"] == ["approve", "reject"]
    decision = {"request_id": request["id"], "verdict": "approve", "by": "ana"}
    await update(handle, "decide", decision | {"calls": {"1": {"verdict": "reject"}}})
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert len(await children_of(handle)) == 1
    assert told[0]["data"]["outcome"] == "completed"
    assert "rejected by ana" in told[1]["error"]


@promise("subruns:denied-whole")
async def test_a_delegation_that_a_rule_denies_is_denied_at_once_whatever_signs_its_task_holds(opened):
    told = []
    child = SCRIPTS.task(finish("looked"))
    texts = ["evil ${x}", "evil $${", f"{child['text']} price ${{x}}"]
    handle = await opened.start(SCRIPTS.task(delegate(*({"text": text} for text in texts)), noting(told)))
    (request,) = await pending(handle)
    assert [call["arguments"]["task"] for call in request["calls"]] == texts[2:]
    await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)

    assert [answer["type"] for answer in told[:2]] == ["Denied"] * 2
    assert "denied by the policy: deny[0]: engine.delegate when task contains" in told[0]["error"]
    assert told[2]["data"]["outcome"] == "completed"
    assert len(await children_of(handle)) == 1


@promise("subruns:refused")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"share": 1.5}, "share: 1.5 is not above 0 and up to 1"),
        ({"share": "half"}, "share: give a number"),
        ({"share": True}, "share: a boolean"),
        ({"share": {"max_steps": 0}}, "max_steps"),
        ({"share": {"steps": 1}}, "steps: unknown field"),
        ({"share": {"max_steps": 99}}, "99 of max_steps are given away together, and 9 are left"),
        ({"share": 0.01}, "nothing of max_steps is in it"),
        ({"policy": {"allow": "all"}}, "policy: allow"),
        ({"policy": {"scheduling": {"people": ["eve"]}}}, "policy: scheduling"),
        ({"policy": "strict"}, "policy: must be an object"),
        ({"task": " "}, "task: required"),
        ({"task": "x" * 8_500}, "are more than the 8,000 allowed"),
        ({"budget": {}}, "budget: unknown; give task, share, policy"),
    ],
)
async def test_a_delegation_that_cannot_be_is_answered_with_field_and_fix_and_starts_nothing(opened, given, said):
    told = []
    bad = Reply(calls=[("delegate", {"task": "look", **given})])
    result = await ended(handle := await opened.start(SCRIPTS.task(bad, noting(told))))

    assert said in json.dumps(told), told
    assert await children_of(handle) == []
    assert result["usage"]["steps"] == 2


@promise("subruns:limits")
async def test_depth_and_number_of_sub_runs_are_limited_and_a_deeper_run_is_not_offered_to_delegate(opened):
    told, offered = [], []

    def deepest(talk):
        offered.extend(talk.tools)
        return Reply(calls=[("delegate", {"task": "deeper"})])

    leaf = SCRIPTS.task(deepest, noting(told))
    middle = SCRIPTS.task(delegate(leaf, share=0.9))
    many = [SCRIPTS.task(finish("leaf")) for _ in range(4)]
    root = SCRIPTS.task(delegate(middle, share=0.5), delegate(*many), noting(told), budget={"max_steps": 40})
    await ended(handle := await opened.start(root))

    assert "delegate" not in offered
    assert "this run delegates nothing" in json.dumps(told[0])
    assert "delegation.max_runs: 1 of 4 sub-runs of this run were started" in json.dumps(told)
    assert len(await children_of(handle)) == 1


@promise("subruns:narrowed")
async def test_a_sub_run_obeys_the_policy_of_the_run_and_what_narrows_it_and_nothing_widens_it(opened):
    told = []
    denied = SCRIPTS.task(send("never@example.com"), noting(told, SEND))
    widened = SCRIPTS.task(Reply(calls=[("mail__recall_email", {"message_id": "m1"})]))
    narrow = Reply(
        calls=[
            ("delegate", {"task": denied["text"], "policy": {"deny": ["mail.send_email"]}}),
            ("delegate", {"task": widened["text"], "policy": {"allow": ["mail.*"]}}),
        ]
    )
    handle = await opened.start(SCRIPTS.task(narrow))
    names = await begun(handle, 2)
    (request,) = await pending(opened.client.get_workflow_handle(names[1]))
    assert request["calls"][0]["tool"] == "mail.recall_email"
    child = opened.client.get_workflow_handle(names[1])
    await update(child, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(handle)

    assert "denied by the policy: task's own deny[0]" in json.dumps(told)
    assert "never@example.com" not in opened.mailbox.sent()


@promise("subruns:only-models")
async def test_plans_and_programs_delegate_nothing_and_are_told_so(opened):
    told = []
    plan = {"steps": [{"tool": "engine.delegate", "arguments": {"task": "look"}}]}
    explicit = await ended(await opened.start({"plan": plan}))
    first = SCRIPTS.task(
        Reply(calls=[("propose_plan", {"plan": plan})]),
        noting(told, "propose_plan"),
        mode="plan_first",
    )
    await ended(await opened.start(first))
    early = SCRIPTS.task(Reply(calls=[("delegate", {"task": "look"})]), noting(told), mode="plan_first")
    await ended(await opened.start(early))

    assert "no step of a plan and no program delegates" in explicit["error"]["message"]
    assert "no step of a plan and no program delegates" in json.dumps(told[0])
    assert "nothing is done before a plan is approved" in json.dumps(told[1])


@promise("subruns:stranger")
async def test_a_run_under_the_name_of_a_sub_run_with_another_task_inherits_nothing(opened):
    child = SCRIPTS.task(READ)
    handle = await opened.start(SCRIPTS.task(delegate(child)))
    await ended(handle)
    (name,) = await children_of(handle)
    stranger = await opened.start(SCRIPTS.task(READ), name)
    result = await ended(stranger)
    (begun,) = [event for event in result["events"] if event["name"] == "run.started"]

    assert result["outcome"] == "completed"
    assert result["budget"]["max_steps"] == 10, begun
