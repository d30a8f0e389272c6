"""What a run hands to the server is measured: what the server would not carry ends as a refusal that people see."""

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError

from tests.e2e.scripted_server import toolbox_of_servers
from tests.engine import assert_no_task_failure, ended, engine, pending
from tests.requirements import promise
from tests.turns import Turns, calls, finished
from workflows.dispatch import activity_calls

ASK = calls(("ask_person", {"question": "Which one?"}))
MOST = 12_000
"""A bound that a short test can reach."""


@pytest_asyncio.fixture(scope="module")
async def turns():
    return Turns()


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, turns):
    folder = tmp_path_factory.mktemp("last-resort")
    # A replay would not know the bounds of these tests.
    async with engine(temporal, folder, turns, toolbox=toolbox_of_servers(folder), replayed=False) as made:
        yield made


async def answer(handle, text="this"):
    (request,) = await pending(handle)
    said = {"request_id": request["id"], "verdict": "answer", "answer": text, "by": "ana"}
    await handle.execute_update("decide", said)


@promise("runs:last-resort")
async def test_a_result_that_the_server_would_not_carry_is_a_failure_that_says_why(opened, turns, monkeypatch):
    task = turns.task(ASK, finished("all of it", report="x" * 14_000))
    handle = await opened.start(task)
    await pending(handle)
    monkeypatch.setattr(activity_calls, "PAYLOAD", MOST)
    await answer(handle)
    result = await ended(handle)

    assert (result["outcome"], result["success"], result["error"]["type"]) == ("failed", False, "OutputInvalid")
    assert "raw_outputs: the result has" in result["error"]["message"]
    assert (result["final_summary"], result["raw_outputs"], bool(result["events_ref"])) == ("all of it", {}, True)
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:last-resort")
@pytest.mark.thorough
async def test_events_and_answers_that_the_server_would_not_carry_are_left_out_or_refused(opened, turns, monkeypatch):
    handle = await opened.start(turns.task(ASK))
    await pending(handle)
    for _ in range(20):
        await handle.execute_update("pause", {"by": "ana", "reason": "wait " * 100})
        await handle.execute_update("resume", {"by": "ana"})
    monkeypatch.setattr(activity_calls, "PAYLOAD", MOST)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("read", {"after": 0})
    await answer(handle)
    result = await ended(handle)

    assert "read: done, but its answer has" in refused.value.cause.message
    assert (result["outcome"], result["events"], bool(result["events_ref"])) == ("completed", [], True)
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:last-resort")
async def test_an_activity_that_the_server_would_not_carry_ends_a_run_that_says_so_and_is_closed(
    opened, turns, monkeypatch
):
    handle = await opened.start(turns.task(ASK))
    await pending(handle)
    monkeypatch.setattr(activity_calls, "PAYLOAD", 100_000)
    # The answer is a text within a text for the model: each of its signs takes four bytes.
    await answer(handle, '"' * 30_000)
    result = await ended(handle)

    assert (result["outcome"], result["error"]["type"]) == ("failed", "ArgumentsInvalid")
    assert "ask_model: 120," in result["error"]["message"]
    assert "give less, or put it in a file" in result["error"]["message"]
    assert result["events_ref"]
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:words-clipped")
async def test_a_long_reason_is_kept_in_short_in_the_events_of_a_run(opened, turns):
    handle = await opened.start(turns.task(ASK))
    await pending(handle)
    for update in ("pause", "resume"):
        await handle.execute_update(update, {"by": "ana", "reason": "中" * 3_000})
    await answer(handle)
    events = {event["name"]: event for event in (await ended(handle))["events"]}

    assert len(events["run.paused"]["text"]) == len(events["run.resumed"]["text"]) == 500
    assert len(events["run.resumed"]["data"]["was"]) == 500
