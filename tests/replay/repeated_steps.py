"""Runs whose steps fail: repeated and mended, and repeated until no lifeline is left."""

from tests.engine import Engine, sandbox_role
from tests.replay.programs import open_programs
from tests.replay.steps import FINISH, READ, Call, Handle, Play, Script, ended

UNFIT: Call = ("mail__list_customers", {"limit": "many"})
CRASH: Call = ("run_program", {"code": "x = 1\nreturn x / 0"})
NAMED = """
page = await mcp.call_tool("mail.list_customers", {"limit": 1})
return page.success
"""
SCRIPTS: dict[str, Script] = {
    "lifelines": [[UNFIT], [CRASH], [("run_program", {"code": NAMED})], [READ], [FINISH]],
    "lifelines-exhausted": [[UNFIT], [CRASH], [UNFIT], [UNFIT]],
}


async def lifelines(engine: Engine) -> Handle:
    return await _played(engine, "lifelines")


async def lifelines_exhausted(engine: Engine) -> Handle:
    return await _played(engine, "lifelines-exhausted")


async def _played(engine: Engine, name: str) -> Handle:
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": name}, f"golden-{name}")
        await ended(handle)
    return handle


SHAPES: dict[str, Play] = {"lifelines": lifelines, "lifelines-exhausted": lifelines_exhausted}
