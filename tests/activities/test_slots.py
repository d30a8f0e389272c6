"""How many activities a worker takes at once: few while its event loop is late, many while it only waits."""

import asyncio
from types import SimpleNamespace

from activities.slots import FEWEST, MOST, PATIENCE, ActivitySlots
from tests.requirements import promise


class Slots:
    """Ask a worker's slots for permits, with a loop that is as late as the test says."""

    def __init__(self, late_s):
        self.late_s = late_s
        self.pauses = 0
        self.own = ActivitySlots(late=self.pause)

    async def pause(self):
        self.pauses += 1
        await asyncio.sleep(0)
        return self.late_s

    async def take(self, count):
        return [await self.own.reserve_slot(SimpleNamespace()) for _ in range(count)]

    def release(self, permit):
        self.own.release_slot(SimpleNamespace(permit=permit))


@promise("workers:slots")
async def test_a_worker_that_only_waits_takes_many_activities_and_no_more_than_the_most():
    slots = Slots(late_s=0)
    held = await slots.take(MOST)
    assert slots.pauses == MOST - FEWEST
    more = asyncio.create_task(slots.take(1))
    while slots.pauses < MOST:
        await asyncio.sleep(0)
    assert not more.done()
    slots.release(held[0])
    assert len(await more) == 1


@promise("workers:slots")
async def test_a_worker_whose_loop_is_late_takes_another_activity_only_as_one_ends():
    slots = Slots(late_s=1)
    held = await slots.take(FEWEST)
    assert slots.pauses == 0
    more = asyncio.create_task(slots.take(1))
    while slots.pauses < PATIENCE // 2:
        await asyncio.sleep(0)
    assert not more.done()
    slots.release(held[0])
    await more
    assert slots.pauses < PATIENCE


@promise("workers:slots")
async def test_activities_that_never_end_do_not_keep_a_late_worker_from_taking_others():
    slots = Slots(late_s=1)
    await slots.take(FEWEST + 2)
    assert slots.pauses == 2 * PATIENCE
    assert slots.own.try_reserve_slot(SimpleNamespace()) is None
