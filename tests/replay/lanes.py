"""The lane of a plugin: jobs in order, one that is there twice, one that is dropped, and one that waits for people."""

import asyncio

from temporalio.service import RPCError

from backstay.task.lane import ADD, ASIDE, DROP, WORKFLOW
from tests.engine import Engine
from tests.replay.steps import Handle, Play, decided

SEND = {"tool": "mail.send_email", "arguments": {"to": "a@example.com", "subject": "s", "body": "b"}}
READ = {"tool": "mail.list_customers", "arguments": {"offset": 0, "limit": 1}}


def job(name: str, step: dict[str, object]) -> dict[str, object]:
    return {"workflow_id": f"golden-lane-{name}", "task": {"plan": {"steps": [step]}}, "summary": name}


async def lane(engine: Engine) -> Handle:
    """Let the lane end by itself, which takes a minute."""
    handle = await engine.client.start_workflow(
        WORKFLOW,
        id="golden-lane",
        task_queue=engine.settings.task_queue,
        start_signal=ADD,
        start_signal_args=[job("sends", SEND)],
    )
    for waiting in (job("reads", READ), job("reads", READ), job("dropped", READ), {"no": "job"}):
        await handle.signal(ADD, waiting)
    await handle.signal(DROP, "golden-lane-dropped")
    sends = engine.client.get_workflow_handle("golden-lane-sends")
    async with asyncio.timeout(150):
        while not await _waits(sends):
            await asyncio.sleep(0.1)
    await handle.signal(ASIDE, sends.id)
    await decided(sends, "approve")
    return handle


async def _waits(handle: Handle) -> bool:
    """Return whether a run waits for people; the lane may not have started it yet."""
    try:
        return bool(await handle.query("pending"))
    except RPCError:
        return False


SHAPES: dict[str, Play] = {"lane": lane}
