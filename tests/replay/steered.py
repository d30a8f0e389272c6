"""Runs that people steer: a quorum with proofs, more budget, a pause, a cancellation, an undo after the end."""

import asyncio
from typing import Any

from tests import signing
from tests.engine import Engine
from tests.replay.steps import (
    FINISH,
    KEY,
    OPEN,
    POLICY,
    READ,
    SEND,
    Handle,
    Play,
    Script,
    called,
    decided,
    ended,
    find,
    folder_of,
    pay,
    requested,
)

SCRIPTS: dict[str, Script] = {
    "quorum": [[SEND], [FINISH]],
    "authorised": [[SEND], [("ask_person", {"question": "go on?"})], [FINISH]],
    "withheld": [[SEND], [("ask_person", {"question": "go on?"})], [FINISH]],
    "topped-up": [[READ], [READ], [FINISH]],
    "budget-answered": [[READ], [READ], [FINISH]],
    "paused": [[SEND], [FINISH]],
    "cancelled": [[find("pay")], [pay()], [pay("pay_at_last")], [FINISH]],
    "followed": [[READ], [FINISH], [READ], [FINISH]],
    "message": [[("ask_person", {"question": "go on?"})], [READ], [FINISH]],
    "undo-run": [[find("pay")], [pay()], [pay()], [FINISH]],
    "undo-run-lost": [[find("pay")], [pay("pay_for_good")], [FINISH]],
    "undo-run-found": [[find("pay")], [pay("pay_for_good")], [FINISH]],
    "undo-by-hand": [[find("pay")], [pay("pay_for_good")], [FINISH]],
}


_BY_TWO = "{tool: mail.send_email, when: {to: {equals: a@example.com}}, approvers: [ana, bo, cy], quorum: 2}"
POLICIES = dict.fromkeys(("authorised", "withheld"), POLICY.replace("ask: [", f"ask: [{_BY_TWO}, "))
"""The operator's policy of the shapes whose run and undo belong to the people whom it names."""


async def quorum(engine: Engine) -> Handle:
    return await _approved_by_two(engine, "quorum")


async def authorised(engine: Engine) -> Handle:
    """Pause, resume and undo as the people whom the rule names, and repeat a decision."""
    handle = await _approved_by_two(engine, "authorised")
    await requested(handle, "question")
    for update, by, payload in (
        ("pause", "bo", {"reason": "lunch"}),
        ("resume", "cy", {}),
        ("undo", "bo", {"to_step": None}),
        ("undo", "cy", {"to_step": None}),
    ):
        given = await signing.signed(
            handle, {**payload, "by": by, "event_id": f"{update} {by}"}, update=update, key=KEY
        )
        for _ in range(2):
            await handle.execute_update(update, given)
    await decided(handle, "answer", answer="yes")
    return handle


async def withheld(engine: Engine) -> Handle:
    """Cancel a run whose effects only named people may undo."""
    handle = await _approved_by_two(engine, "withheld")
    await requested(handle, "question")
    await handle.cancel()
    return handle


async def _approved_by_two(engine: Engine, name: str) -> Handle:
    rule = {"tool": "mail.send_email", "approvers": ["ana", "bo", "cy"], "quorum": 2}
    handle = await engine.start({"text": name, "policy": {"ask": [rule]}}, f"golden-{name}")
    for by in ("bo", "cy"):
        request = await requested(handle)
        decision = {"request_id": request["id"], "verdict": "approve", "by": by}
        await handle.execute_update("decide", await signing.signed(handle, decision, key=KEY))
    return handle


def _asking(name: str) -> dict[str, Any]:
    return {"text": name, "budget": {"max_steps": 2, "on_exhausted": "ask"}}


async def topped_up(engine: Engine) -> Handle:
    handle = await engine.start(_asking("topped-up"), "golden-topped-up")
    await requested(handle, "budget")
    await handle.execute_update("top_up", {"max_steps": 2, "by": "ana"})
    return handle


async def budget_answered(engine: Engine) -> Handle:
    handle = await engine.start(_asking("budget-answered"), "golden-budget-answered")
    await decided(handle, "answer", "budget", answer={"max_steps": 1})
    return handle


async def paused(engine: Engine) -> Handle:
    """Hold the run while a decision is open, decide it, and let the run go on."""
    handle = await engine.start({"text": "paused"}, "golden-paused")
    await requested(handle)
    await handle.execute_update("pause", {"reason": "lunch", "by": "ana"})
    await decided(handle, "approve")
    async with asyncio.timeout(150):
        while (await handle.query("status"))["state"] != "paused":
            await asyncio.sleep(0.1)
    await handle.execute_update("resume", {"by": "ana"})
    return handle


async def cancelled(engine: Engine) -> Handle:
    """Cancel while a payment is on its way; its answer comes after the run has asked its worker to stop."""
    handle = await engine.start({"text": "cancelled"}, "golden-cancelled")
    await called(engine, "pay_at_last")
    await handle.cancel()
    async with asyncio.timeout(150):
        while not await _stopping(handle):
            await asyncio.sleep(0.1)
    (folder_of(engine) / OPEN).touch()
    return handle


async def followed(engine: Engine) -> Handle:
    """Go on from a run that has ended; the second one is kept."""
    first = await engine.start({"text": "followed"}, "golden-followed-first")
    await ended(first)
    follows = {"workflow_id": first.id, "run_id": first.first_execution_run_id}
    return await engine.start({"text": "and now", "follows": follows}, "golden-followed")


async def message(engine: Engine) -> Handle:
    """Tell a run something while it waits for a person, once more with the same id, and then answer."""
    handle = await engine.start({"text": "message"}, "golden-message")
    await requested(handle, "question")
    for _ in range(2):
        await handle.execute_update("message", {"text": "be brief", "by": "ana", "event_id": "m1"})
    await decided(handle, "answer", answer="yes")
    return handle


async def _stopping(handle: Handle) -> bool:
    return any(
        [
            event.HasField("activity_task_cancel_requested_event_attributes")
            async for event in handle.fetch_history_events()
        ]
    )


async def undo_run(engine: Engine) -> Handle:
    return await undone_after_its_end(engine, "undo-run")


async def undo_run_lost(engine: Engine) -> Handle:
    """An UndoRun loses the answer of the compensation."""
    return await undone_after_its_end(engine, "undo-run-lost")


async def undo_run_found(engine: Engine) -> Handle:
    """The UndoRun after one that lost the answer of the compensation finds that."""
    await ended(await undone_after_its_end(engine, "undo-run-found"))
    return await _undo(engine, "golden-undo-run-found-first", "golden-undo-run-found")


async def undo_by_hand(engine: Engine) -> Handle:
    """A person records that they undid what the undo has parked."""
    name = "golden-undo-by-hand"
    await ended(await engine.start({"text": "undo-by-hand"}, f"{name}-first"))
    await ended(await _undo(engine, f"{name}-first", f"{name}-before"))
    return await _undo(engine, f"{name}-first", name, done=1, comment="paid it back")


async def undone_after_its_end(engine: Engine, name: str) -> Handle:
    await ended(await engine.start({"text": name}, f"golden-{name}-first"))
    return await _undo(engine, f"golden-{name}-first", f"golden-{name}")


async def _undo(engine: Engine, workflow_id: str, name: str, **more: object) -> Handle:
    ask = {"workflow_id": workflow_id, "by": "ana", **more}
    return await engine.client.start_workflow("UndoRun", ask, id=name, task_queue=engine.settings.task_queue)


SHAPES: dict[str, Play] = {
    "quorum": quorum,
    "authorised": authorised,
    "withheld": withheld,
    "topped-up": topped_up,
    "budget-answered": budget_answered,
    "paused": paused,
    "cancelled": cancelled,
    "followed": followed,
    "message": message,
    "undo-run": undo_run,
    "undo-run-lost": undo_run_lost,
    "undo-run-found": undo_run_found,
    "undo-by-hand": undo_by_hand,
}
