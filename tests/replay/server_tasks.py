"""A run whose calls are answered by tasks of their server: followed, asked about, answered, undone."""

import tempfile
from pathlib import Path

from tests.e2e.labelled import DONE, Labelled
from tests.engine import Engine, engine
from tests.replay.steps import Handle, Play, decided
from tests.task_server import open_task_server

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


async def followed(outer: Engine) -> Handle:
    """Answer the question of one task, let the server forget another one, and undo what the first did."""
    steps = [
        {"tool": "slow.send", "arguments": {"mark": "golden", "asks": True}},
        {"tool": "slow.send", "arguments": {"mark": "forgotten", "lasts_s": 600, "ttl_ms": 1500}},
        {"tool": "slow.look", "arguments": {"mark": "fails", "fails": "no such thing"}},
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with open_task_server() as server:
            given = {"policy": POLICY, "toolbox": server.toolbox(folder), "step_timeout_seconds": 3, "replayed": False}
            async with engine(outer.client, folder, Labelled(done=[DONE]), **given) as opened:
                handle = await opened.start({"plan": {"steps": steps}}, "golden-server-task")
                await decided(handle, "answer", "elicitation", answer={"yes": True})
                await handle.result()
    return handle


SHAPES: dict[str, Play] = {"server-task": followed}
