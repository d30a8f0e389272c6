"""Tasks that end otherwise than with an answer: cancelled, undone, out of time, forgotten, lost."""

import asyncio

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.errors import StoreUnavailable
from store.effects.effects import Effects
from tests.e2e.labelled import DONE, Labelled
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.sizes import spread
from tests.task_server import open_task_server, until

FAST = {"step_timeout_seconds": 3}
"""How long an answer is waited for, so that a lost one is soon known to be lost."""
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


@pytest_asyncio.fixture(scope="module")
async def slow(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tasks")
    async with open_task_server() as server:
        toolbox = server.toolbox(folder)
        async with engine(temporal, folder, Labelled(done=[DONE]), policy=POLICY, toolbox=toolbox, **FAST) as opened:
            yield opened, server


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Give a task that was told to end a second to do so."""
    monkeypatch.setattr("workflows.calls.task_polls.CANCEL_S", 1.0)


async def ended(handle):
    result = await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return result


def step(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


def states(result):
    return [(effect["state"], effect["send"]) for effect in result["effects"]]


async def begun(server, mark):
    """Wait until the server works on a call, and return that."""
    await until(lambda: any(work.mark == mark and work.asked for work in server.works))
    (work,) = [work for work in server.works if work.mark == mark]
    return work


async def decide(handle, verdict, **more):
    (request,) = await pending(handle)
    payload = {"request_id": request["id"], "verdict": verdict, "by": "ana@example.com", **more}
    await handle.execute_update("decide", payload)
    return request


@promise("tools:server-task-cancelled")
@pytest.mark.parametrize("tool", ["slow.send", "slow.look"])
async def test_a_run_that_is_cancelled_has_its_task_end(slow, tool):
    opened, server = slow
    mark = f"cancelled {tool}"
    handle = await opened.start({"plan": {"steps": [step(tool, mark=mark, lasts_s=600)]}})
    work = await begun(server, mark)
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    assert work.cancelled
    assert server.marks(tool.removeprefix("slow.")).count(mark) == 1


@promise("tools:server-task-cancelled")
async def test_a_cancelled_run_undoes_what_its_task_did_before_it_could_end(slow):
    opened, server = slow
    handle = await opened.start({"plan": {"steps": [step("slow.send", mark="late", lasts_s=600, stubborn=True)]}})
    work = await begun(server, "late")
    work.arguments["lasts_s"] = 0
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    assert ("recall", {"mark": "late"}) in server.calls


@promise("tools:server-task-cancelled")
async def test_an_undo_does_not_wait_for_a_task_but_has_it_end(slow):
    opened, server = slow
    steps = [step("slow.send", mark="first", now=True), step("slow.send", mark="second", lasts_s=600)]
    handle = await opened.start({"plan": {"steps": steps}, "on_failure": "keep"})
    work = await begun(server, "second")
    undone = await handle.execute_update("undo", {"by": "ana@example.com"})
    assert work.cancelled
    # The check says that the second one was sent, as far as this server knows, so that both are undone.
    assert [effect["state"] for effect in undone["undone"]] == ["compensated", "compensated"]
    await ended(handle)


@promise("tools:server-task-ttl")
async def test_a_task_that_its_server_has_forgotten_is_an_unknown_outcome_that_the_check_settles(slow):
    opened, server = slow
    handle = await opened.start({"plan": {"steps": [step("slow.send", mark="ttl", lasts_s=600, ttl_ms=1500)]}})
    result = await ended(handle)
    assert states(result) == [("applied", 1)]
    assert server.marks("send").count("ttl") == 1
    names = [event["name"] for event in result["events"]]
    assert names.index("effect.unknown") < names.index("effect.settled")


@promise("tools:server-task-ttl")
@pytest.mark.parametrize("verdict", spread(["retry", "happened", "did_not_happen"], 1))
async def test_without_a_check_a_person_says_what_became_of_a_forgotten_task(slow, verdict):
    opened, server = slow
    mark = f"asked {verdict}"
    handle = await opened.start(
        {"plan": {"steps": [step("slow.plain", mark=mark, lasts_s=600, ttl_ms=300)]}, "on_failure": "keep"}
    )
    (request,) = await pending(handle)
    assert (request["kind"], request["options"]) == ("outcome", ["happened", "did_not_happen", "retry"])
    assert "Did it happen" in request["question"]
    if verdict == "retry":
        server.works[-1].arguments |= {"lasts_s": 600}
    await decide(handle, verdict)
    if verdict == "retry":
        await until(lambda: server.marks("plain").count(mark) == 2)
        server.works[-1].arguments |= {"lasts_s": 0, "ttl_ms": None}
    result = await ended(handle)
    known = {"happened": ("applied", 1), "did_not_happen": ("not_sent", 1), "retry": ("applied", 2)}
    assert states(result) == [known[verdict]]
    assert server.marks("plain").count(mark) == (2 if verdict == "retry" else 1)


@promise("tools:server-task-lost")
async def test_a_call_whose_answer_is_lost_with_its_task_is_checked_and_never_sent_again(slow):
    opened, server = slow
    server.loses.add("send")
    handle = await opened.start({"plan": {"steps": [step("slow.send", mark="lost")]}})
    result = await ended(handle)
    assert states(result) == [("applied", 1)]
    assert server.marks("send").count("lost") == 1
    assert "effect.settled" in [event["name"] for event in result["events"]]


@promise("tools:server-task-lost")
async def test_a_lost_answer_without_a_check_becomes_a_request(slow):
    opened, server = slow
    server.loses.add("plain")
    handle = await opened.start({"plan": {"steps": [step("slow.plain", mark="lost, too")]}})
    request = await decide(handle, "happened")
    assert request["kind"] == "outcome"
    assert states(await ended(handle)) == [("applied", 1)]
    assert server.marks("plain").count("lost, too") == 1


@promise("tools:server-task-lost")
async def test_a_task_whose_record_is_late_is_followed_as_soon_as_it_is_there(slow, monkeypatch):
    opened, server = slow
    whole, tries = Effects.hand_over, []

    async def hand_over(self, *arguments):
        tries.append(arguments)
        if len(tries) == 1:
            raise StoreUnavailable("store: locked")
        return await whole(self, *arguments)

    monkeypatch.setattr(Effects, "hand_over", hand_over)
    monkeypatch.setattr("activities.tools.effects._patience_s", lambda left_s: 0)
    handle = await opened.start({"plan": {"steps": [step("slow.plain", mark="late record", lasts_s=2)]}})
    result = await ended(handle)
    assert (len(tries), states(result)) == (2, [("applied", 1)])
    assert server.marks("plain").count("late record") == 1


@promise("tools:server-task-limits")
async def test_a_time_that_a_plan_gives_its_step_holds_for_the_whole_task(slow):
    opened, server = slow
    given = {**step("slow.look", mark="bounded", lasts_s=600), "timeout_s": 1}
    result = await ended(await opened.start({"plan": {"steps": [given]}}))
    (work,) = [work for work in server.works if work.mark == "bounded"]
    assert (result["outcome"], work.cancelled) == ("failed", True)


@promise("tools:server-task-limits")
async def test_the_wall_time_of_a_run_ends_its_task(slow):
    opened, server = slow
    task = {"plan": {"steps": [step("slow.look", mark="wall", lasts_s=600)]}, "budget": {"max_wall_seconds": 2}}
    result = await ended(await opened.start(task))
    (work,) = [work for work in server.works if work.mark == "wall"]
    assert work.cancelled
    assert "max_wall_seconds" in str(result["raw_outputs"]), result


@promise("tools:server-task")
async def test_a_task_that_fails_may_have_acted_so_that_the_check_is_asked(slow):
    opened, server = slow
    server.answers["find"] = {"found": False}
    try:
        handle = await opened.start({"plan": {"steps": [step("slow.send", mark="fails", fails="disk full")]}})
        result = await ended(handle)
    finally:
        server.answers.clear()
    assert states(result) == [("failed", 1)]
    assert "disk full" in str(result["raw_outputs"])


@promise("tools:server-task-undo")
async def test_a_compensation_and_a_check_may_take_long_too(slow, temporal, tmp_path):
    _, server = slow
    check = {
        "tool": "find",
        "arguments": {"mark": "{{ arguments.mark }}", "slowly": True},
        "applied_if": "{{ result.found }}",
    }
    toolbox = server.toolbox(tmp_path, send={"verify": check})
    async with engine(temporal, tmp_path, Labelled(done=[DONE]), policy=POLICY, toolbox=toolbox, **FAST) as opened:
        server.loses.add("send")
        steps = [step("slow.send", mark="slow check"), step("slow.look", mark="over", fails="no")]
        result = await ended(await opened.start({"plan": {"steps": steps}}))
    assert result["outcome"] == "rolled_back", result
    assert server.marks("find") == ["slow check"]
    assert server.marks("recall").count("slow check") == 1
    assert states(result)[0] == ("compensated", 1)


@promise("tools:server-task-hostile")
async def test_a_server_that_changes_what_a_task_came_to_changes_nothing(slow):
    opened, server = slow
    handle = await opened.start({"plan": {"steps": [step("slow.send", mark="fickle", lasts_s=1)]}})
    result = await ended(handle)
    (work,) = [work for work in server.works if work.mark == "fickle"]
    asked = work.asked
    server.says = [{"status": "working"}]
    # Nobody asks about it once an outcome is recorded.
    await asyncio.sleep(0)
    assert (states(result), work.asked) == ([("applied", 1)], asked)
    server.says = []
