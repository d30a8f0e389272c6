"""A run whose fields are filled to their bounds goes on and ends, whatever the signs; one byte more is refused."""

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError, WorkflowUpdateFailedError

from backstay.bounds import MESSAGE, TASK, size_of
from tests.backstay.test_bounds_fields import filled
from tests.e2e.scripted_server import toolbox_of_servers
from tests.engine import assert_no_task_failure, ended, engine, pending
from tests.requirements import promise
from tests.sizes import spread
from tests.turns import Turns, calls

ASK = calls(("ask_person", {"question": "Which one?"}))
SIGNS = {"quotes": '"', "control signs": "\x01", "Chinese": "中", "JSON": '{"a": ["'}
FILLED = spread(["quotes", "Chinese", "control signs", "JSON"], 2)
FREE = {"max_llm_cost_usd": None}


@pytest_asyncio.fixture(scope="module")
async def turns():
    return Turns()


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, turns):
    folder = tmp_path_factory.mktemp("filled")
    async with engine(temporal, folder, turns, toolbox=toolbox_of_servers(folder), context_tokens=1_000_000) as made:
        yield made


def full_task(turns, sign, *replies):
    """Return a task of exactly as many bytes as are allowed, whose text and names are full."""
    text = turns.text(*replies)
    task = {
        "text": f"{text} {filled(sign, 300_000, 99_000)}",
        "session_id": filled(sign, 1_200, 1_000),
        "user_id": filled("中" if sign == "\x01" else sign, 1_200, 200),
        "budget": {**FREE, "quotas": {filled(sign, 32_700, 32_700): 1}},
        "policy": {"ask": [{"tool": "a.b", "approvers": [filled("中", 600, 200)]}]},
        "metadata": {},
    }
    left = TASK - size_of(task) - len('"a":')
    return {**task, "metadata": {"a": filled(sign, left, 1_000_000)}}


@promise("runs:bounds-filled")
@pytest.mark.thorough
@pytest.mark.parametrize("sign", [SIGNS[name] for name in FILLED], ids=FILLED)
async def test_a_run_with_full_fields_takes_full_words_and_ends(opened, turns, sign):
    task = full_task(turns, sign, ASK, ASK)
    handle = await opened.start(task)
    await pending(handle)
    words = {"by": "ana", "reason": filled(sign, 16_000, 4_000)}
    message = filled(sign, MESSAGE, 1_000_000)
    for update, said in (("pause", words), ("resume", words), ("message", {"by": "ana", "text": message})):
        longer = {name: text if name == "by" else f"{text}x" for name, text in said.items()}
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update(update, longer)
        assert f"{update}." in refused.value.cause.message
        await handle.execute_update(update, said)
    for _ in range(2):
        (request,) = await pending(handle)
        decision = {"request_id": request["id"], "verdict": "answer", "by": "ana"}
        decision |= {"answer": {"a": filled(sign, 65_530, 1_000_000)}, "comment": filled(sign, 16_000, 4_000)}
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("decide", decision | {"answer": {"a": filled(sign, 65_531, 1_000_000)}})
        assert refused.value.cause.message.startswith("answer: 65,537 bytes")
        await handle.execute_update("decide", decision)
    result = await ended(handle)

    assert result["outcome"] == "completed", result["error"]
    assert_no_task_failure(await handle.fetch_history())


@promise("runs:bounds-filled")
@pytest.mark.parametrize("sign", SIGNS.values(), ids=SIGNS)
async def test_a_task_of_one_byte_more_is_refused(opened, turns, sign):
    task = full_task(turns, sign)
    handle = await opened.start({**task, "metadata": {"a": f"{task['metadata']['a']}x"}})
    with pytest.raises(WorkflowFailureError) as refused:
        await handle.result()

    assert "Task: larger than 1,000,000 bytes of JSON" in refused.value.cause.message
    assert_no_task_failure(await handle.fetch_history())
