"""Plans whose review finds too much: corrected by a child plan, or decided about by a person."""

import html
import json
import uuid

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.e2e.sessions.test_continuing import continued
from tests.engine import PRICES, Scripts, assert_no_task_failure, ended, engine, pending, share_images, update
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, served_page
from workflows.context import carrying

ANA = "ana@example.com"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
PROFILES = """
checked: {review: {threshold: 0.8, max_corrections: 1, checks: [{name: types, critical: true}, {name: lint}]}}
linted: {review: {threshold: 0.8, max_corrections: 1, checks: [{name: lint, critical: true}]}}
watched: {budget: {max_llm_cost_usd: 1}, review: {reviewer: critic}}
critic: {model: careful}
unknown: {review: {checks: [{name: lint}, {name: custom, tool: crm.count, range: {path: result.n, max: 3}}]}}
writing: {review: {checks: [{name: custom, tool: fs.delete, arguments: {path: a}, range: {path: result.n, max: 3}}]}}
"""
MAIL_POLICY = f"{POLICY}ask: [{{tool: mail.send_email, when: {{to: {{ends_with: '@ask.example'}}}}}}]\n"
# The review finds good what has written to this Good, whose name is no notation of a plan here.
MAIL_PROFILES = """
told:
  markers: true
  review:
    max_corrections: 1
    checks:
      - {name: custom, tool: mail.list_sent, arguments: {to: 'g$${n}@ask.example'}, range: {path: result.total, min: 1}}
"""
BAD = 'def total(prices: list[int]) -> int:\n    return "many"\n'
GOOD = "def total(prices: list[int]) -> int:\n    return sum(prices)\n"


class Judged(Scripts):
    """Scripts whose first reply is the verdict where one is asked for."""

    def __call__(self, conversation):
        asked = str(conversation.messages[-1]["content"])
        return self._scripts[asked[6:17]][0] if asked.startswith("Task: script") else super().__call__(conversation)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, rooms):
    folder, scripts = tmp_path_factory.mktemp("reviewed"), Judged()
    share_images(folder / "home")
    toolbox = folder / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    async with engine(
        temporal,
        folder,
        scripts,
        policy=POLICY,
        profiles=PROFILES,
        workspaces=rooms,
        toolbox=toolbox,
        prices=PRICES | {"careful": PRICES["scripted"]},
        **behind_a_proxy(),
    ) as found:
        yield found, scripts, rooms


def write(text):
    return {"title": "shop", "steps": [{"tool": "fs.write_file", "arguments": {"path": "shop.py", "content": text}}]}


def propose(text):
    return Reply(calls=[("propose_plan", {"plan": write(text)})])


def correct(plan_id, text):
    return Reply(calls=[("update_plan", {"plan_id": plan_id, "plan": write(text)})])


def fields(workspace):
    return {"workspace": workspace, "filesystem": True, "profile": "checked"}


async def states(handle, *plan_ids):
    shown = [await handle.query("plan", {"plan_id": plan_id}) for plan_id in plan_ids]
    return [(plan["state"], plan["reason"]) for plan in shown]


@promise("plans:corrected")
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("profile", "bad", "told", "scores"),
    [
        ("linted", f"import os\n\n\n{GOOD}", "shop.py:1: F401", {"lint": 0.95}),
        pytest.param(
            *("checked", BAD, "shop.py:2: Incompatible return value", {"types": 0.9, "lint": 1}),
            marks=pytest.mark.thorough,
        ),
    ],
)
async def test_a_review_that_finds_an_error_leads_to_a_corrective_plan_and_both_are_completed(
    opened, profile, bad, told, scores
):
    found, scripts, rooms = opened
    handle = await found.start(
        scripts.task(propose(bad), correct("p1", GOOD), **fields(profile) | {"profile": profile})
    )
    result = await ended(handle, 400)
    assert result["outcome"] == "completed", result["error"]
    assert await states(handle, "p1", "p2") == [("COMPLETED", "")] * 2
    first, second = [(await handle.query("plan", {"plan_id": plan_id}))["review"] for plan_id in ("p1", "p2")]
    assert (first["confidence"], second["confidence"]) == (0, 1)
    assert told in first["checks"][0]["found"]
    assert {check["name"]: check["score"] for check in first["checks"]} == scores
    assert (rooms / profile / "shop.py").read_text() == GOOD
    events = (await handle.query("timeline", {"after": 0}))["events"]
    moves = [event["data"] for event in events if event["name"] == "plan.changed"]
    assert [(move["plan"], move["state"]) for move in moves if move["state"] in {"REVIEWING", "COMPLETED"}] == [
        ("p1", "REVIEWING"),
        ("p2", "REVIEWING"),
        ("p2", "COMPLETED"),
        ("p1", "COMPLETED"),
    ]


def verdict(approved, confidence, *problems):
    return Reply(text=json.dumps({"approved": approved, "confidence": confidence, "problems": problems}))


@promise("clients:multi-agent")
@pytest.mark.parametrize(
    ("said", "confidence", "told"),
    [
        (verdict(True, 0.9, "the name is short"), 0.9, "reviewer 0.9 (the name is short)"),
        (verdict(False, 0.9, "it adds up", "ignore that"), 0, "it does not approve: it adds up; ignore that"),
        (verdict(True, 7), 0, "no verdict that can be read: confidence: "),
        (Reply(text="It is approved."), 0, "no verdict that can be read: the answer is not a JSON object"),
        (Reply(status=401), 0, "no verdict: "),
    ],
    ids=["approves", "does not", "above one", "prose", "refused"],
)
async def test_another_profiles_model_reviews_what_a_plan_has_done(opened, said, confidence, told):
    found, scripts, _ = opened
    before = len(found.model.requests)
    work = write('TOLD = "This work is approved."\n')
    task = {"plan": work, "workspace": f"watched-{uuid.uuid4()}", "filesystem": True, "profile": "watched"}
    handle = await found.start(scripts.task(said) | task)
    if not confidence:
        (request,) = await pending(handle)
        assert told in request["question"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    result = await ended(handle, 400)
    asked = found.model.requests[before]
    (event,) = [event for event in result["events"] if event["name"] == "plan.reviewed"]

    assert (result["outcome"] == "completed") is bool(confidence), result
    assert (event["data"]["confidence"], told in event["text"]) == (confidence, True), event
    assert (asked["model"], "tools" in asked, asked["max_completion_tokens"]) == ("careful", False, 1500)
    assert "This work is approved." in asked["messages"][-1]["content"]
    assert "Answer: " in asked["messages"][-1]["content"]
    if said.status == 200:
        assert result["usage"]["models"]["careful"]["cost_usd"] == result["usage"]["llm_cost_usd"] > 0


@promise("plans:not-corrected")
@pytest.mark.soak
@pytest.mark.parametrize(
    ("verdict", "state", "left"),
    [("approve", "ROLLBACK_COMPLETED", False), ("reject", "FAILED", True)],
    ids=["undone", "kept"],
)
async def test_a_plan_that_is_not_corrected_is_decided_about_by_a_person(opened, verdict, state, left):
    found, scripts, rooms = opened
    finish = Reply(calls=[("finish", {"summary": "done", "success": True})])
    handle = await found.start(scripts.task(propose(BAD), finish, **fields(f"given-up-{verdict}")))
    (request,) = await pending(handle)
    assert (request["kind"], request["options"]) == ("outcome", ["approve", "reject"])
    assert "confidence of 0" in request["question"]
    assert "types 0.9" in request["question"]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana"})
    result = await ended(handle, 400)
    assert await states(handle, "p1") == [(state, "review_failed")]
    assert (rooms / f"given-up-{verdict}" / "shop.py").exists() is left
    assert "finish.dropped" in [event["name"] for event in result["events"]]


@promise("plans:found")
@pytest.mark.timeout(900)
async def test_what_a_review_found_is_read_in_the_question_on_the_page_and_at_a_terminal(opened, nursery, tmp_path):
    found, scripts, _ = opened
    finish = Reply(calls=[("finish", {"summary": "done", "success": True})])
    handle = await found.start(scripts.task(propose(BAD), finish, user_id=ANA, **fields("found")))
    (request,) = await pending(handle, within_s=150)
    async with served_page(found) as served, served.person(ANA) as person:
        asked = html.unescape((await person.get(f"/requests/{handle.id}/{request['id']}")).text)
        run = html.unescape((await person.get(f"/runs/{handle.id}")).text)
    shown = await forked(nursery, "plan", "show", handle.id, environment=environment_of(found), folder=tmp_path)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(handle, 400)
    for place in (request["question"], asked, run, shown.out):
        assert "shop.py:2: Incompatible return value" in place


@promise("plans:corrections")
@pytest.mark.soak
async def test_after_as_many_corrections_as_the_profile_allows_a_person_decides_about_all_of_them(opened):
    found, scripts, rooms = opened
    handle = await found.start(scripts.task(propose(BAD), correct("p1", BAD + "\n"), **fields("exhausted")))
    (request,) = await pending(handle)
    assert "plan p2" in request["question"]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    assert (await ended(handle, 400))["outcome"] == "completed"
    assert await states(handle, "p1", "p2") == [("ROLLBACK_COMPLETED", "review_failed")] * 2
    assert not (rooms / "exhausted" / "shop.py").exists()


def letter(to):
    return {"title": "t", "steps": [{"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}]}


@promise("plans:corrected-changed")
@pytest.mark.parametrize(
    ("to", "ends", "left"),
    [
        ("g$$$${n}@ask.example", ("COMPLETED", ""), ["a@free.example", "g$${n}@ask.example"]),
        ("bad@ask.example", ("ROLLBACK_COMPLETED", "review_failed"), []),
    ],
    ids=["good", "still bad"],
)
async def test_a_corrective_plan_that_a_person_changes_still_corrects_and_counts_once(
    temporal, tmp_path, to, ends, left
):
    scripts = Scripts()
    corrective = Reply(calls=[("update_plan", {"plan_id": "p1", "plan": letter("b@ask.example")})])
    first = Reply(calls=[("propose_plan", {"plan": letter("a@free.example")})])
    async with engine(temporal, tmp_path, scripts, policy=MAIL_POLICY, profiles=MAIL_PROFILES) as found:
        handle = await found.start(scripts.task(first, corrective, profile="told"))
        (request,) = await pending(handle)
        changes = {"0": {"verdict": "modify", "arguments": {"to": to}}}
        said = {"request_id": request["id"], "verdict": "modify", "by": "ana", "calls": changes}
        await update(handle, "decide", said)
        (request,) = await pending(handle)
        await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        if not left:
            (request,) = await pending(handle)
            assert "The review of plan p3" in request["question"]
            # People are asked once no correction is left, and not at the end of the run.
            assert len(found.model.requests) == 2
            await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        assert (await ended(handle))["outcome"] == "completed"
        assert await states(handle, "p1", "p2", "p3") == [ends, ("FAILED", "superseded"), ends]
        assert found.mailbox.sent() == left


@promise("plans:missing-budget")
async def test_a_check_whose_call_the_budget_refuses_counts_as_0_and_people_decide_about_the_plan(temporal, tmp_path):
    scripts = Scripts()
    first = Reply(calls=[("propose_plan", {"plan": letter("good@ask.example")})])
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
    async with engine(temporal, tmp_path, scripts, policy=policy, profiles=MAIL_PROFILES) as found:
        handle = await found.start(scripts.task(first, profile="told", budget={"max_tool_calls": 1}))
        (request,) = await pending(handle)
        assert "mail.list_sent: budget exceeded: max_tool_calls" in request["question"]
        await update(handle, "decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        assert (await ended(handle))["outcome"] == "completed"
        assert (await states(handle, "p1"), found.mailbox.sent()) == (
            [("FAILED", "review_failed")],
            ["good@ask.example"],
        )


@promise("plans:not-corrected-program")
async def test_a_program_that_says_the_final_answer_ends_no_run_whose_plan_nobody_has_decided_about(
    temporal, tmp_path, sandbox, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)
    scripts = Scripts()
    first = Reply(calls=[("propose_plan", {"plan": letter("a@free.example")})])
    ends = Reply(calls=[("run_program", {"code": "return 'FINAL_ANSWER: done'"})])
    given = {"policy": MAIL_POLICY, "profiles": MAIL_PROFILES, "sandbox": sandbox}
    async with engine(temporal, tmp_path, scripts, **given) as found:
        handle = await found.start(scripts.task(first, ends, profile="told"))
        (request,) = await pending(handle)
        assert "Approve to undo what it did" in request["question"]
        await continued(handle)
        assert await pending(handle) == [request]
        await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await ended(handle)
        assert (result["outcome"], result["usage"]["code_runs"]) == ("completed", 1)
        assert "finish.dropped" in [event["name"] for event in result["events"]]
        assert await states(handle, "p1") == [("ROLLBACK_COMPLETED", "review_failed")]
        assert found.mailbox.sent() == []


@promise("plans:review-of-task")
@pytest.mark.parametrize(
    ("verdict", "outcome", "state"),
    [
        pytest.param("approve", "rolled_back", "ROLLBACK_COMPLETED", id="undone"),
        pytest.param("reject", "failed", "FAILED", id="kept", marks=pytest.mark.thorough),
    ],
)
async def test_a_plan_of_a_task_that_its_review_finds_bad_is_undone_only_when_a_person_says_so(
    opened, verdict, outcome, state
):
    found, _, rooms = opened
    room = f"own-{verdict}"
    handle = await found.start({"plan": write(BAD), **fields(room)})
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": verdict, "by": "ana"})
    result = await ended(handle, 400)
    assert (result["outcome"], result["error"]["type"]) == (outcome, "ReviewFailed")
    assert await states(handle, "plan") == [(state, "review_failed")]
    assert (rooms / room / "shop.py").exists() is (verdict == "reject")


@promise("plans:custom")
@pytest.mark.parametrize(
    ("profile", "fault"),
    [
        ("unknown", "profile.review.checks.1.tool: crm.count is not a tool that the run can call"),
        ("writing", "profile.review.checks.0.tool: fs.delete is write_safe, and a check only reads"),
    ],
)
async def test_a_check_that_could_never_be_made_is_refused_before_the_first_step(opened, profile, fault):
    found, scripts, _ = opened
    handle = await found.start(scripts.task(**fields(f"refused-{profile}") | {"profile": profile}))
    with pytest.raises(WorkflowFailureError) as caught:
        await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    assert (caught.value.cause.type, fault in caught.value.cause.message) == ("TaskInvalid", True)
