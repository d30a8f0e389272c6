"""The start of a run by a schedule: one that is reserved for, started and settled, and one that is cancelled."""

import asyncio

import opening
from backstay.client.sending import signed
from backstay.task.standing import StandingTask
from tests.engine import Engine
from tests.replay.steps import KEY, Handle, Play, decided

ASKED = {
    "kind": "schedule",
    "name": "golden",
    "by": "ana",
    "task": {"text": "approve"},
    "times": {"every": 3600},
    "per_day": {"max_llm_cost_usd": 1},
}


async def _started(engine: Engine, name: str) -> tuple[Handle, Handle]:
    """Start a run by a schedule; return the start and the run, once that waits for people."""
    payload = StandingTask.admit(ASKED).model_dump(mode="json", exclude_unset=True)
    binding = StandingTask.admit(ASKED).binding(engine.client.namespace)
    async with opening.open_store(engine.settings) as store:
        await store.standing.add(StandingTask.admit(signed(KEY.encode(), binding, payload)))
    queue = engine.settings.task_queue
    ask = {"kind": "schedule", "name": "golden"}
    start: Handle = await engine.client.start_workflow("StartRun", ask, id=f"start-{name}", task_queue=queue)
    return start, engine.client.get_workflow_handle(name)


async def started(engine: Engine) -> Handle:
    start, run = await _started(engine, "golden-started")
    await _asks(start)
    await decided(run, "approve")
    return start


async def start_cancelled(engine: Engine) -> Handle:
    start, _ = await _started(engine, "golden-start-cancelled")
    await _asks(start)
    await start.cancel()
    return start


async def _asks(start: Handle) -> None:
    """Wait until the run has begun."""
    async with asyncio.timeout(150):
        while not (await start.describe()).raw_description.pending_children:
            await asyncio.sleep(0.1)


SHAPES: dict[str, Play] = {"started": started, "start-cancelled": start_cancelled}
