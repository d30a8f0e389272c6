"""Runs that delegate: one that waits for its sub-runs, a sub-run itself, and one that is cancelled amid them."""

import asyncio
from typing import Any

from tests.engine import Engine
from tests.replay.steps import FINISH, READ, SEND, Handle, Play, Script, decided


def _delegate(task: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return ("delegate", {"task": task, **more})


SCRIPTS: dict[str, Script] = {
    "delegated": [[_delegate("delegated-part", share=0.3), _delegate("delegated-read", share=0.5)], [FINISH]],
    "delegated-cancelled": [[_delegate("delegated-part")], [FINISH]],
    "delegated-part": [[SEND], [FINISH]],
    "delegated-read": [[READ], [FINISH]],
}


async def _delegating(engine: Engine, name: str) -> tuple[Handle, Handle]:
    """Start a run and let it delegate; return it and its first sub-run, which asks about a mail."""
    handle = await engine.start({"text": name, "profile": "delegating"}, f"golden-{name}")
    await decided(handle, "approve")
    async with asyncio.timeout(150):
        while not (children := (await handle.describe()).raw_description.pending_children):
            await asyncio.sleep(0.1)
    first = min(child.workflow_id for child in children)
    return handle, engine.client.get_workflow_handle(first)


async def delegated(engine: Engine) -> Handle:
    handle, part = await _delegating(engine, "delegated")
    await decided(part, "approve")
    return handle


async def delegated_part(engine: Engine) -> Handle:
    handle, part = await _delegating(engine, "delegated")
    await decided(part, "approve")
    await handle.result()
    return part


async def delegated_cancelled(engine: Engine) -> Handle:
    handle, part = await _delegating(engine, "delegated-cancelled")
    async with asyncio.timeout(150):
        while not await part.query("pending"):
            await asyncio.sleep(0.1)
    await handle.cancel()
    return handle


SHAPES: dict[str, Play] = {
    "delegated": delegated,
    "delegated-part": delegated_part,
    "delegated-cancelled": delegated_cancelled,
}
