"""Runs that continue as new executions: while people vote, amid a program, and amid an undo."""

from tests import signing
from tests.engine import Engine, sandbox_role
from tests.replay.programs import PROGRAM, open_programs
from tests.replay.steered import undone_after_its_end
from tests.replay.steps import (
    FINISH,
    KEY,
    READ,
    SEND,
    Handle,
    Play,
    Script,
    decided,
    ended,
    find,
    pay,
    requested,
    switched,
)

LONG_AFTER = {"continued": 30, "continued-program": 30, "continued-undo": 46}
"""After so many events the server that records a shape calls its history long."""
SCRIPTS: dict[str, Script] = {
    "continued": [[READ], [SEND], [READ], [READ], [FINISH]],
    "continued-program": [[READ], [READ], [("run_program", {"code": PROGRAM})], [FINISH]],
    "continued-undo": [[find("pay")], [pay(), pay(), pay()], [pay(), pay(), pay()], [FINISH]],
}


async def continued(engine: Engine) -> Handle:
    """Two people approve; the run continues between their votes."""
    rule = {"tool": "mail.send_email", "approvers": ["bo", "cy"], "quorum": 2}
    handle = await engine.start({"text": "continued", "policy": {"ask": [rule]}}, "golden-continued")
    for by in ("bo", "cy"):
        request = await requested(handle)
        decision = {"request_id": request["id"], "verdict": "approve", "by": by}
        await handle.execute_update("decide", await signing.signed(handle, decision, key=KEY))
        if by == "bo":
            await switched(handle)
    return handle


async def continued_program(engine: Engine) -> Handle:
    """The run continues while a program waits for a person."""
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": "continued-program"}, "golden-continued-program")
        await switched(handle)
        await decided(handle, "approve")
        await ended(handle)
    return handle


async def continued_undo(engine: Engine) -> Handle:
    return await undone_after_its_end(engine, "continued-undo")


SHAPES: dict[str, Play] = {
    "continued": continued,
    "continued-program": continued_program,
    "continued-undo": continued_undo,
}
