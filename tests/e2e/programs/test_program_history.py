"""What a program's calls cost in history: the same for each call, however many there were before."""

import asyncio

import pytest

from backstay.testing import Reply
from tests.engine import assert_no_task_failure
from tests.requirements import promise
from tests.sizes import sized

SEQUENTIAL = "for n in range({calls}):\n    await mail.list_customers(offset=n % 5, limit=2)\nreturn 'done'"
TOGETHER = "import asyncio\nawait asyncio.gather(*(mail.list_customers(offset=n % 5, limit=2) for n in range({calls})))"


async def history_of(open_engine, sandbox, folder, source, calls):
    def rules(talk):
        if not talk.calls("run_program"):
            return Reply(calls=[("run_program", {"code": source.format(calls=calls)})])
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": talk.answers()[-1]}})])

    async with open_engine(rules, sandbox=sandbox, folder=folder, cached=10) as engine:
        handle = await engine.start({"text": "read on", "budget": {"max_tool_calls": 500}})
        result = await asyncio.wait_for(handle.result(), 150)
        history = await handle.fetch_history()
    assert result["usage"]["tool_calls"] == calls, result
    assert_no_task_failure(history)
    first = next(n for n, event in enumerate(history.events) if _activity(event) == "resume_program")
    last = next(n for n, event in enumerate(history.events) if _activity(event) == "digest")
    events = history.events[first:last]
    return len(events) / calls, sum(event.ByteSize() for event in events) / calls


def _activity(event):
    return event.activity_task_scheduled_event_attributes.activity_type.name


@promise("programs:history")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_history_per_call_is_small_and_does_not_grow_with_the_rounds(open_engine, sandbox, tmp_path):
    few_events, few_bytes = await history_of(open_engine, sandbox, tmp_path / "few", SEQUENTIAL, 10)
    many_events, many_bytes = await history_of(open_engine, sandbox, tmp_path / "many", SEQUENTIAL, sized(100, 40))

    assert many_events <= 13
    assert few_events <= 14
    assert many_bytes <= 3500
    assert many_bytes <= 1.1 * few_bytes


@promise("programs:history")
@pytest.mark.timeout(400)
async def test_calls_gathered_share_their_rounds(open_engine, sandbox, tmp_path):
    events, size = await history_of(open_engine, sandbox, tmp_path / "gathered", TOGETHER, sized(100, 60))

    assert events <= 7
    assert size <= 3500
