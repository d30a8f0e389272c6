"""Workers killed while a long run continues as a new execution; `make soak` kills fifty."""

import asyncio

import pytest

from tests.crash.longrun import killed_amid_switches
from tests.crash.points import SWITCH_POINTS
from tests.requirements import promise
from tests.sizes import sized


@promise("recovery:kills-amid-switches")
@pytest.mark.timeout(400)
async def test_a_worker_killed_amid_a_switch_is_replaced_and_nothing_is_lost_or_doubled(temporal, nursery, tmp_path):
    async with asyncio.TaskGroup() as running:
        for point in SWITCH_POINTS[: sized(3, 1)]:
            place = tmp_path / point.name.replace(":", "_")
            running.create_task(killed_amid_switches(temporal, nursery, place, [point], undone=5))
