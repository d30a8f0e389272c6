"""Runs in which it matters what an answer means, and whether a write was made before."""

from functools import partial
from typing import Any

from tests.engine import Engine
from tests.replay.steps import FINISH, Handle, Play, Script, decided, find, pay

SCRIPTS: dict[str, Script] = {
    "doubtful": [[find("pay")], [pay("pay_doubtfully")], [FINISH]],
    "ordered": [[find("pay")], [pay(), pay("pay_for_good")], [FINISH]],
    "repeated": [[find("pay")], [pay()], [pay()], [FINISH]],
}


async def played(name: str, engine: Engine, **task: Any) -> Handle:
    """The answer is checked, and writes of one message are made in turn."""
    return await engine.start({"text": name, **task}, f"golden-{name}")


async def repeated(engine: Engine) -> Handle:
    """A person is asked about the second write."""
    handle = await played("repeated", engine, policy={"repeated": "ask"})
    await decided(handle, "approve")
    return handle


SHAPES: dict[str, Play] = {
    "doubtful": partial(played, "doubtful"),
    "ordered": partial(played, "ordered"),
    "repeated": repeated,
}
