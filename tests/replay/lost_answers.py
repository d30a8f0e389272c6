"""Runs in which the answer of a write, or of its compensation, is lost."""

from functools import partial

from tests.engine import Engine
from tests.replay.steps import FINISH, GIVE_UP, Handle, Play, Script, called, decided, find, pay

SCRIPTS: dict[str, Script] = {
    "lost-checked": [[find("pay")], [pay("pay_checked")], [FINISH]],
    "lost-proven": [[find("pay")], [pay("pay_proven")], [FINISH]],
    "lost-happened": [[find("pay")], [pay("pay_blindly")], [FINISH]],
    "lost-denied": [[find("pay")], [pay("pay_blindly")], [FINISH]],
    "lost-again": [[find("pay")], [pay("pay_again")], [FINISH]],
    "lost-undo": [[find("pay")], [pay(), pay("pay_for_good")], [GIVE_UP]],
    "lost-undo-settled": [[find("pay")], [pay("pay_back_at_last"), pay("pay_back")], [GIVE_UP]],
    "lost-cancelled": [[find("pay")], [pay()], [pay("pay_unheard")]],
}


async def settled(name: str, engine: Engine) -> Handle:
    """The declared check settles what was lost, or the run gives up and undoes everything."""
    return await engine.start({"text": name}, f"golden-{name}")


async def answered(name: str, verdict: str, engine: Engine) -> Handle:
    """A person says what became of the call."""
    handle = await settled(name, engine)
    await decided(handle, verdict, "outcome")
    return handle


async def cancelled(engine: Engine) -> Handle:
    """The run is cancelled before it is known that the answer is lost; the check comes with the compensation."""
    handle = await settled("lost-cancelled", engine)
    await called(engine, "pay_unheard")
    await handle.cancel()
    return handle


SHAPES: dict[str, Play] = {
    "lost-checked": partial(settled, "lost-checked"),
    "lost-proven": partial(settled, "lost-proven"),
    "lost-happened": partial(answered, "lost-happened", "happened"),
    "lost-denied": partial(answered, "lost-denied", "did_not_happen"),
    "lost-again": partial(answered, "lost-again", "retry"),
    "lost-undo": partial(settled, "lost-undo"),
    "lost-undo-settled": partial(settled, "lost-undo-settled"),
    "lost-cancelled": cancelled,
}
