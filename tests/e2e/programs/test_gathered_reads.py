"""Reads that a program awaits together, or that stand beside each other in a plan, travel together."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from backstay.testing import Reply
from tests.e2e.labelled import DONE
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import ended, pending, update
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\nundo: {default: allow}\n"
TOGETHER = "call_together"
SHAPE = {"type": "object", "properties": {"n": {"type": "integer"}}}


def asked(source):
    """Return rules that run one program and finish with what it returned."""

    def rules(conversation):
        runs = conversation.calls("run_program")
        if runs:
            return Reply(
                calls=[("finish", {"summary": "done", "outputs": {"answer": runs[0].answer}, "success": True})]
            )
        return Reply(calls=[("run_program", {"code": f"import asyncio\n{source}"})])

    return rules


@pytest.fixture
def opened(open_engine, sandbox, tmp_path):
    """Open an engine with a desk that answers at once and a shelf that waits for files."""

    @asynccontextmanager
    async def open_both(rules, *, serial=False, **options):
        tools = [reads("look", SHAPE), reads("count", SHAPE), reads("fail", SHAPE), writes("post", SHAPE)]
        answers = {"look": {"data": "seen"}, "count": [{"data": {"n": n}} for n in range(100)]}
        answers |= {"fail": {"error": "no such thing"}, "post": {"data": {"id": "p1"}}}
        desk = ScriptedServer(tmp_path / "desk.json", tools, answers)
        shelf = ScriptedServer(
            tmp_path / "shelf.json", [reads("fetch", SHAPE)], {"fetch": {"data": "late", "until": "go", "notify": True}}
        )
        toolbox = toolbox_of_servers(tmp_path, desk=desk, shelf=shelf)
        data = json.loads(toolbox.read_text(encoding="utf-8"))
        data["providers"]["desk"]["serial"] = serial
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        async with open_engine(rules, sandbox=sandbox, toolbox=toolbox, policy=POLICY, **options) as engine:
            engine.desk, engine.shelf, engine.folder = desk, shelf, tmp_path
            yield engine

    return open_both


async def made(handle):
    """Return the calls of each activity that makes calls, in order."""
    events = (await handle.fetch_history()).events
    scheduled = [event.activity_task_scheduled_event_attributes for event in events if event.event_type == 10]
    found = []
    for activity in scheduled:
        given = json.loads(activity.input.payloads[0].data)
        if activity.activity_type.name in {TOGETHER, "call_tool"}:
            parts = given.get("calls", [given])
            found.append((activity.activity_type.name, [part["tool"] for part in parts]))
    return found


async def arrived(server, tool, count=1):
    async with asyncio.timeout(150):
        while len(server.calls(tool)) < count:
            await asyncio.sleep(0.02)


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_gathered_reads_are_few_activities_and_each_of_them_is_charged_told_and_answered_in_order(opened):
    source = "found = await asyncio.gather(*(desk.count(n=n) for n in range(40)))\nreturn [page['n'] for page in found]"
    async with opened(asked(source)) as engine:
        handle = await engine.start({"text": "count", "budget": {"max_tool_calls": 100}})
        result = await ended(handle)

        assert await made(handle) == [(TOGETHER, ["desk.count"] * 32), (TOGETHER, ["desk.count"] * 8)]
        numbers = {call["arguments"]["n"]: place for place, call in enumerate(engine.desk.calls("count"))}
        assert result["raw_outputs"]["answer"]["data"]["result"] == [numbers[n] for n in range(40)]
        assert result["usage"]["tool_calls"] == 40
        events = (await handle.query("timeline"))["events"]
        told = [event["data"] for event in events if event["name"] == "action.called"]
        requests = [data["arguments"]["n"] for data in told]
        assert [n for n in requests if n < 32] == list(range(32))
        assert [n for n in requests if n >= 32] == list(range(32, 40))
        assert result["effects"] == []


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_a_read_that_fails_is_its_own_answer_and_hides_no_other(opened):
    source = (
        "calls = [desk.look(), desk.fail(), desk.look(n=2)]\n"
        "found = await asyncio.gather(*calls, return_exceptions=True)\n"
        "return [str(answer) for answer in found]"
    )
    async with opened(asked(source)) as engine:
        handle = await engine.start({"text": "look"})
        first, failed, last = (await ended(handle))["raw_outputs"]["answer"]["data"]["result"]

        assert (first, last) == ("seen", "seen")
        assert "no such thing" in failed
        assert await made(handle) == [(TOGETHER, ["desk.look", "desk.fail", "desk.look"])]


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_a_read_whose_server_dies_is_made_again_by_itself(opened):
    source = "found = await asyncio.gather(desk.look(), desk.look(n=2), desk.count(n=0))\nreturn [*map(str, found)]"
    async with opened(asked(source)) as engine:
        engine.desk.answers["count"] = [{"die": True}, {"data": {"n": 7}}]
        engine.desk.write()
        handle = await engine.start({"text": "look"})
        result = await ended(handle)

        assert result["raw_outputs"]["answer"]["data"]["result"][-1] == "{'n': 7}"
        first, *again = await made(handle)
        assert first == (TOGETHER, ["desk.look", "desk.look", "desk.count"])
        assert ("call_tool", ["desk.count"]) in again
        assert {name for name, _ in again} == {"call_tool"}


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_writes_and_reads_of_one_batch_keep_the_ways_that_they_have(opened):
    source = "await asyncio.gather(desk.look(), desk.post(n=1), desk.look(n=2), desk.post(n=2))"
    async with opened(asked(source)) as engine:
        handle = await engine.start({"text": "look and post"})
        (request,) = await pending(handle)
        assert [call["tool"] for call in request["calls"]] == ["desk.post", "desk.post"]
        await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await ended(handle)

        assert result["outcome"] == "completed"
        assert sorted(await made(handle)) == [
            (TOGETHER, ["desk.look", "desk.look"]),
            ("call_tool", ["desk.post"]),
            ("call_tool", ["desk.post"]),
        ]
        assert [call["arguments"]["n"] for call in engine.desk.calls("post")] == [1, 2]


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_reads_of_a_server_that_takes_one_call_at_a_time_are_made_one_by_one(opened):
    source = "await asyncio.gather(*(desk.look(n=n) for n in range(3)))"
    async with opened(asked(source), serial=True) as engine:
        handle = await engine.start({"text": "look"})
        await ended(handle)

        assert await made(handle) == [("call_tool", ["desk.look"])] * 3


@promise("runs:reads-together")
async def test_a_limit_of_calls_counts_each_read(opened):
    source = (
        "found = await asyncio.gather(*(desk.look(n=n) for n in range(4)), return_exceptions=True)\nreturn len(found)"
    )
    async with opened(asked(source)) as engine:
        task = {"text": "look", "budget": {"max_tool_calls": 3, "on_exhausted": "fail"}}
        result = await ended(await engine.start(task))

        assert result["outcome"] == "budget_exceeded"
        assert engine.desk.calls() == []


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_a_read_whose_tool_changed_meanwhile_is_asked_about_alone(opened):
    source = (
        "await shelf.fetch()\n"
        "found = await asyncio.gather(desk.look(), desk.count(n=0), shelf.fetch(n=2))\n"
        "return [*map(str, found)]"
    )
    async with opened(asked(source)) as engine:
        handle = await engine.start({"text": "look"})
        await arrived(engine.shelf, "fetch")
        engine.shelf.tools[0]["description"] = "Fetch something else."
        engine.shelf.write()
        (engine.folder / "go").touch()
        (request,) = await pending(handle)
        before = await made(handle)
        await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
        result = await ended(handle)

        assert [call["tool"] for call in request["calls"]] == ["shelf.fetch"]
        assert "changed" in request["rule"]
        assert result["raw_outputs"]["answer"]["data"]["result"][2] == "late"
        assert before[1] == (TOGETHER, ["desk.look", "desk.count", "shelf.fetch"])
        assert (await made(handle))[2:] == [("call_tool", ["shelf.fetch"])]
        assert len(engine.desk.calls()) == 2


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_a_cancellation_ends_reads_that_are_under_way_and_tells_of_those_that_were_answered(opened):
    source = "await asyncio.gather(desk.look(), desk.look(n=2), shelf.fetch())"
    async with opened(asked(source), request_deadline_seconds=60) as engine:
        handle = await engine.start({"text": "look"})
        await arrived(engine.shelf, "fetch")
        await arrived(engine.desk, "look", 2)
        await handle.cancel()
        async with asyncio.timeout(30):
            while (await handle.describe()).close_time is None:
                await asyncio.sleep(0.05)
        result = await handle.query("result")

        assert result["outcome"] == "cancelled"
        called = [event["data"]["tool"] for event in result["events"] if event["name"] == "action.called"]
        assert called == ["desk.look"] * 2
        (engine.folder / "go").touch()


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_steps_of_a_plan_that_read_beside_each_other_travel_together_and_are_told_as_steps_of_their_own(opened):
    steps = [{"tool": "desk.look", "arguments": {"n": n}} for n in range(3)]
    steps.append({"tool": "desk.fail", "arguments": {}, "continue_on_failure": True})
    async with opened([DONE]) as engine:
        handle = await engine.start({"plan": {"steps": steps, "continue_on_failure": True}})
        result = await ended(handle)

        assert await made(handle) == [(TOGETHER, ["desk.look"] * 3 + ["desk.fail"])]
        told = [(event["name"], event["step_index"]) for event in result["events"]]
        assert [(name, step) for name, step in told if name.startswith("action.")] == [
            ("action.called", 1),
            ("action.called", 2),
            ("action.called", 3),
            ("action.failed", 4),
        ]
        plan = await handle.query("plan")
        assert [step["status"] for step in plan["steps"]] == ["success"] * 3 + ["failed"]
        assert result["usage"]["tool_calls"] == 4
