"""Whatever a way into a run can change, only those may change it whom the policy names for it."""

import asyncio
import json
import re
import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from backstay.approvals.approval import RequestKind
from backstay.approvals.proof import REVEAL, Binding
from backstay.responses import ProofCheck
from backstay.testing import Reply
from store.opening import open_store
from tests import signing
from tests.engine import ROOT, Scripts, ended, engine, pending, toolbox_of
from tests.histories import activities_in
from tests.requirements import promise
from workflows import WORKFLOWS

KEY = "the key that workers and gateways share"
ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
POLICY = """
groups: {"@finance": ["bo@example.com", "cy@example.com"]}
default: {read_only: allow, write_safe: allow, restricted_write: ask}
ask:
  - tool: "mail.send_email"
    when: {to: {ends_with: "@two.example"}}
    approvers: ["ana@example.com", "@finance"]
    quorum: 2
"""
READ = {"tool": "mail.list_customers", "arguments": {"limit": 2}}


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("authority")
        scripts = Scripts()
        yield (
            await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY, approver_key=KEY)),
            scripts,
        )


@pytest.fixture
def opened(shared):
    return shared[0]


@pytest_asyncio.fixture
async def lossy(temporal, tmp_path):
    """Open an engine whose mailbox dies once, before it sends."""
    path = toolbox_of(tmp_path, tmp_path / "mailbox.db", MAILBOX_DIE_BEFORE_SEND="1")
    async with engine(
        temporal,
        tmp_path,
        Scripts(),
        policy=POLICY,
        approver_key=KEY,
        toolbox=path,
        request_deadline_seconds=3,
    ) as made:
        yield made


def send(to):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}


def plan(*steps, **fields):
    return {"plan": {"steps": list(steps)}, **fields}


async def say(handle, update, by, **payload):
    """Send an update with a proof."""
    given = await signing.signed(handle, {**payload, "by": by}, update=update, key=KEY)
    return await handle.execute_update(update, given)


async def refusal(update):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await update
    return caught.value.cause.type


def sent(opened, handle, tool="send_email"):
    query = f"SELECT count(*) FROM requests WHERE tool = '{tool}' AND effect_id LIKE ?"
    return opened.mailbox.rows(query, f"{handle.id}/%")[0][0]


async def approve(handle, *people):
    (request,) = await pending(handle)
    for by in people:
        await say(handle, "decide", by, request_id=request["id"], verdict="approve")


async def paid(opened, *steps, **fields):
    """Run a payment that two people approved, to its end."""
    handle = await opened.start(plan(send("a@two.example"), *steps, **fields))
    await approve(handle, ANA, BO)
    assert (await ended(handle))["outcome"] == "completed"
    return handle


async def paid_and_asking(opened, scripts):
    """Bring a run to where it has made a payment that two people approved, and asks a question."""
    payment = Reply(calls=[("mail__send_email", send("a@two.example")["arguments"])])
    handle = await opened.start(scripts.task(payment, Reply(calls=[("ask_person", {"question": "Go on?"})])))
    await approve(handle, ANA, BO)
    async with asyncio.timeout(150):
        while [request["kind"] for request in await handle.query("pending")] != ["question"]:
            await asyncio.sleep(0.1)
    assert sent(opened, handle) == 1
    return handle


@promise("approvals:effects")
async def test_a_lost_payment_is_sent_again_only_when_the_two_agree_who_must_approve_it(lossy):
    handle = await lossy.start(plan(send("a@two.example")))
    await approve(handle, ANA, BO)
    async with asyncio.timeout(150):
        while not (asked := [r for r in await handle.query("pending") if r["kind"] == "outcome"]):
            await asyncio.sleep(0.1)
    (request,) = asked
    assert (request["approvers"], request["quorum"]) == ([ANA, BO, CY], 2)
    for verdict in ("retry", "happened", "did_not_happen"):
        said = {"request_id": request["id"], "verdict": verdict}
        assert await refusal(handle.execute_update("decide", {**said, "by": "eve"})) == "NotVerified"
        assert await refusal(say(handle, "decide", "eve@example.com", **said)) == "DecisionRefused"
    decide = {"request_id": request["id"]}
    assert (await say(handle, "decide", ANA, **decide, verdict="retry"))["state"] == "recorded"
    assert (await say(handle, "decide", BO, **decide, verdict="did_not_happen"))["state"] == "recorded"
    assert sent(lossy, handle) == 1
    assert (await say(handle, "decide", BO, **decide, verdict="retry"))["state"] == "decided"
    assert (await ended(handle))["outcome"] == "completed"
    assert sent(lossy, handle) == 2


@promise("approvals:run")
async def test_a_strangers_answer_raises_no_limit_that_top_up_would_refuse(opened):
    handle = await opened.start(plan(READ, READ, budget={"max_tool_calls": 1, "on_exhausted": "ask"}))
    (request,) = await pending(handle)
    said = {"request_id": request["id"], "verdict": "answer", "answer": {"max_tool_calls": 1}}
    more = {"max_tool_calls": 1}
    assert await refusal(handle.execute_update("decide", {**said, "by": "eve"})) == "NotVerified"
    assert await refusal(handle.execute_update("top_up", {**more, "by": "eve"})) == "NotVerified"
    assert await refusal(say(handle, "top_up", "eve@example.com", **more)) == "DecisionRefused"
    assert await refusal(say(handle, "decide", "eve@example.com", **said)) == "DecisionRefused"
    await say(handle, "decide", CY, **said)
    assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:run")
async def test_pausing_and_resuming_need_somebody_whom_the_policy_names(opened):
    handle = await opened.start(plan(send("a@two.example")))
    await pending(handle)
    assert await refusal(handle.execute_update("pause", {"by": "eve"})) == "NotVerified"
    assert await refusal(say(handle, "resume", ANA)) == "DecisionRefused"
    assert (await say(handle, "pause", ANA, reason="look"))["paused"] is True
    assert await refusal(say(handle, "pause", BO)) == "DecisionRefused"
    assert await refusal(handle.execute_update("resume", {"by": "eve"})) == "NotVerified"
    assert (await say(handle, "resume", BO))["was"] == "look"
    await say(handle, "decide", ANA, request_id="r1", verdict="reject")
    assert (await ended(handle))["outcome"] == "failed"


@promise("approvals:undo")
async def test_an_undo_needs_as_many_as_the_payment_that_it_undoes(shared):
    opened, scripts = shared
    handle = await paid_and_asking(opened, scripts)
    undo = {"to_step": 0}
    assert await refusal(handle.execute_update("undo", {**undo, "by": "eve"})) == "NotVerified"
    assert (await say(handle, "undo", ANA, **undo))["state"] == "recorded"
    assert (await say(handle, "undo", ANA, **undo))["state"] == "recorded"
    assert sent(opened, handle, "recall_email") == 0
    undone = (await say(handle, "undo", CY, **undo))["undone"]
    assert [effect["state"] for effect in undone] == ["compensated"]
    await handle.terminate()


@promise("approvals:undo-run")
async def test_undo_run_needs_a_proof_for_the_run_that_it_undoes_and_the_word_of_all_who_must_agree(opened):
    handle = await paid(opened)
    other = await paid(opened)

    async def undo_run(ask, bound):
        given = {**ask, "proof": signing.proof_of(ask, bound, key=KEY)} if bound else ask
        return await opened.client.start_workflow(
            "UndoRun", given, id=f"undo-{uuid.uuid4()}", task_queue=opened.settings.task_queue
        )

    async def failed(ask, bound=None):
        with pytest.raises(WorkflowFailureError) as caught:
            await (await undo_run(ask, bound)).result()
        return caught.value.cause.type

    ask = {"workflow_id": handle.id, "by": ANA}
    good = await signing.binding(handle, "UndoRun")
    assert await failed(ask) == "NotVerified"
    assert await failed(ask, await signing.binding(other, "UndoRun")) == "NotVerified"
    assert await failed({**ask, "by": "eve@example.com"}, good) == "DecisionRefused"
    undoing = await undo_run(ask, good)
    (request,) = await pending(undoing)
    assert [vote["by"] for vote in request["decided"]] == [ANA]
    assert sent(opened, handle, "recall_email") == 0
    yes = {"request_id": request["id"], "verdict": "approve", "by": BO}
    await undoing.execute_update("decide", await signing.signed(undoing, yes, key=KEY))
    assert (await ended(undoing))["outcome"] == "rolled_back"
    assert sent(opened, handle, "recall_email") == 1


@promise("approvals:cancelled")
async def test_a_cancelled_run_keeps_what_only_named_people_may_undo_and_says_so(shared):
    opened, scripts = shared
    handle = await paid_and_asking(opened, scripts)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    result = await handle.query("result")
    assert (result["outcome"], result["undone"]) == ("cancelled", [])
    assert "the effects are kept, because the policy names who may decide" in result["final_summary"]
    assert sent(opened, handle, "recall_email") == 0


@promise("approvals:proofs-strangers")
async def test_a_strangers_event_id_does_not_stand_in_the_way_of_the_gateways(opened):
    handle = await opened.start(plan(send("a@two.example"), send("b@free.example")))
    await pending(handle)
    said = {"request_id": "r1", "verdict": "approve", "event_id": "slack-1"}
    assert await refusal(handle.execute_update("decide", {**said, "by": ANA})) == "NotVerified"
    more = {"max_steps": 1, "event_id": "slack-2"}
    assert await refusal(handle.execute_update("top_up", {**more, "by": ANA})) == "NotVerified"
    assert (await say(handle, "top_up", ANA, **more))["max_steps"] == 11
    assert (await say(handle, "top_up", BO, **more))["max_steps"] == 12
    assert (await say(handle, "decide", ANA, **said))["state"] == "recorded"
    given = await signing.signed(handle, {**said, "by": BO}, key=KEY)
    first = await handle.execute_update("decide", given)
    again = await handle.execute_update("decide", given)
    assert first == again
    assert (first["state"], first["by"]) == ("decided", BO)
    assert (await ended(handle))["outcome"] == "completed"


@promise("approvals:proofs")
@pytest.mark.thorough
async def test_a_proof_holds_in_the_run_and_for_the_request_that_it_was_signed_for_and_once(opened):
    workflow_id = f"task-{uuid.uuid4()}"
    first = await opened.start(plan(send("a@two.example")), workflow_id)
    await pending(first)
    yes = {"request_id": "r1", "verdict": "approve", "by": ANA}
    old = await signing.signed(first, yes, key=KEY)
    more = await signing.signed(first, {"max_steps": 1, "by": ANA}, update="top_up", key=KEY)
    assert (await first.execute_update("top_up", more))["max_steps"] == 11
    for number in range(5):
        await say(first, "pause", ANA, reason=str(number))
        await say(first, "resume", ANA)
    assert (await first.execute_update("top_up", more))["max_steps"] == 11
    assert (await first.query("budget"))["budget"]["max_steps"] == 11
    await first.terminate()
    second = await opened.start(plan(send("other@two.example")), workflow_id)
    (request,) = await pending(second)
    for proof in (
        old["proof"],
        signing.proof_of_format_1(yes, workflow_id, "decide", key=KEY),
        (await signing.signed(second, yes, key=KEY, namespace="another"))["proof"],
        (await signing.signed(second, yes, key=KEY, request_id="r2"))["proof"],
        (await signing.signed(second, yes, key=KEY, digest="0" * 64))["proof"],
        (await signing.signed(second, yes, key=KEY, update="approval"))["proof"],
    ):
        assert await refusal(second.execute_update("decide", {**yes, "proof": proof})) == "NotVerified"
    assert await refusal(second.execute_update("top_up", more)) == "NotVerified"
    (same,) = await second.query("pending")
    assert same["digest"] == request["digest"]
    await second.terminate()


@promise("approvals:proofs")
async def test_a_used_proof_stays_used_when_its_answer_is_forgotten(opened):
    handle = await opened.start(plan(send("a@two.example")))
    await pending(handle)
    await handle.signal("approval", {"request_id": "r1"})
    yes = {"request_id": "r1", "verdict": "approve", "by": ANA}
    given = await signing.signed(handle, yes, update="approval", key=KEY)
    bound = await signing.binding(handle, "approval", "r1")
    async with open_store(database_url=None, home=opened.settings.home) as store:
        run = f"{bound['workflow_id']}/{bound['run_id']}"
        used = await store.decisions.prove(KEY.encode(), Binding(**bound), given, run=run, used_by="somebody else")
        assert used == ProofCheck(verified=True)
    await handle.signal("approval", given)
    async with asyncio.timeout(150):
        while (await handle.query("status"))["refused"] < 2:
            await asyncio.sleep(0.1)
    (request,) = await handle.query("pending")
    assert request["decided"] == []
    await handle.terminate()


@promise("approvals:audit")
async def test_junk_signals_do_not_push_a_verified_vote_out_of_the_audit(opened):
    handle = await opened.start(plan(send("a@two.example")))
    await pending(handle)
    await say(handle, "decide", ANA, request_id="r1", verdict="approve", comment="as agreed")
    for _ in range(130):
        await handle.signal("approval", {"request_id": "r1", "verdict": "approve", "by": "eve"})
    await say(handle, "decide", BO, request_id="r1", verdict="approve")
    await ended(handle)
    run = f"{handle.id}/{handle.first_execution_run_id}"
    async with open_store(database_url=None, home=opened.settings.home) as store:
        decisions = await store.decisions.of_run(run)
    assert [(d.by, d.verified, d.verdict, d.request_id, d.state) for d in decisions] == [
        (ANA, True, "approve", "r1", "recorded"),
        (BO, True, "approve", "r1", "decided"),
    ]
    assert decisions[0].comment == "as agreed"
    names = [event["name"] for event in (await handle.query("timeline", {"after": 0}))["events"]]
    assert names.count("approval.decided") == 2
    assert names.count("approval.refused") <= 21
    assert (await handle.query("status"))["refused"] == 130
    made = activities_in((await handle.fetch_history()).events)
    first_call = next(given for name, given, _ in made if name == "call_tool")
    assert [decision["by"] for decision in first_call["decisions"]][-1] == BO


# Every way into a run that takes a proof, with what it is told.
WAYS = {
    "decide": {"request_id": "r1", "verdict": "approve"},
    "approval": {"request_id": "r1", "verdict": "approve"},
    "top_up": {"max_steps": 1},
    "undo": {"to_step": 7},
    "pause": {"reason": "look"},
    "resume": {},
}


@promise("approvals:doors")
@pytest.mark.parametrize("way", WAYS)
async def test_every_proof_that_does_not_hold_is_refused_at_every_door(opened, way):
    handle = await opened.start(plan(send("a@two.example")))
    other = await opened.start(plan(send("a@two.example")))
    await asyncio.gather(pending(handle), pending(other))
    if way == "resume":
        await say(handle, "pause", BO)
        await say(other, "pause", BO)
    payload = {**WAYS[way], "by": ANA}

    async def made(**changed):
        return (await signing.signed(handle, payload, **({"update": way, "key": KEY} | changed)))["proof"]

    elsewhere = (await signing.signed(other, payload, update=way, key=KEY))["proof"]
    proofs = {
        "none": None,
        "malformed": "2.soon",
        "forged": await made(key="another key"),
        "expired": await made(life=-5),
        "too long": await made(life=48 * 3600),
        "foreign run": elsewhere,
        "earlier run of the same id": await made(run_id=str(uuid.uuid4())),
        "foreign namespace": await made(namespace="another"),
        "another request": await made(request_id="r2"),
        "stale request": await made(digest="0" * 64),
        "another way": await made(update="UndoRun"),
        "another person": (await signing.signed(handle, {**payload, "by": BO}, update=way, key=KEY))["proof"],
        "format 1": signing.proof_of_format_1(payload, handle.id, way, key=KEY),
    }
    before = await handle.query("budget"), await handle.query("pending")
    for why, proof in proofs.items():
        given = payload if proof is None else {**payload, "proof": proof}
        if way == "approval":
            refused = (await handle.query("status"))["refused"]
            await handle.signal("approval", given)
            async with asyncio.timeout(150):
                while (await handle.query("status"))["refused"] == refused:
                    await asyncio.sleep(0.05)
        else:
            assert await refusal(handle.execute_update(way, given)) == "NotVerified", why
    after = await handle.query("budget"), await handle.query("pending")
    assert json.dumps(after[1]) == json.dumps(before[1])
    assert after[0]["budget"] == before[0]["budget"]
    # The other run may still use its own proof, and this run a good one, once.
    good = {**payload, "proof": await made()}
    if way == "approval":
        await handle.signal("approval", good)
        await handle.signal("approval", good)
        async with asyncio.timeout(150):
            while len((await handle.query("pending"))[0]["decided"]) != 1:
                await asyncio.sleep(0.05)
    else:
        first = await handle.execute_update(way, good)
        assert await handle.execute_update(way, good) == first
    await handle.terminate()
    await other.terminate()


@promise("approvals:doors")
def test_the_table_of_doors_names_every_way_into_a_run():
    page = (ROOT / "docs/approvals.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## Who may do what")
    rows = re.findall(r"^\| (.+?) \| .+ \|$", section.partition("\n## ")[0], re.MULTILINE)[1:]
    named = {word for cell in rows for word in re.findall(r"`(\w+)`", cell)}
    ways: set[str] = set()
    for kind in WORKFLOWS:
        definition = workflow._Definition.must_from_class(kind)
        ways |= {definition.name, *definition.updates, *definition.signals}
        queries = {name for name in definition.queries if name and not name.startswith("__")}
        assert queries <= set(re.findall(r"`(\w+)`", section.partition("**Queries**")[2].partition("\n")[0]))
    assert {way for way in ways if way and not way.startswith("__")} - named == set()
    assert {kind.value for kind in RequestKind} - named == set()
    assert {"cancellation", "termination"} <= set(rows)
    # This one is no part of a workflow, since history must not hold what it answers.
    assert REVEAL in named
