"""Runs that tell people what becomes of their requests: reminded and decided, or withdrawn at the end."""

import asyncio
from contextlib import suppress

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError

from tests.engine import Engine
from tests.replay.steps import FINISH, SEND, Handle, Play, Script, decided, requested

ASKS = {"ask": [{"tool": "mail.send_email", "remind_after": "2s"}]}
SCRIPTS: dict[str, Script] = {
    "reminded": [[SEND], [FINISH]],
    "left-open": [[SEND], [FINISH]],
    "told-apart": [[SEND], [FINISH]],
}
EMPTY = ["WORKFLOW_TASK_SCHEDULED", "WORKFLOW_TASK_STARTED", "WORKFLOW_TASK_COMPLETED"]
TOLD = ["ACTIVITY_TASK_STARTED", "ACTIVITY_TASK_COMPLETED"]
APART = [*EMPTY, *TOLD, *EMPTY, *EMPTY, "WORKFLOW_EXECUTION_UPDATE_ACCEPTED"]
"""What is replayed step by step, though the worker got the last two workflow tasks at once."""


async def reminded(engine: Engine) -> Handle:
    """Approve only when people were reminded twice."""
    handle = await engine.start({"text": "reminded", "policy": ASKS}, "golden-reminded")
    names: list[str] = []
    async with asyncio.timeout(60):
        while names.count("approval.reminded") < 2:
            names = [event["name"] for event in (await handle.query("timeline", {"after": 0}))["events"]]
            await asyncio.sleep(0.1)
    await decided(handle, "approve")
    return handle


async def left_open(engine: Engine) -> Handle:
    """Cancel a run that waits for a decision."""
    handle = await engine.start({"text": "left-open"}, "golden-left-open")
    await requested(handle)
    await handle.cancel()
    return handle


async def told_apart(engine: Engine) -> Handle:
    """Approve just after people were told; try until the worker got both at once, which no command may show."""
    for number in range(40):
        handle = await decided_just_after(engine, f"golden-told-apart-{number}")
        events = (await handle.fetch_history()).events
        names = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in events]
        if any(names[at : at + len(APART)] == APART for at in range(len(names))):
            break
    return handle


async def decided_just_after(engine: Engine, name: str) -> Handle:
    """Approve a request just as people are told of it, amid decisions that are refused, and wait for the end."""
    handle = await engine.start({"text": "told-apart"}, name)
    # What is refused leaves an empty workflow task where something else happens meanwhile.
    refused = asyncio.create_task(_refused(handle))
    while not (open_now := await handle.query("pending")):
        await asyncio.sleep(0)
    approval = {"request_id": open_now[0]["id"], "verdict": "approve", "by": "ana"}
    with suppress(WorkflowUpdateFailedError):
        await handle.execute_update("decide", approval)
    refused.cancel()
    if await handle.query("pending"):
        await handle.execute_update("decide", approval)
    await handle.result()
    return handle


async def _refused(handle: Handle) -> None:
    with suppress(WorkflowUpdateRPCTimeoutOrCancelledError):
        while True:
            with suppress(WorkflowUpdateFailedError):
                await handle.execute_update("decide", {"request_id": "r1", "verdict": "answer", "by": "ana"})


SHAPES: dict[str, Play] = {"reminded": reminded, "left-open": left_open, "told-apart": told_apart}
