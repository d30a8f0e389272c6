"""Runs that tell people what becomes of their requests: reminded, escalated and decided, or withdrawn at the end."""

import asyncio

from tests.engine import Engine
from tests.replay.steps import FINISH, SEND, Handle, Play, Script, decided, requested

LATE = ("mail__send_email", {"to": "late@example.com", "subject": "s", "body": "b"})
ASKS = {"ask": [{"tool": "mail.send_email", "remind_after": "2s"}]}
SCRIPTS: dict[str, Script] = {
    "reminded": [[SEND], [FINISH]],
    "escalated": [[LATE], [FINISH]],
    "left-open": [[SEND], [FINISH]],
    "told-apart": [[SEND], [FINISH]],
}


async def reminded(engine: Engine) -> Handle:
    """Approve only when people were reminded twice."""
    handle = await engine.start({"text": "reminded", "policy": ASKS}, "golden-reminded")
    names: list[str] = []
    async with asyncio.timeout(150):
        while names.count("approval.reminded") < 2:
            names = [event["name"] for event in (await handle.query("timeline", {"after": 0}))["events"]]
            await asyncio.sleep(0.1)
    await decided(handle, "approve")
    return handle


async def escalated(engine: Engine) -> Handle:
    """Let nobody decide, neither at first nor when it is asked again."""
    return await engine.start({"text": "escalated"}, "golden-escalated")


async def left_open(engine: Engine) -> Handle:
    """Cancel a run that waits for a decision."""
    handle = await engine.start({"text": "left-open"}, "golden-left-open")
    await requested(handle)
    await handle.cancel()
    return handle


async def told_apart(engine: Engine) -> Handle:
    """Approve once people were told, so that a replay gets the end of that and the decision apart."""
    handle = await engine.start({"text": "told-apart"}, "golden-told-apart")
    await requested(handle)
    async with asyncio.timeout(150):
        while (await handle.describe()).raw_description.pending_activities:
            await asyncio.sleep(0.1)
    await decided(handle, "approve")
    return handle


SHAPES: dict[str, Play] = {
    "reminded": reminded,
    "escalated": escalated,
    "left-open": left_open,
    "told-apart": told_apart,
}
