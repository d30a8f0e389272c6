"""Who decided: proofs that a gateway signs, approvers, quorum, and deciding about one's own run."""

import asyncio
import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from backstay.testing import Reply
from store.opening import open_store
from tests import signing
from tests.engine import Scripts, differing, ended, engine, pending
from tests.requirements import promise

KEY = "the key that workers and gateways share"
POLICY = """
groups: {"@finance": ["bo@example.com", "cy@example.com"]}
ask:
  - tool: "mail.send_email"
    when: {to: {ends_with: "@two.example"}}
    approvers: ["ana@example.com", "@finance"]
    quorum: 2
  - {tool: "mail.send_email", when: {to: {ends_with: "@own.example"}}, no_self_approval: true}
  - {tool: "mail.send_email", when: {to: {ends_with: "@one.example"}}, approvers: ["ana@example.com"]}
"""
ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("proofs")
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY, approver_key=KEY))
        yield opened, scripts


def mail(to):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"})])


async def signed(handle, payload, *, key=KEY, **more):
    return await signing.signed(handle, payload, key=key, **more)


async def started_by(opened, task):
    """Start a task whose `by` is proven."""
    workflow_id = f"task-{uuid.uuid4()}"
    return await opened.start(signing.signed_start(opened.client, workflow_id, task, key=KEY), workflow_id)


async def refusal(update):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await update
    return caught.value.cause.type, caught.value.cause.message


def sent(opened, handle):
    query = "SELECT count(*) FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?"
    return opened.mailbox.rows(query, f"{handle.id}/%")[0][0]


@promise("approvals:proof-decides")
@pytest.mark.thorough
async def test_only_a_proof_for_exactly_this_decision_verifies_who_decided(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@one.example")))
    (request,) = await pending(handle)
    assert request["approvers"] == [ANA]
    yes = {"request_id": "r1", "verdict": "approve", "by": ANA}
    no = {"request_id": "r1", "verdict": "reject", "by": ANA}
    for why, payload in {
        "no proof": yes,
        "no proof at all": {**yes, "proof": ""},
        "forged": await signed(handle, yes, key="another key"),
        "expired": await signed(handle, yes, life=-5),
        "too long": await signed(handle, yes, life=48 * 3600),
        "for another run": await signed(handle, yes, workflow_id="task-other"),
        "for another update": await signed(handle, yes, update="approval"),
        "for another verdict": {**await signed(handle, no), "verdict": "approve"},
        "for another person": {**await signed(handle, {**yes, "by": BO}), "by": ANA},
        "without what it signed": {**await signed(handle, {**yes, "comment": "only if cheap"}), "comment": ""},
        "no number": {**yes, "proof": "soon.00"},
        "no text at all": {**yes, "proof": "\u202e" * 100},
    }.items():
        kind, message = await refusal(handle.execute_update("decide", payload))
        assert kind == "NotVerified", why
        assert message.startswith("proof:"), why
    assert differing(await handle.query("pending"), [request]) == []
    assert sent(opened, handle) == 0
    await handle.execute_update("decide", await signed(handle, yes))
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert sent(opened, handle) == 1
    (decided,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (decided["data"]["by"], decided["data"]["verified"]) == (ANA, True)


@promise("approvals:forged")
async def test_a_verified_stranger_and_an_unverified_approver_are_both_refused(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@one.example")))
    await pending(handle)
    stranger = {"request_id": "r1", "verdict": "approve", "by": "eve@example.com"}
    kind, message = await refusal(handle.execute_update("decide", await signed(handle, stranger)))
    assert kind == "DecisionRefused"
    assert "by: eve@example.com is not an approver; the rule names ana@example.com" in message
    await handle.execute_update("decide", await signed(handle, {**stranger, "by": ANA, "verdict": "reject"}))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 0


@promise("approvals:signal")
async def test_a_signal_needs_its_own_proof_and_a_strangers_signal_is_an_event_and_nothing_else(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@one.example")))
    (request,) = await pending(handle)
    yes = {"request_id": "r1", "verdict": "approve", "by": ANA}
    await handle.signal("approval", yes)
    await handle.signal("approval", await signed(handle, yes))
    await handle.signal("approval", await signed(handle, {**yes, "by": "eve@example.com"}, update="approval"))
    async with asyncio.timeout(150):
        while True:
            events = (await handle.query("timeline", {"after": 0}))["events"]
            refused = [event["data"]["type"] for event in events if event["name"] == "approval.refused"]
            if len(refused) == 3:
                break
            await asyncio.sleep(0.1)
    assert sorted(refused) == ["DecisionRefused", "NotVerified", "NotVerified"]
    assert differing(await handle.query("pending"), [request]) == []
    assert sent(opened, handle) == 0
    await handle.signal("approval", await signed(handle, yes, update="approval"))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 1


@promise("approvals:quorum")
async def test_a_quorum_is_so_many_verified_persons(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@two.example")))
    (request,) = await pending(handle)
    assert (request["quorum"], request["approvers"]) == (2, [ANA, BO, CY])
    yes = {"request_id": "r1", "verdict": "approve", "by": BO}
    assert (await refusal(handle.execute_update("decide", yes)))[0] == "NotVerified"
    assert (await handle.execute_update("decide", await signed(handle, yes)))["state"] == "recorded"
    kind, message = await refusal(handle.execute_update("decide", await signed(handle, yes, life=601)))
    assert (kind, "has already decided" in message) == ("DecisionRefused", True)
    changed = {**yes, "by": CY, "verdict": "modify"}
    changed["calls"] = {"0": {"verdict": "modify", "arguments": {"to": "b@two.example"}}}
    kind, message = await refusal(handle.execute_update("decide", await signed(handle, changed)))
    assert (kind, "quorum" in message) == ("DecisionRefused", True)
    (still,) = await handle.query("pending")
    assert [vote["by"] for vote in still["decided"]] == [BO]
    assert sent(opened, handle) == 0
    assert (await handle.execute_update("decide", await signed(handle, {**yes, "by": CY})))["state"] == "decided"
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 1


@promise("approvals:quorum")
async def test_one_verified_rejection_decides_a_quorum(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@two.example")))
    await pending(handle)
    yes = {"request_id": "r1", "verdict": "approve", "by": BO}
    await handle.execute_update("decide", await signed(handle, yes))
    await handle.execute_update("decide", await signed(handle, {**yes, "verdict": "reject", "by": ANA}))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 0


@promise("approvals:self")
async def test_nobody_approves_a_run_of_their_own_where_the_rule_forbids_it(shared):
    opened, scripts = shared
    handle = await started_by(opened, scripts.task(mail("a@own.example"), by=ANA))
    await pending(handle)
    yes = {"request_id": "r1", "verdict": "approve", "by": ANA}
    kind, message = await refusal(handle.execute_update("decide", await signed(handle, yes)))
    assert (kind, "forbids approving one's own" in message) == ("DecisionRefused", True)
    assert (await refusal(handle.execute_update("decide", {**yes, "by": BO})))[0] == "NotVerified"
    await handle.execute_update("decide", await signed(handle, {**yes, "by": BO}))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 1


@promise("approvals:one-person")
async def test_a_starter_and_a_voter_are_the_same_person_under_another_spelling(shared):
    opened, scripts = shared
    task = scripts.task(mail("a@own.example"), by=" Ana@Example.com", user_id="ANA@example.com")
    handle = await started_by(opened, task)
    (request,) = await pending(handle)
    assert request["user_id"] == ANA
    yes = {"request_id": "r1", "verdict": "approve"}
    for by in (ANA, "ANA@EXAMPLE.COM"):
        kind, message = await refusal(handle.execute_update("decide", await signed(handle, {**yes, "by": by})))
        assert (kind, "forbids approving one's own" in message) == ("DecisionRefused", True)
    await handle.execute_update("decide", await signed(handle, {**yes, "by": "BO@example.com"}))
    assert (await ended(handle))["outcome"] == "completed"

    handle = await opened.start(scripts.task(mail("a@two.example")))
    await pending(handle)
    await handle.execute_update("decide", await signed(handle, {**yes, "by": "Ana@Example.com"}))
    kind, message = await refusal(handle.execute_update("decide", await signed(handle, {**yes, "by": ANA})))
    assert (kind, "has already decided" in message) == ("DecisionRefused", True)
    await handle.execute_update("decide", await signed(handle, {**yes, "by": "Bo@Example.com"}))
    result = await ended(handle)
    assert [e["data"]["by"] for e in result["events"] if e["name"] == "approval.decided"] == [ANA, BO]


@promise("approvals:most-permissive")
async def test_a_rejection_by_the_starter_lets_no_call_pass_whatever_it_says_of_single_calls(shared):
    opened, scripts = shared
    handle = await started_by(opened, scripts.task(mail("a@own.example"), by=ANA))
    await pending(handle)
    no = {"request_id": "r1", "verdict": "reject", "by": ANA}
    for named in ({"verdict": "approve"}, {"verdict": "modify", "arguments": {"to": "b@own.example"}}):
        sly = await signed(handle, {**no, "calls": {"0": named}})
        kind, message = await refusal(handle.execute_update("decide", sly))
        assert (kind, message.partition(":")[0]) == ("DecisionInvalid", "calls")
    await handle.signal("approval", await signed(handle, {**no, "calls": {"0": named}}, update="approval"))
    assert await pending(handle)
    change = {"0": {"verdict": "modify", "arguments": {"subject": "other"}}}
    yes = {"request_id": "r1", "verdict": "approve", "by": BO, "calls": change}
    assert (await handle.execute_update("decide", await signed(handle, yes)))["verdict"] == "modify"
    result = await ended(handle)
    (decided,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (decided["text"], decided["data"]["calls"]) == (f"changed by {BO}", {"0": "modify"})
    async with open_store(database_url=None, home=opened.settings.home) as store:
        (row,) = await store.decisions.of_run(f"{handle.id}/{handle.first_execution_run_id}")
        told = await store.requests.get(handle.id, "r1")
    assert (row.verdict, row.calls) == ("modify", {0: "modify"})
    assert told.decision.verdict == "modify"
    assert sent(opened, handle) == 1


@promise("approvals:self")
async def test_without_a_proven_starter_a_rule_against_self_approval_lets_nobody_approve(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@own.example"), user_id=ANA, by=BO))
    await pending(handle)
    for by in (ANA, BO, CY):
        yes = {"request_id": "r1", "verdict": "approve", "by": by}
        kind, message = await refusal(handle.execute_update("decide", await signed(handle, yes)))
        assert (kind, "nobody proved who started this one" in message) == ("DecisionRefused", True)
    # To hold, to reject and to undo need nobody but a verified person.
    pause = {"reason": "look", "by": ANA}
    await handle.execute_update("pause", await signed(handle, pause, update="pause"))
    await handle.execute_update("resume", await signed(handle, {"by": ANA}, update="resume"))
    no = {"request_id": "r1", "verdict": "reject", "by": ANA}
    await handle.execute_update("decide", await signed(handle, no))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 0


@promise("approvals:self")
async def test_a_start_is_proven_for_one_run_and_one_task(shared):
    opened, scripts = shared
    task = scripts.task(mail("a@own.example"), by=ANA)
    workflow_id = f"task-{uuid.uuid4()}"
    good = signing.signed_start(opened.client, workflow_id, task, key=KEY)
    for given, where in (
        (good, f"task-{uuid.uuid4()}"),
        ({**good, "by": BO}, workflow_id),
        ({**good, "budget": {"max_steps": 99}}, workflow_id),
        ({**task, "proof": "2000." + "a" * 64}, workflow_id),
    ):
        with pytest.raises(WorkflowFailureError) as caught:
            await (await opened.start(given, where)).result()
        assert (caught.value.cause.type, "proof:" in caught.value.cause.message) == ("TaskInvalid", True)


@promise("approvals:top-up-proof")
async def test_where_a_rule_names_persons_topping_up_and_undoing_need_a_proof_too_and_each_proof_works_once(shared):
    opened, scripts = shared
    handle = await started_by(opened, scripts.task(mail("a@one.example"), by=BO))
    await pending(handle)
    more, back = {"max_steps": 5, "by": ANA}, {"to_step": None, "by": ANA}
    assert (await refusal(handle.execute_update("top_up", more)))[0] == "NotVerified"
    assert (await refusal(handle.execute_update("undo", back)))[0] == "NotVerified"
    wrong = await signed(handle, more, update="undo")
    assert (await refusal(handle.execute_update("top_up", wrong)))[0] == "NotVerified"
    good = await signed(handle, more, update="top_up")
    for _ in range(3):
        assert (await handle.execute_update("top_up", good))["max_steps"] == 15
    assert (await handle.query("budget"))["budget"]["max_steps"] == 15
    assert await handle.execute_update("undo", await signed(handle, back, update="undo")) == {"undone": []}
    no = {"request_id": "r1", "verdict": "reject", "by": ANA}
    await handle.execute_update("decide", await signed(handle, no))
    assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:proof-decides")
async def test_a_proof_that_is_not_needed_must_hold_all_the_same(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(mail("a@free.example")))
    await pending(handle)
    yes = {"request_id": "r1", "verdict": "approve", "by": "somebody"}
    forged = {**await signed(handle, yes), "by": ANA}
    assert (await refusal(handle.execute_update("decide", forged)))[0] == "NotVerified"
    await handle.execute_update("decide", yes)
    result = await ended(handle)
    (decided,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert decided["data"]["verified"] is False


@promise("approvals:separate")
async def test_calls_that_different_people_decide_about_are_asked_about_at_the_same_time(shared):
    opened, scripts = shared
    calls = [
        ("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in ("a@one.example", "b@free.example")
    ]
    handle = await opened.start(scripts.task(Reply(calls=calls)))
    named, free = await pending(handle, 2)
    assert (named["approvers"], named["calls"][0]["arguments"]["to"]) == ([ANA], "a@one.example")
    assert (free["approvers"], free["calls"][0]["arguments"]["to"]) == ([], "b@free.example")
    sly = {"request_id": free["id"], "verdict": "modify", "by": "eve"}
    sly["calls"] = {"1": {"verdict": "modify", "arguments": {"to": "c@one.example"}}}
    kind, message = await refusal(handle.execute_update("decide", sly))
    assert (kind, "falls under another rule: ask[2]" in message) == ("DecisionRefused", True)
    await handle.execute_update("decide", {"request_id": free["id"], "verdict": "approve", "by": "somebody"})
    assert [request["id"] for request in await handle.query("pending")] == [named["id"]]
    yes = {"request_id": named["id"], "verdict": "approve", "by": ANA}
    await handle.execute_update("decide", await signed(handle, yes))
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(opened, handle) == 2


@promise("approvals:separate")
@pytest.mark.thorough
async def test_a_rejection_with_stop_withdraws_what_else_is_asked(shared):
    opened, scripts = shared
    calls = [
        ("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in ("a@one.example", "b@free.example")
    ]
    handle = await started_by(opened, scripts.task(Reply(calls=calls), by=BO))
    _, free = await pending(handle, 2)
    said = {"request_id": free["id"], "verdict": "reject", "stop": True, "by": "somebody"}
    # It would end the run, so that it needs those who may change the run.
    assert (await refusal(handle.execute_update("decide", said)))[0] == "NotVerified"
    await handle.execute_update("decide", await signed(handle, {**said, "by": ANA}))
    assert (await ended(handle))["outcome"] == "rejected"
    assert await handle.query("pending") == []
    assert sent(opened, handle) == 0
