"""What the answer to a write means: an error that came as a result is no success, and no undo acts on it."""

import asyncio
import json

import pytest
import pytest_asyncio

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.view import RequestView
from backstay.testing import Reply
from tests.e2e.faults.test_faults_tools import ended, last_answer
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import ROOT, engine, pending
from tests.histories import TOGETHER
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nundo: {default: allow}\n"
EXISTS = {"error": "File exists"}
REMOVE = {"tool": "remove", "arguments": {"path": "{{ arguments.path }}"}}
FOUND = {"tool": "found", "arguments": {"path": "{{ arguments.path }}"}, "applied_if": "{{ result.found }}"}
ABSENT = {**FOUND, "tool": "absent"}
GIVES_UP = Reply(calls=[("finish", {"summary": "I cannot", "success": False})])
ANSWERS = {
    "create": {"data": EXISTS},
    "create_declared": {"data": EXISTS},
    "create_found": {"data": EXISTS},
    "create_absent": {"data": EXISTS},
    "refused": {"error": "the name is taken"},
    "refused_late": {"error": "the connection to the disk was lost"},
    "refused_early": {"error": "the name is taken"},
    "broken": {"refusal": "internal error"},
    "broken_late": {"refusal": "internal error"},
    "accepted": {"data": {"status": "error", "note": "queued"}},
    "fine": {"data": {"path": "/a"}},
    "fine_too": {"data": {"path": "/a"}},
    "fine_again": {"data": {"path": "/a"}},
    "remove": {"data": {"removed": True}},
    "remove_badly": {"data": {"success": False, "error": "busy"}},
    "remove_quietly": {"data": {"said": "nothing to do"}},
    "remove_late": {"data": {"error": "timeout"}},
    "found": {"data": {"found": True}},
    "absent": {"data": {"found": False}},
}
DECLARED = {
    "create": {"undo": REMOVE},
    "create_declared": {"undo": REMOVE, "failed_if": "{{ result.error is defined }}"},
    "create_found": {"undo": REMOVE, "verify": FOUND},
    "create_absent": {"undo": REMOVE, "verify": ABSENT},
    "refused": {"undo": REMOVE},
    "refused_late": {"undo": REMOVE, "verify": FOUND},
    "refused_early": {"undo": REMOVE, "verify": ABSENT},
    "broken": {"undo": REMOVE},
    "broken_late": {"undo": REMOVE, "verify": FOUND},
    "accepted": {"undo": REMOVE, "succeeded_if": "{{ result.note == 'queued' }}"},
    "fine": {"undo": {**REMOVE, "tool": "remove_badly"}},
    "fine_too": {"undo": {**REMOVE, "tool": "remove_quietly"}},
    "fine_again": {"undo": {**REMOVE, "tool": "remove_late"}},
    "remove_quietly": {"succeeded_if": "{{ result.removed | default(false) }}"},
    "remove_late": {"verify": FOUND},
}
READS = ("found", "absent")


def script_of(tool):
    return [Reply(calls=[(f"disk__{tool}", {"path": "/a"})]), GIVES_UP]


WRITES = [name for name in ANSWERS if name not in READS]
TWICE = Reply(calls=[("disk__remove", {"path": "/a"})])
SCRIPTS = Labelled(
    **{name: script_of(name) for name in WRITES},
    repeated=[TWICE, TWICE, TWICE, DONE],
    planned=[DONE],
    together=[Reply(calls=[("disk__remove", {"path": "/b"})] * 2), DONE],
    refused_twice=[Reply(calls=[("disk__refused", {"path": "/a"})])] * 2 + [DONE],
    ordered=[Reply(calls=[("disk__remove", {"path": f"/{n}"}) for n in range(4)]), DONE],
    unordered=[Reply(calls=[("tape__remove", {"path": f"/{n}"}) for n in range(4)]), DONE],
)


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("meaning")
    disk = ScriptedServer(folder / "disk.json", [*map(reads, READS), *map(writes, WRITES)], ANSWERS, DECLARED)
    tape = ScriptedServer(folder / "tape.json", [writes("remove")], ANSWERS)
    toolbox = toolbox_of_servers(folder, disk=disk, tape=tape)
    data = json.loads(toolbox.read_text(encoding="utf-8"))
    data["providers"]["tape"]["parallel"] = True
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    short = {"settle_after_seconds": 0.2}
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, toolbox=toolbox, **short) as opened:
        yield opened, disk


async def ran(office, label, **task):
    """Return the Result of a run that writes once and then gives up, and how often each tool was called for it."""
    opened, disk = office
    before = len(disk.calls())
    result, _ = await ended(await opened.start({"text": f"<{label}>", **task}))
    return result, [call["tool"] for call in disk.calls()[before:]]


def state_of(result):
    return [(effect["n"], effect["state"]) for effect in result["effects"]]


@promise("effects:doubtful")
async def test_an_error_that_came_as_a_result_is_doubtful_and_never_undone(office):
    result, called = await ran(office, "create")
    assert (result["outcome"], called) == ("rollback_failed", ["create"])
    assert state_of(result) == [(1, "doubtful")]
    (undone,) = result["undone"]
    assert undone["state"] == "parked"
    assert 'the answer reports an error: {"error": "File exists"}' in undone["detail"]
    assert "check by hand whether it took effect" in undone["detail"]
    assert "AnswerDoubtful" in last_answer(office[0], "create")


@promise("effects:declared")
async def test_a_declared_failure_is_one_and_leaves_nothing_to_undo(office):
    result, called = await ran(office, "create_declared")
    assert (result["outcome"], called, state_of(result)) == ("failed", ["create_declared"], [(1, "failed")])


@promise("effects:declared")
async def test_a_declared_success_is_one_whatever_the_answer_looks_like(office):
    result, called = await ran(office, "accepted")
    assert (result["outcome"], called) == ("rolled_back", ["accepted", "remove"])


@promise("effects:verified")
async def test_a_check_decides_about_an_answer_that_reports_an_error(office):
    result, called = await ran(office, "create_found")
    assert (result["outcome"], called) == ("rolled_back", ["create_found", "found", "remove"])
    result, called = await ran(office, "create_absent")
    assert (result["outcome"], state_of(result)) == ("failed", [(1, "failed")])
    assert set(called) == {"create_absent", "absent"}


@promise("effects:verified-write")
async def test_an_error_of_a_tool_with_a_check_is_verified_before_it_counts(office):
    result, called = await ran(office, "refused_late")
    assert (result["outcome"], called) == ("rolled_back", ["refused_late", "found", "remove"])
    assert "disk was lost" not in last_answer(office[0], "refused_late")
    result, called = await ran(office, "refused_early")
    assert (result["outcome"], state_of(result)) == ("failed", [(1, "failed")])
    assert "the name is taken" in last_answer(office[0], "refused_early")
    result, called = await ran(office, "refused")
    assert (result["outcome"], called, state_of(result)) == ("failed", ["refused"], [(1, "failed")])


@promise("effects:verified-protocol")
async def test_an_internal_error_of_the_protocol_may_have_come_after_the_act(office):
    result, called = await ran(office, "broken")
    assert (result["outcome"], called, state_of(result)) == ("rollback_failed", ["broken"], [(1, "doubtful")])
    result, called = await ran(office, "broken_late")
    assert (result["outcome"], called) == ("rolled_back", ["broken_late", "found", "remove"])


@promise("effects:undo")
async def test_an_undo_whose_answer_reports_an_error_is_never_called_compensated(office):
    result, called = await ran(office, "fine")
    assert (result["outcome"], called) == ("rollback_failed", ["fine", "remove_badly"])
    assert [undone["state"] for undone in result["undone"]] == ["parked"]
    assert "busy" in result["undone"][0]["detail"]
    result, called = await ran(office, "fine_too")
    assert (result["outcome"], called) == ("rollback_failed", ["fine_too", *["remove_quietly"] * 3])
    result, called = await ran(office, "fine_again")
    assert (result["outcome"], called) == ("rolled_back", ["fine_again", "remove_late", "found"])


@promise("effects:repeated")
async def test_a_call_that_repeats_a_write_is_asked_about_and_says_what_came_of_the_first(office):
    opened, disk = office
    before = len(disk.calls("remove"))
    handle = await opened.start("<repeated>")
    (request,) = await pending(handle)
    assert "repeated: the same call was made at " in request["rule"]
    assert "as effect 1: it succeeded" in request["calls"][0]["repeats"]
    assert len(disk.calls("remove")) == before + 1
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    async with asyncio.timeout(150):
        while (again := await handle.query("pending")) == [] or again[0]["id"] == request["id"]:
            await asyncio.sleep(0.1)
    assert "as effect 1" in again[0]["rule"]
    await handle.execute_update("decide", {"request_id": again[0]["id"], "verdict": "approve", "by": "ana"})
    result, _ = await ended(handle)
    assert (result["outcome"], len(disk.calls("remove"))) == ("completed", before + 2)


@promise("effects:repeated-at-once")
async def test_two_equal_calls_of_one_message_are_asked_about(office):
    opened, _ = office
    handle = await opened.start("<together>")
    (request,) = await pending(handle)
    assert [call["index"] for call in request["calls"]] == [1]
    assert "call 0 beside it is the same" in request["calls"][0]["repeats"]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    result, _ = await ended(handle)
    assert result["usage"]["tool_calls"] == 2


@promise("effects:repeated-plan")
async def test_a_step_of_a_plan_that_repeats_a_write_is_asked_about_and_says_so(office):
    opened, disk = office
    before = len(disk.calls("remove"))
    steps = [{"tool": "disk.remove", "arguments": {"path": path}} for path in ("/p", "/q", "/p")]
    handle = await opened.start({"text": "<planned>", "plan": {"title": "twice", "steps": steps}})
    (request,) = await pending(handle)
    assert len(disk.calls("remove")) == before
    assert [(call["index"], call["repeats"]) for call in request["calls"]] == [(2, "step 0 of the plan is the same")]
    assert [part["steps"] for part in request["proposal"]["parts"]] == [[2]]
    shown = [line.text for line in RequestView.of(ApprovalRequest.model_validate(request)).calls[2].lines()]
    assert "REPEATED: step 0 of the plan is the same" in shown
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    result, _ = await ended(handle)
    assert (result["outcome"], len(disk.calls("remove"))) == ("completed", before + 3)


@promise("effects:repeated-failed")
async def test_a_call_that_failed_may_be_made_again(office):
    result, called = await ran(office, "refused_twice")
    assert (result["outcome"], called) == ("completed", ["refused"] * 2)


@promise("effects:repeated-policy")
async def test_a_policy_may_allow_repeats_and_a_task_may_forbid_them(temporal, tmp_path):
    disk = ScriptedServer(tmp_path / "disk.json", [writes("remove")], ANSWERS)
    policy, toolbox = f"{POLICY}repeated: allow\n", toolbox_of_servers(tmp_path, disk=disk)
    scripts = Labelled(repeated=[TWICE, TWICE, DONE], strict=[TWICE, TWICE, DONE])
    async with engine(temporal, tmp_path, scripts, policy=policy, toolbox=toolbox) as opened:
        result, _ = await ended(await opened.start("<repeated>"))
        assert (result["outcome"], len(disk.calls("remove"))) == ("completed", 2)
        handle = await opened.start({"text": "<strict>", "policy": {"repeated": "ask"}})
        (request,) = await pending(handle)
        assert "repeated" in request["rule"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result, _ = await ended(handle)
        assert len(disk.calls("remove")) == 3


SHAPES = json.loads((ROOT / "tests/toolbox/error_answers.json").read_text(encoding="utf-8"))["errors"]


async def all_undone(temporal, folder, answers):
    """Return the Result of a run that makes as many writes as there are shapes and then gives up, and its server."""
    calls = [("disk__make", {"n": n}) for n in range(len(SHAPES))]
    # One message may hold 64 calls.
    many = [Reply(calls=calls[:40]), Reply(calls=calls[40:])]
    undo = {"tool": "unmake", "arguments": {"n": "{{ arguments.n }}"}}
    disk = ScriptedServer(folder / "disk.json", [writes("make"), writes("unmake")], answers, {"make": {"undo": undo}})
    toolbox = toolbox_of_servers(folder, disk=disk)
    async with engine(temporal, folder, Labelled(many=[*many, GIVES_UP]), policy=POLICY, toolbox=toolbox) as opened:
        task = {"text": "<many>", "budget": {"max_tool_calls": 1000}}
        result, _ = await ended(await opened.start(task))
    return result, disk


@promise("effects:doubtful")
@pytest.mark.thorough
async def test_no_undo_runs_for_an_answer_that_reports_an_error_in_any_shape(temporal, tmp_path):
    answers = {"make": [{"data": shape} for shape in SHAPES.values()], "unmake": {"data": {"fine": True}}}
    result, disk = await all_undone(temporal, tmp_path, answers)
    assert (len(disk.calls("make")), disk.calls("unmake")) == (len(SHAPES), [])
    assert {undone["state"] for undone in result["undone"]} == {"parked"}
    assert len(result["undone"]) == len(SHAPES)


@promise("effects:undo")
@pytest.mark.thorough
async def test_no_undo_that_answers_with_an_error_in_any_shape_is_called_compensated(temporal, tmp_path):
    answers = {"make": {"data": {"fine": True}}, "unmake": [{"data": shape} for shape in SHAPES.values()]}
    result, disk = await all_undone(temporal, tmp_path, answers)
    assert len(disk.calls("unmake")) == len(SHAPES)
    assert {undone["state"] for undone in result["undone"]} == {"parked"}
    assert result["outcome"] == "rollback_failed"


@promise("effects:order")
@pytest.mark.parametrize(("label", "most"), [("ordered", 1), ("unordered", 4)])
async def test_writes_of_one_message_keep_their_order_unless_the_provider_is_parallel(office, label, most):
    opened, disk = office
    before = len(disk.calls())
    handle = await opened.start(f"<{label}>")
    await ended(handle)
    scheduled = [event.activity_task_scheduled_event_attributes for event in (await handle.fetch_history()).events]
    (given,) = [json.loads(each.input.payloads[0].data) for each in scheduled if each.activity_type.name == TOGETHER]
    in_order = len(given.get("ordered", ()))
    assert len(given["calls"]) - in_order + min(1, in_order) == most
    if label == "ordered":
        assert [call["arguments"]["path"] for call in disk.calls()[before:]] == [f"/{n}" for n in range(4)]
