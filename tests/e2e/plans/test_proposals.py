"""Plans that a model proposes: shown whole, decided in parts, amended as child plans, undone."""

import json
import uuid
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError

from backstay.testing import Reply
from tests import signing
from tests.engine import PLANS, Scripts, ended, engine, pending, update
from tests.requirements import promise
from tests.sizes import spread

KEY = "the key that workers and gateways share"
POLICY = """
ask:
  - {tool: "mail.send_email", when: {to: {ends_with: "@one.example"}}, approvers: ["ana@example.com"]}
  - {tool: "mail.send_email", when: {to: {ends_with: "@two.example"}}, approvers: ["bo@example.com"]}
allow:
  - {tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}
  - {tool: "mail.send_email", when: {to: {equals: "nobody"}}}
"""
ANA, BO = "ana@example.com", "bo@example.com"
FREE = "a@free.example"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        folder = tmp_path_factory.mktemp("proposals")
        given = {"policy": POLICY, "profiles": PLANS, "approver_key": KEY}
        opened = await stack.enter_async_context(engine(temporal, folder, scripts, **given))
        yield opened, scripts


def send(to=FREE, subject="s", body="b", **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": body}, **fields}


def plan(*steps, title="letters", **fields):
    return {"title": title, "steps": list(steps), **fields}


def propose(*steps, **fields):
    return Reply(calls=[("propose_plan", {"plan": plan(*steps), **fields})])


async def decide(handle, request, by=ANA, **more):
    given = {"request_id": request["id"], "verdict": "approve", "by": by, **more}
    return await update(handle, "decide", await signing.signed(handle, given, key=KEY))


async def refusal(awaited):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await awaited
    return f"{caught.value.cause.type}: {caught.value.cause.message}"


def subjects(opened, handle):
    query = "SELECT json_extract(arguments, '$.subject') FROM requests WHERE tool = 'send_email' AND effect_id LIKE ?"
    return [row[0] for row in opened.mailbox.rows(f"{query} ORDER BY id", f"{handle.id}/%")]


def told(opened, handle_task):
    """Return everything that the model was last asked with for this task."""
    asked = [request for request in opened.model.requests if handle_task["text"] in str(request["messages"][1])]
    return str(asked[-1]["messages"])


async def state_of(handle, plan_id=None):
    shown = await handle.query("plan", *([{"plan_id": plan_id}] if plan_id else []))
    return shown["state"], shown["reason"], [step["status"] for step in shown["steps"]]


@promise("plans:proposed")
async def test_a_model_proposes_a_plan_that_people_see_whole_and_then_it_runs_step_by_step(shared):
    opened, scripts = shared
    reads = {"tool": "mail.list_sent", "arguments": {"to": "b@one.example"}}
    refers = send(subject="third", body="${steps.0.result.message_id}")
    task = scripts.task(propose(send("b@one.example", summary="tell b"), reads, refers))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    proposal = request["proposal"]
    assert (request["kind"], proposal["plan_id"], proposal["version"]) == ("plan", "p1", 1)
    assert [step["action"] for step in proposal["steps"]] == ["mail.send_email", "mail.list_sent", "mail.send_email"]
    assert [step["needs_approval"] for step in proposal["steps"]] == [True, False, False]
    assert [step["depends_on"] for step in proposal["steps"]] == [[], [], [0]]
    assert (proposal["steps"][0]["summary"], proposal["steps"][0]["undoable"]) == ("tell b", True)
    assert proposal["estimated_side_effects"] == ["mail.send_email"]
    assert proposal["parts"][0] | {"rule": ""} == {
        "part": 0,
        "steps": [0],
        "approvers": [ANA],
        "quorum": 1,
        "no_self_approval": False,
        "rule": "",
        "escalate_to": [],
        "decided": [],
    }
    assert await state_of(handle) == ("PROPOSED", "", ["pending"] * 3)
    assert subjects(opened, handle) == []
    await decide(handle, request)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert (result["usage"]["steps"], result["usage"]["plan_steps"]) == (2, 3)
    assert subjects(opened, handle) == ["s", "third"]
    assert await state_of(handle) == ("COMPLETED", "", ["success"] * 3)
    assert '"state":"COMPLETED"' in told(opened, task)


@promise("plans:alternatives")
async def test_of_two_alternatives_the_one_that_is_approved_runs_and_the_other_is_not_chosen(shared):
    opened, scripts = shared
    other = plan(send("c@one.example", subject="second way"))
    question = Reply(calls=[("ask_person", {"question": "Was that all?"})])
    handle = await opened.start(scripts.task(propose(send("b@one.example"), alternatives=[other]), question))
    first, second = sorted(await pending(handle, 2), key=lambda request: request["proposal"]["plan_id"])
    assert (first["proposal"]["alternatives"], second["proposal"]["alternatives"]) == (["p2"], ["p1"])
    assert "plan_id: this request is about p1" in await refusal(decide(handle, first, plan_id="p2"))
    await decide(handle, second, plan_id="p2")
    (asked,) = await pending(handle)
    late = await refusal(decide(handle, first, plan_id="p1"))
    assert late == f"DecisionRefused: request_id: {first['id']} was withdrawn; nobody needs an answer"
    await decide(handle, asked, verdict="answer", answer="yes")
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["second way"]
    assert await state_of(handle, "p1") == ("FAILED", "not_chosen", ["pending"])
    assert await state_of(handle, "p2") == ("COMPLETED", "", ["success"])


@promise("plans:chosen")
async def test_notes_and_the_query_are_about_the_alternative_that_people_chose(shared):
    opened, scripts = shared
    other = plan(send("c@one.example", subject="second way"))
    noted = Reply(calls=[marks(0, "done"), ("ask_person", {"question": "all right?"})])
    task = scripts.task(propose(send("b@one.example", subject="first way"), alternatives=[other]), noted)
    handle = await opened.start(task)
    first, _ = sorted(await pending(handle, 2), key=lambda request: request["proposal"]["plan_id"])
    await decide(handle, first)
    (question,) = await pending(handle)
    assert (await handle.query("plan"))["plan"]["id"] == "p1"
    await decide(handle, question, verdict="answer", answer="yes")
    result = await ended(handle)
    (said,) = [event for event in result["events"] if event["name"] == "plan.noted"]
    assert said["data"] == {"plan": "p1", "idx": 0}
    assert '{"engine":"success","noted":true}' in told(opened, task)


@promise("plans:stopped")
async def test_who_stops_the_run_does_so_though_another_alternative_is_approved_in_the_same_moment(temporal, tmp_path):
    queue, scripts = f"both-{uuid.uuid4()}", Scripts()
    given = {"policy": "default: {read_only: allow, write_safe: ask, restricted_write: ask}", "task_queue": queue}
    async with engine(temporal, tmp_path, scripts, profiles=PLANS, **given) as opened:
        other = plan(send("c@one.example", subject="second way"))
        handle = await opened.start(scripts.task(propose(send("b@one.example"), alternatives=[other])))
        requests = {request["proposal"]["plan_id"]: request["id"] for request in await pending(handle, 2)}
    # No worker is there, so that the run is told of both at once.
    await handle.signal("approval", {"request_id": requests["p2"], "verdict": "approve", "by": "ana"})
    await handle.signal("approval", {"request_id": requests["p1"], "verdict": "reject", "stop": True, "by": "bo"})
    async with engine(temporal, tmp_path, scripts, profiles=PLANS, **given) as opened:
        result = await ended(handle)
        assert (result["outcome"], "bo" in result["error"]["message"]) == ("rejected", True)
        assert subjects(opened, handle) == []
        assert await state_of(handle, "p1") == ("FAILED", "rejected", ["pending"])
        # Whichever plan was checked first was asked about first, and its answer is looked at first.
        reason = "cancelled" if requests["p2"] == "r1" else "not_chosen"
        assert await state_of(handle, "p2") == ("FAILED", reason, ["pending"])


@promise("plans:parts")
async def test_each_part_of_a_plan_is_decided_by_its_own_people_and_the_plan_waits_for_all(shared):
    opened, scripts = shared
    steps = [send("b@one.example"), send("c@two.example", subject="two"), send(subject="free")]
    handle = await opened.start(scripts.task(propose(*steps)))
    (request,) = await pending(handle)
    assert [part["approvers"] for part in request["proposal"]["parts"]] == [[ANA], [BO]]
    stranger = {"request_id": request["id"], "verdict": "approve", "by": ANA}
    assert "NotVerified" in await refusal(update(handle, "decide", stranger))
    assert "is not an approver" in await refusal(decide(handle, request, by="cy@example.com"))
    others = {"1": {"verdict": "reject"}}
    assert "other people decide this step" in await refusal(decide(handle, request, calls=others))
    allowed = {"2": {"verdict": "reject"}}
    said = "calls.2: nobody is asked about this step, because the policy allows it; name only [0], or reject the whole"
    assert said in await refusal(decide(handle, request, calls=allowed))
    changed = {"2": {"verdict": "modify", "arguments": {"to": "c@two.example"}}}
    assert said in await refusal(decide(handle, request, verdict="modify", calls=changed))
    unknown = {"7": {"verdict": "reject"}}
    assert "calls.7: no such call; the request has [0, 1]" in await refusal(decide(handle, request, calls=unknown))
    assert (await decide(handle, request))["state"] == "recorded"
    assert "already decided" in await refusal(decide(handle, request, by=ANA))
    (waiting,) = await pending(handle)
    assert [len(part["decided"]) for part in waiting["proposal"]["parts"]] == [1, 0]
    assert subjects(opened, handle) == []
    assert (await decide(handle, request, by=BO))["state"] == "decided"
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["s", "two", "free"]


@promise("plans:left-out-by")
async def test_a_step_that_one_of_several_people_left_out_carries_that_persons_name_and_comment(shared):
    opened, scripts = shared
    steps = [send("b@one.example"), send("c@one.example", subject="out"), send("d@two.example", subject="two")]
    task = scripts.task(propose(*steps))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    left_out = {"1": {"verdict": "reject"}}
    await decide(handle, request, option="approve_per_step", calls=left_out, comment="c has left")
    await decide(handle, request, by=BO, comment="fine")
    await ended(handle)
    step = (await handle.query("plan"))["steps"][1]
    assert step["error"] == f"Rejected: rejected by {ANA}: c has left"
    assert f"rejected by {ANA}: c has left" in told(opened, task)
    assert subjects(opened, handle) == ["s", "two"]


@promise("plans:create-plan")
async def test_a_rejected_plan_is_an_answer_and_the_next_version_is_its_child(shared):
    opened, scripts = shared
    again = Reply(calls=[("update_plan", {"plan_id": "p1", "plan": plan(send("b@one.example", subject="shorter"))})])
    created = Reply(calls=[("create_plan", {"plan": plan(send("b@one.example"))})])
    task = scripts.task(created, again)
    handle = await opened.start(task)
    (request,) = await pending(handle)
    await decide(handle, request, verdict="reject", comment="too long")
    (request,) = await pending(handle)
    assert (request["proposal"]["plan_id"], request["proposal"]["version"]) == ("p2", 2)
    assert "too long" in told(opened, task)
    shown = await handle.query("plan", {"plan_id": "p1"})
    assert (shown["state"], shown["reason"], shown["children"]) == ("FAILED", "rejected", ["p2"])
    await decide(handle, request)
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["shorter"]


@promise("plans:immutable")
async def test_a_step_that_a_person_changes_makes_a_child_plan_that_needs_approval_of_its_own_hash(shared):
    opened, scripts = shared
    handle = await opened.start(scripts.task(propose(send("b@one.example"), send("c@two.example"))))
    (request,) = await pending(handle)
    changes = {"0": {"verdict": "modify", "arguments": {"subject": "politer"}}}
    await decide(handle, request, verdict="modify", calls=changes)
    (child,) = await pending(handle)
    assert child["proposal"]["hash"] == child["args_digest"] != request["args_digest"]
    assert await state_of(handle, "p1") == ("FAILED", "superseded", ["pending"] * 2)
    assert [call.get("changed") for call in child["calls"]] == [["~ subject: s -> politer"], None]
    assert child["calls"][0]["changed_by"] == ANA
    stale = decide(handle, child, args_digest=request["args_digest"])
    assert "stale" in await refusal(stale)
    await decide(handle, child, args_digest=child["args_digest"])
    assert subjects(opened, handle) == []
    await decide(handle, child, by=BO, comment="to c as well")
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["politer", "s"]
    told = [said["content"] for said in opened.model.requests[-1]["messages"] if said["role"] == "tool"]
    assert json.loads(told[-1])["decided_by_people"] == [
        {"by": ANA, "changed": {"step 0": ["~ subject: s -> politer"]}},
        {"by": BO, "comment": "to c as well"},
    ]


@promise("plans:per-step")
async def test_a_plan_that_is_approved_per_step_goes_on_without_the_steps_that_were_rejected(shared):
    opened, scripts = shared
    steps = [
        send("b@one.example", subject="1"),
        send("c@one.example", subject="2"),
        send(subject="3", body="${steps.0.result.message_id}"),
        send(subject="4", body="${steps.2.result.message_id}"),
        send(subject="5", body="${steps.1.result.message_id}", transactional="pair"),
        send(subject="6", body="${steps.3.result.message_id}", transactional="pair"),
        send(subject="7", body="${steps.1.result.message_id}"),
    ]
    handle = await opened.start(scripts.task(propose(*steps)))
    (request,) = await pending(handle)
    left_out = {"0": {"verdict": "reject"}}
    falls = [step["falls"] for step in request["proposal"]["steps"]]
    assert falls == [[2, 3, 4, 5], [4, 5, 6], [3, 4, 5], [4, 5], [], [], []]
    assert "approve_all leaves no step out" in await refusal(
        decide(handle, request, option="approve_all", calls=left_out)
    )
    await decide(handle, request, option="approve_per_step", calls=left_out)
    assert (await ended(handle))["outcome"] == "completed"
    assert subjects(opened, handle) == ["2", "7"]
    shown = await handle.query("plan")
    fallen = ("pending", "dependency_failed")
    assert [(step["status"], step["reason"]) for step in shown["steps"]] == [
        ("pending", "rejected"),
        ("success", ""),
        *[fallen] * 4,
        ("success", ""),
    ]
    assert shown["state"] == "COMPLETED"


@promise("plans:groups")
async def test_a_group_of_which_a_step_fails_is_undone_and_the_rest_of_the_plan_goes_on(shared):
    opened, scripts = shared
    steps = [
        send(subject="alone"),
        send(subject="grouped", transactional="pair"),
        send("nobody", subject="fails", transactional="pair", continue_on_failure=True),
        send(subject="never", transactional="pair"),
        send(subject="last"),
    ]
    handle = await opened.start(scripts.task(propose(*steps)))
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert subjects(opened, handle) == ["alone", "grouped", "fails", "last"]
    assert [(undone["state"], undone["effect"]) for undone in result["undone"]] == [("compensated", 2)]
    shown = await handle.query("plan")
    assert [(step["status"], step["reason"]) for step in shown["steps"]] == [
        ("success", ""),
        ("rolled_back", ""),
        ("failed", ""),
        ("pending", "dependency_failed"),
        ("success", ""),
    ]
    assert shown["state"] == "COMPLETED"


@promise("plans:transactions")
async def test_a_plan_that_fails_undoes_its_transactional_steps_and_the_model_goes_on(shared):
    opened, scripts = shared
    steps = [send(subject="back", transactional=True), send("nobody", subject="fails"), send(subject="never")]
    task = scripts.task(propose(*steps), Reply(calls=[("mail__send_email", send(subject="after")["arguments"])]))
    handle = await opened.start(task)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert await state_of(handle) == ("ROLLBACK_COMPLETED", "step_failed", ["rolled_back", "failed", "pending"])
    assert subjects(opened, handle) == ["back", "fails", "after"]
    assert "not an e-mail address" in told(opened, task)


@promise("plans:states")
async def test_undoing_a_run_takes_its_plan_back(shared):
    opened, scripts = shared
    ask = Reply(calls=[("ask_person", {"question": "all right?"})])
    handle = await opened.start(scripts.task(propose(send(subject="1"), send(subject="2")), ask))
    (question,) = await pending(handle)
    assert await state_of(handle) == ("COMPLETED", "", ["success"] * 2)
    await update(handle, "undo", await signing.signed(handle, {"by": ANA}, update="undo", key=KEY))
    assert await state_of(handle) == ("ROLLBACK_COMPLETED", "", ["rolled_back"] * 2)
    await decide(handle, question, verdict="answer", answer="no")
    result = await ended(handle)
    states = [event["data"]["state"] for event in result["events"] if event["name"] == "plan.changed"]
    assert states == ["PROPOSED", "APPROVED", "EXECUTING", "REVIEWING", "COMPLETED", "ROLLBACK_COMPLETED"]


@promise("plans:plan-first")
async def test_a_run_that_plans_first_does_nothing_before_a_plan_is_approved(shared):
    opened, scripts = shared
    writes = Reply(calls=[("mail__send_email", send(subject="sly")["arguments"])])
    reads = Reply(calls=[("mail__list_customers", {"limit": 1})])
    after = Reply(calls=[("mail__send_email", send(subject="after")["arguments"])])
    planned = propose(send("b@one.example", subject="planned"))
    task = scripts.task(writes, reads, planned, after, mode="plan_first")
    handle = await opened.start(task)
    (request,) = await pending(handle)
    assert subjects(opened, handle) == []
    asked = [given for given in opened.model.requests if task["text"] in str(given["messages"][1])]
    offered = {tool["function"]["name"] for tool in asked[0]["tools"]}
    assert offered == {"search_tools", "propose_plan", "update_plan", "mark_step", "ask_person", "finish"}
    assert "nothing is done before a plan is approved" in told(opened, task)
    await decide(handle, request)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert subjects(opened, handle) == ["planned", "after"]


def marks(idx, status, note=""):
    return ("mark_step", {"idx": idx, "status": status, "note": note})


@promise("plans:mark-step")
async def test_a_model_notes_how_a_step_went_which_changes_nothing_and_unknown_steps_are_refused(shared):
    opened, scripts = shared
    ask = Reply(calls=[("ask_person", {"question": "all right?"})])
    marked = Reply(calls=[marks(0, "failed", "it bounced"), marks(1, "done"), marks(-1, "done")])
    task = scripts.task(Reply(calls=[marks(0, "done")]), propose(send(subject="noted")), ask, marked, ask)
    handle = await opened.start(task)
    (question,) = await pending(handle)
    before = await handle.query("plan")
    assert "there is no step 0 of a plan" in told(opened, task)
    await decide(handle, question, verdict="answer", answer="yes")
    (question,) = await pending(handle)
    assert await handle.query("plan") == before
    assert (before["state"], [step["status"] for step in before["steps"]]) == ("COMPLETED", ["success"])
    heard = told(opened, task)
    assert '{"engine":"success","noted":true}' in heard
    assert "there is no step 1 of a plan" in heard
    assert "idx: the number of a step, from 0" in heard
    await decide(handle, question, verdict="answer", answer="yes")
    result = await ended(handle)
    (noted,) = [event for event in result["events"] if event["name"] == "plan.noted"]
    assert (noted["text"], noted["data"]) == ("step 0 of p1: failed: it bounced", {"plan": "p1", "idx": 0})
    assert result["undone"] == []


@promise("plans:malformed")
@pytest.mark.parametrize(
    ("given", "said"),
    spread(
        [
            ({"plan": {"title": "t", "steps": [send(), {**send(), "colour": "red"}]}}, "plan: steps.1.colour: unknown"),
            ({"plan": {"title": "t", "steps": []}}, "plan: steps"),
            ({"plan": {"title": "t", "steps": [send()], "hash": "x"}}, "plan.hash: unknown field"),
            ({"plan": {"title": "t", "steps": [send()] * 21}}, "plan.steps: at most 20"),
            (
                {"plan": {"title": "t", "steps": [{"tool": "mail.fly", "arguments": {}}]}},
                "plan.steps.0.tool: there is no",
            ),
            ({"plan": "send it"}, "plan: required"),
            ({"plan": plan(send()), "alternatives": [plan(send())] * 4}, "alternatives"),
            ({"plan": plan(send(body="${steps.0.result.x}"))}, "has not run by then"),
            ({"plan": plan(send(retries=2))}, "not declared idempotent"),
            ({"plan": plan(send(limits={"cpu_s": 5}))}, "plan.steps.0.limits: mail.send_email runs in no jail"),
            ({"plan": plan(send(limits={"disk": 5}))}, "plan: steps.0.limits.disk: unknown field"),
            ({"plan": plan(send(limits={"memory_mb": 1}))}, "plan: steps.0.limits.memory_mb"),
        ],
        5,
    ),
    ids=spread(
        [
            *("unknown", "empty", "hash", "many", "tool", "text", "alternatives", "forward", "retries"),
            *("limits", "limit", "little"),
        ],
        5,
    ),
)
async def test_a_malformed_proposal_is_refused_by_name_and_nobody_is_asked(shared, given, said):
    opened, scripts = shared
    task = scripts.task(Reply(calls=[("propose_plan", given)]))
    handle = await opened.start(task)
    result = await ended(handle)
    assert said in told(opened, task)
    assert "approval.asked" not in [event["name"] for event in result["events"]]
    assert subjects(opened, handle) == []


DEFINITION = """
id: tell
title: Tell somebody
offer: true
input: {type: object, required: [who], properties: {who: {type: string}}, additionalProperties: false}
continue_on_failure: true
allowed_side_effects: ["mail.send_*"]
steps:
  - {tool: mail.send_email, params: {to: "${input.who}", subject: told, body: b}}
  - {tool: mail.send_email, params: {to: a@free.example, subject: after, body: "${steps.0.result.message_id}"}}
"""


@promise("plans:offered")
async def test_a_definition_that_is_offered_is_a_function_and_its_call_is_a_plan_like_any_other(temporal, tmp_path):
    folder, scripts = tmp_path / "definitions", Scripts()
    folder.mkdir()
    (folder / "tell.yaml").write_text(DEFINITION, encoding="utf-8")
    *lines, last = DEFINITION.replace("id: tell", "id: long").strip().splitlines()
    long = "\n".join([*lines, *[last] * 4])
    (folder / "long.yaml").write_text(long, encoding="utf-8")
    wrong = Reply(calls=[("definitions__tell", {"whom": "b@one.example"})])
    many = Reply(calls=[("definitions__long", {"who": "b@one.example"})])
    task = scripts.task(wrong, many, Reply(calls=[("definitions__tell", {"who": "b@one.example"})]))
    given = {"policy": POLICY, "approver_key": KEY, "definitions": folder, "max_steps_per_plan": 4}
    async with engine(temporal, tmp_path, scripts, **given) as opened:
        handle = await opened.start(task)
        (request,) = await pending(handle)
        (first, *_) = opened.model.requests
        assert "definitions__tell" in {tool["function"]["name"] for tool in first["tools"]}
        assert "is required; add it" in told(opened, task)
        assert "long.steps: at most 4" in told(opened, task)
        assert (request["proposal"]["title"], len(request["proposal"]["steps"])) == ("Tell somebody", 2)
        assert request["calls"][0]["arguments"]["to"] == "b@one.example"
        await decide(handle, request)
        assert (await ended(handle))["outcome"] == "completed"
        # Now that there is a plan, the model may amend it.
        offered = [{tool["function"]["name"] for tool in given["tools"]} for given in opened.model.requests]
        assert ["update_plan" in names for names in offered] == [False, False, False, True]
        assert subjects(opened, handle) == ["told", "after"]
        ran = (await handle.query("plan"))["plan"]
        assert (ran["continue_on_failure"], ran["allowed_side_effects"]) == (True, ["mail.send_*"])
