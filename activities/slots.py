"""How many activities a worker takes from its queue at once."""

import asyncio
from collections.abc import Awaitable, Callable

from temporalio.worker import (
    CustomSlotSupplier,
    FixedSizeSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
    WorkerTuner,
)

FEWEST = 8
"""Temporal's five pollers hold a slot each while they wait for a task."""
MOST = 100
PAUSE_S = 0.01
PUNCTUAL_S = 0.01
"""An event loop that resumes a pause by this much too late has more to do than it can."""
PATIENCE = 25
"""After as many late pauses a slot is given nevertheless: what delays the loop may be another program."""
WORKFLOW_TASKS = 100
NO_TASKS = FixedSizeSlotSupplier(1)
"""backstay has neither local activities nor Nexus operations; Temporal wants a number greater than zero."""


async def lateness() -> float:
    """Pause, and return by how many seconds too late the event loop has resumed."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(PAUSE_S)
    return loop.time() - began - PAUSE_S


class ActivitySlots(CustomSlotSupplier):
    """Take few activities while the event loop is late, and many while it only waits for models and tools.

    Temporal can no longer give a task that a worker has taken to another worker, nor put it behind one that is more
    urgent or another user's. Its own supplier by resources looks at all processors of the machine, of which a
    worker can keep only one busy.
    """

    def __init__(self, *, late: Callable[[], Awaitable[float]] = lateness) -> None:
        self._late = late
        self._turn = asyncio.Lock()
        # A set, since slots are released in threads of Temporal, and its changes are atomic.
        self._taken: set[SlotPermit] = set()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        """Wait until another activity may be taken; return its permit."""
        async with self._turn:
            late = 0
            while len(self._taken) >= FEWEST:
                late = 0 if await self._late() < PUNCTUAL_S else late + 1
                if len(self._taken) < MOST and (not late or late >= PATIENCE):
                    break
            return self._permit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        """Return a permit for an activity that Temporal sends with the answer to a workflow task, or None."""
        return self._permit() if len(self._taken) < FEWEST else None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Do nothing: a slot counts from the moment when it is reserved."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Count the slot no longer."""
        self._taken.discard(ctx.permit)

    def _permit(self) -> SlotPermit:
        permit = SlotPermit()
        self._taken.add(permit)
        return permit


def open_tuner() -> WorkerTuner:
    """Return what tells a worker how many tasks of each kind it may take."""
    return WorkerTuner.create_composite(
        workflow_supplier=FixedSizeSlotSupplier(WORKFLOW_TASKS),
        activity_supplier=ActivitySlots(),
        local_activity_supplier=NO_TASKS,
        nexus_supplier=NO_TASKS,
    )
