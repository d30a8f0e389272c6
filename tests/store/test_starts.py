"""Starts of schedules and triggers in the store: reserved once, within the day, on both databases."""

import asyncio

import pytest

from backstay.task.standing import StandingTask
from store.opening import open_store
from store.standing.tasks import StartState
from tests.requirements import promise

TASK = StandingTask.admit(
    {
        "kind": "schedule",
        "name": "news",
        "by": "ana",
        "task": {"text": "t", "budget": {"max_llm_cost_usd": 0.1}},
        "times": {"every": 60},
        "per_day": {"max_llm_cost_usd": 1},
    }
)


@pytest.fixture
def stores(database_url, tmp_path):
    def opened():
        return open_store(database_url=database_url, home=tmp_path)

    return opened


@promise("schedules:day-budget-databases")
async def test_two_workers_that_reserve_at_once_never_exceed_the_day(stores):
    async with stores() as left, stores() as right:
        await left.standing.add(TASK)
        # Each start is reserved for twice, as by a worker that was thought dead.
        starts = [f"start-{n}" for n in range(20)]
        twice = zip([left, right] * 20, starts + starts[::-1], strict=True)
        asked = [store.starts.reserve(start, TASK, start) for store, start in twice]
        made = await asyncio.gather(*asked)
        reserved = {start.id for start in made if start.state is StartState.RESERVED}
        assert len(reserved) == 10
        assert await left.starts.counted(TASK) == (1_000_000, 10)
        await right.starts.settle(next(iter(reserved)), "completed", 40_000)
        await left.starts.settle(next(iter(reserved)), "completed", 90_000)
        assert await left.starts.counted(TASK) == (940_000, 10)
