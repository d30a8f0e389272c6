"""Authority over a run is the operator's to give: a task takes it from nobody, and no old word undoes a new effect."""

import asyncio
import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from backstay.approvals.approvers import WORDS_HOLD_S, authority_over_run, words_hold_s
from backstay.approvals.voting import with_vote
from backstay.authority import Authority
from backstay.policies.policy import Policy
from backstay.testing import Reply
from tests import signing
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.sizes import spread

KEY = "the key that workers and gateways share"
ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
"""
FOUR_EYES = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
ask: [{tool: "mail.send_email", approvers: ["ana@example.com", "bo@example.com"], quorum: 2}]
"""
TAKING = {
    "for a tool that does not exist": {"ask": [{"tool": "no.such_tool", "approvers": ["eve@evil.example"]}]},
    "for its undo": {"undo": {"ask": [{"tool": "*", "approvers": ["eve@evil.example"]}]}},
    "forbids its undo": {"undo": {"deny": ["*"]}},
    "by no name": {"ask": [{"tool": "no.such_tool", "no_self_approval": True}]},
    "several": {"ask": [{"tool": "no.such_tool", "quorum": 3}]},
}
QUESTION = Reply(calls=[("ask_person", {"question": "Go on?"})])


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("over")
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY, approver_key=KEY))
        yield opened, scripts


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


async def say(handle, update, by, **payload):
    given = await signing.signed(handle, {**payload, "by": by}, update=update, key=KEY)
    return await handle.execute_update(update, given)


async def asked(handle, kind, but=()):
    async with asyncio.timeout(150):
        while not (found := [r for r in await handle.query("pending") if r["kind"] == kind and r["id"] not in but]):
            await asyncio.sleep(0.1)
    return found[0]


def recalled(opened, handle):
    query = "SELECT count(*) FROM requests WHERE tool = 'recall_email' AND effect_id LIKE ?"
    return opened.mailbox.rows(query, f"{handle.id}/%")[0][0]


@promise("approvals:operators-run")
@pytest.mark.parametrize("why", spread(list(TAKING), 3))
@pytest.mark.thorough
async def test_a_tasks_policy_takes_pause_undo_and_cancel_from_nobody(shared, why):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@x.example"), mail("b@x.example"), QUESTION, policy=TAKING[why]))
    await asked(handle, "question")
    assert (await handle.execute_update("pause", {"by": ANA, "reason": "look"}))["paused"] is True
    await handle.execute_update("resume", {"by": ANA})
    undone = (await handle.execute_update("undo", {"by": ANA, "to_step": 1}))["undone"]
    assert [effect["state"] for effect in undone] == ["compensated"]
    await handle.execute_update("top_up", {"by": ANA, "max_steps": 1})
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 150)
    assert recalled(opened, handle) == 2


@promise("approvals:operators-run")
async def test_after_the_end_the_operators_undo_asks_nobody_whom_only_the_task_names(shared):
    opened, scripts = shared
    own = {
        "undo": {"deny": ["*"]},
        "ask": [
            {"tool": "mail.send_email", "when": {"to": {"equals": "a@x.example"}}, "approvers": [CY]},
        ],
    }
    handle = await opened.start(scripts.task(mail("a@x.example"), policy=own))
    await say(handle, "decide", CY, request_id=(await pending(handle))[0]["id"], verdict="approve")
    await ended(handle)
    ask = {"workflow_id": handle.id, "by": BO}
    queue = opened.settings.task_queue
    undo = await opened.client.start_workflow("UndoRun", ask, id=f"undo-{uuid.uuid4()}", task_queue=queue)
    assert [effect["state"] for effect in (await undo.result())["undone"]] == ["compensated"]


@promise("approvals:operators-run")
def test_the_people_of_a_run_are_those_of_the_operators_rules_alone():
    operators = Policy.admit({"ask": [{"tool": "a.b", "approvers": [ANA, BO]}]})
    for own in TAKING.values():
        assert authority_over_run(operators.tightened_by(own)) == authority_over_run(operators)
        assert authority_over_run(Policy().tightened_by(own)) == Authority()
    assert authority_over_run(operators).approvers == (ANA, BO)


@promise("approvals:old-word")
@pytest.mark.thorough
async def test_a_word_about_one_effect_undoes_no_later_one(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FOUR_EYES, approver_key=KEY) as opened:

        async def agreed():
            request = await asked(handle, "call")
            for by in (ANA, BO):
                await say(handle, "decide", by, request_id=request["id"], verdict="approve")

        handle = await opened.start(scripts.task(mail("a@x.example"), QUESTION, mail("b@x.example"), QUESTION))
        await agreed()
        question = await asked(handle, "question")
        assert (await say(handle, "undo", ANA))["by"] == [ANA]
        await handle.execute_update(
            "decide", {"request_id": question["id"], "verdict": "answer", "answer": "yes", "by": CY}
        )
        await agreed()
        await asked(handle, "question", but=(question["id"],))
        # Who was shown the first effect alone says nothing of the second one.
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await say(handle, "undo", ANA, last_seen=1)
        assert "effect 2 is newer than what was shown" in str(refused.value.cause)
        assert await say(handle, "undo", BO, last_seen=2) == {"state": "recorded", "by": [BO], "quorum": 2}
        assert recalled(opened, handle) == 0
        undone = (await say(handle, "undo", ANA, event_id="again"))["undone"]
        assert [effect["state"] for effect in undone] == ["compensated", "compensated"]
        await handle.terminate()


@promise("approvals:old-word")
def test_a_word_holds_as_long_as_the_rule_says_and_a_day_where_none_does():
    rules = [
        {"tool": "mail.*", "approvers": [ANA, BO], "quorum": 2, "timeout": "2h"},
        {"tool": "mail.send_*", "approvers": [ANA, BO], "quorum": 2, "timeout": "1h"},
        {"tool": "mail.read_*", "timeout": "1s"},
    ]
    policy = Policy.admit({"ask": rules})
    assert words_hold_s(policy, {"mail.send_email"}) == 3600
    assert words_hold_s(policy, {"mail.recall"}) == 7200
    assert words_hold_s(policy, {"bank.pay"}) == words_hold_s(policy.tightened_by(None), ()) == WORDS_HOLD_S
    votes = with_vote({}, ANA, 1000, 3600)
    assert with_vote(votes, BO, 1000 + 3600, 3600) == {ANA: 1000, BO: 4600}
    assert with_vote(votes, BO, 1001 + 3600, 3600) == {BO: 4601}
    assert with_vote(votes, ANA, 2000, 3600) == {ANA: 2000}


@promise("approvals:every-field")
async def test_an_update_that_could_not_use_a_step_refuses_it(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(QUESTION))
    await asked(handle, "question")
    for update in ("pause", "top_up"):
        with pytest.raises(WorkflowUpdateFailedError) as caught:
            await handle.execute_update(update, {"by": ANA, "to_step": 1})
        assert caught.value.cause.message.startswith(f"{update}.to_step:")
    await handle.terminate()
