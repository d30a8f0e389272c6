"""A call that its server answers by a task is followed until it ends, and then counts as any call."""

import asyncio
import json
import sqlite3

import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.task_server import open_task_server, until

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
BOTH = [("slow__look", {"mark": "one"}), ("slow__look", {"mark": "two"}), ("slow__send", {"mark": "three"})]
SCRIPTS = Labelled(
    loop=[Reply(calls=[("slow__send", {"mark": "loop"})]), DONE],
    beside=[Reply(calls=BOTH), DONE],
    ordered=[
        Reply(calls=[("slow__send", {"mark": "before", "lasts_s": 0.5}), ("slow__send", {"mark": "after"})]),
        DONE,
    ],
    at_once=[Reply(calls=[("slow__send", {"mark": "quick", "now": True})]), DONE],
)


@pytest_asyncio.fixture(scope="module")
async def slow(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    async with open_task_server() as server:
        toolbox = server.toolbox(folder)
        async with engine(temporal, folder, SCRIPTS, policy=POLICY, toolbox=toolbox) as opened:
            yield opened, server


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


def steps(*calls, **more):
    """Return a task whose plan makes calls one after the other."""
    return {"plan": {"steps": [{"tool": tool, "arguments": arguments} for tool, arguments in calls]}, **more}


def states(result):
    return [(effect["state"], effect["send"]) for effect in result["effects"]]


def kept_events(opened, handle):
    """Return the names of all events of a run in the store, also of those without a place in the timeline."""
    with sqlite3.connect(f"file:{opened.settings.home}/backstay.db?mode=ro", uri=True, timeout=10) as database:
        rows = database.execute("SELECT body FROM events WHERE run LIKE ?", (f"{handle.id}/%",)).fetchall()
    return [json.loads(body)["name"] for (body,) in rows]


async def activities(handle):
    history = await handle.fetch_history()
    scheduled = [event.activity_task_scheduled_event_attributes for event in history.events]
    return [each.activity_type.name for each in scheduled if each.activity_type.name]


@promise("tools:server-task")
async def test_a_call_of_the_loop_is_sent_once_and_its_task_is_followed_to_the_answer(slow):
    opened, server = slow
    handle = await opened.start({"text": "<loop>"})
    result = await ended(handle)
    assert result["outcome"] == "completed", result
    assert server.marks("send") == ["loop"]
    assert states(result) == [("applied", 1)]
    assert result["effects"][0]["undo"] == 'slow.recall(mark="loop")'
    # The activity that would have asked the model returned with the task, and the model was asked once it had ended.
    assert SCRIPTS.asked["loop"] == 2
    assert (await activities(handle))[-4:] == ["act_and_ask", "follow_task", "ask_model", "close_run"]
    told = [event["text"] for event in result["events"] if event["name"] == "action.working"]
    assert told == ["slow.send: 0 % of loop"]
    assert '"done":true' in SCRIPTS.heard["loop"].replace("\\", "").replace(" ", "")
    # Nor has an activity left in the store that the call had failed.
    assert "action.failed" not in kept_events(opened, handle)


@promise("tools:server-task-sealed")
async def test_the_id_of_a_task_is_nowhere_where_people_or_models_look(slow, capfd):
    opened, server = slow
    handle = await opened.start(steps(("slow.send", {"mark": "sealed"}), ("slow.look", {"mark": "sealed, too"})))
    result = await ended(handle)
    ids = [work.id for work in server.works if work.mark.startswith("sealed")]
    assert len(ids) == 2
    history = await handle.fetch_history()
    seen = history.to_json() + json.dumps(result) + "".join(capfd.readouterr())
    # The server says it in its answers, and there it is a secret of the run.
    assert [name for name in ids if name in seen] == []
    assert "/task:" in json.dumps(result)


@promise("tools:server-task")
async def test_calls_beside_each_other_are_each_followed_and_writes_wait_for_none(slow):
    opened, server = slow
    result = await ended(await opened.start({"text": "<beside>"}))
    assert result["outcome"] == "completed", result
    assert (sorted(server.marks("look")[-2:]), server.marks("send")[-1]) == (["one", "two"], "three")
    called = [event["data"]["tool"] for event in result["events"] if event["name"] == "action.called"]
    assert sorted(called) == ["slow.look", "slow.look", "slow.send"]


@promise("tools:server-task")
async def test_a_write_that_was_decided_after_another_one_waits_for_its_task(slow):
    opened, server = slow
    result = await ended(await opened.start({"text": "<ordered>"}))
    assert states(result) == [("applied", 1)] * 2
    before, after = (work for work in server.works if work.mark in {"before", "after"})
    assert (before.mark, after.began >= before.began + 0.5) == ("before", True)


@promise("tools:server-task")
async def test_a_plans_step_waits_for_the_task_before_it_and_takes_its_answer(slow):
    opened, server = slow
    chosen = {"tool": "slow.look", "arguments": {"mark": "${steps.0.result.mark} again"}}
    first = {"tool": "slow.send", "arguments": {"mark": "plan", "lasts_s": 0.5}}
    result = await ended(await opened.start({"plan": {"steps": [first, chosen]}}))
    assert result["outcome"] == "completed", result
    assert server.works[-1].mark == "plan again"
    (sent,) = [work for work in server.works if work.mark == "plan"]
    assert server.works[-1].began >= sent.began + 0.5
    asked = [event["data"]["arguments"] for event in result["events"] if event["name"] == "action.called"]
    assert asked[1] == {"mark": "plan again"}


@promise("tools:server-task-at-once")
async def test_a_call_that_is_answered_at_once_orders_nothing_more(slow):
    opened, server = slow
    handle = await opened.start({"text": "<at_once>"})
    result = await ended(handle)
    assert states(result) == [("applied", 1)]
    assert server.calls[-1] == ("send", {"mark": "quick", "now": True})
    assert "follow_task" not in await activities(handle)


@promise("tools:server-task-asks")
async def test_a_question_of_a_task_waits_for_a_person_and_the_task_gets_the_answer(slow):
    opened, server = slow
    handle = await opened.start(steps(("slow.send", {"mark": "asks", "asks": True})))
    (request,) = await pending(handle)
    assert (request["kind"], request["options"]) == ("elicitation", ["answer", "reject"])
    assert "slow.send asks: Really?" in request["question"]
    answer = {"request_id": request["id"], "verdict": "answer", "by": "ana", "answer": {"yes": True}}
    await handle.execute_update("decide", answer)
    result = await ended(handle)
    (work,) = [work for work in server.works if work.mark == "asks"]
    assert work.answers == [{"sure": {"action": "accept", "content": {"yes": True}}}]
    assert states(result) == [("applied", 1)]


@promise("tools:server-task-asks")
async def test_a_person_who_declines_lets_the_server_do_without(slow):
    opened, server = slow
    handle = await opened.start(steps(("slow.look", {"mark": "declined", "asks": True})))
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(handle)
    (work,) = [work for work in server.works if work.mark == "declined"]
    assert work.answers == [{"sure": {"action": "decline"}}]


@promise("tools:server-task-asks")
async def test_a_question_is_withdrawn_when_its_task_has_ended_without_an_answer(slow, monkeypatch):
    opened, server = slow
    monkeypatch.setattr("workflows.calls.task_polls.ASKED_S", 0.2)
    handle = await opened.start(steps(("slow.send", {"mark": "alone", "asks": True})))
    await pending(handle)
    (work,) = [work for work in server.works if work.mark == "alone"]
    # Somebody answers it at the server itself.
    work.answers.append({})
    result = await ended(handle)
    assert states(result) == [("applied", 1)]
    assert "approval.withdrawn" in [event["name"] for event in result["events"]]


@promise("tools:server-task")
async def test_a_server_that_cannot_be_asked_for_a_while_is_asked_again(slow):
    opened, server = slow
    server.says = [{"code": -32603, "message": "busy"}] * 2
    handle = await opened.start(steps(("slow.send", {"mark": "patient"})))
    result = await ended(handle)
    assert states(result) == [("applied", 1)]
    assert any("cannot be asked now" in event["text"] for event in result["events"])


@promise("tools:server-task")
async def test_people_see_how_far_a_task_is_while_it_lasts(slow):
    opened, server = slow
    handle = await opened.start(steps(("slow.send", {"mark": "seen", "lasts_s": 60})))
    await until(lambda: any(work.mark == "seen" for work in server.works))
    async with asyncio.timeout(30):
        while "Under way: slow.send: " not in (await handle.query("__temporal_workflow_metadata")).current_details:
            await asyncio.sleep(0.1)
    (work,) = [work for work in server.works if work.mark == "seen"]
    work.arguments["lasts_s"] = 0
    await ended(handle)
