"""Runs of programs: one that goes on in its jail, one that is fed again, one whose call is asked back about."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sandbox.programs.sandbox import Sandbox, open_sandbox
from tests.engine import ROOT, Engine, sandbox_role
from tests.replay.steps import FINISH, Handle, Play, Script, decided, ended, requested

PROGRAM = """
import asyncio
page = await mail.list_customers(offset=0, limit=1)
await asyncio.gather(*(mail.send_email(to=to, subject="s", body="b") for to in ("a@example.com", "b@example.com")))
return page["total"]
"""
REHEARSED = """
page = await mail.list_customers(offset=0, limit=1)
sent = await mail.send_email(to=page["customers"][0]["email"], subject="s", body="b")
await mail.send_email(to="b@example.com", subject="s", body=sent["message_id"])
return page["total"]
"""
READS = """
import asyncio
pages = await asyncio.gather(*(mail.list_customers(offset=n, limit=1) for n in range(3)))
return [page["total"] for page in pages]
"""
ASKED_BACK = """
return await office.give_away(room="cellar")
"""
SCRIPTS: dict[str, Script] = {
    "program": [[("run_program", {"code": PROGRAM})], [FINISH]],
    "program-fed": [[("run_program", {"code": PROGRAM})], [FINISH]],
    "program-asked-back": [[("run_program", {"code": ASKED_BACK})], [FINISH]],
    "program-reads": [[("run_program", {"code": READS})], [FINISH]],
    "program-rehearsed": [[("run_program", {"code": REHEARSED})], [FINISH]],
}


@asynccontextmanager
async def open_programs() -> AsyncGenerator[Sandbox]:
    async with open_sandbox(nsjail=None, home=ROOT / "build" / "sandbox", image="python") as sandbox:
        yield sandbox


async def program(engine: Engine) -> Handle:
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": "program\nsend e-mail to customers"}, "golden-program")
        await decided(handle, "approve")
        await ended(handle)
    return handle


async def program_fed(engine: Engine) -> Handle:
    """The worker that keeps the program goes while a person is asked, and another one feeds its journal to a jail."""
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": "program-fed\nsend e-mail to customers"}, "golden-program-fed")
        await requested(handle)
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        await decided(handle, "approve")
        await ended(handle)
    return handle


async def program_asked_back(engine: Engine) -> Handle:
    """The server of a call that a program makes asks a person, who declines."""
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": "program-asked-back"}, "golden-program-asked-back")
        await decided(handle, "approve")
        await decided(handle, "reject", "elicitation")
        await ended(handle)
    return handle


async def program_reads(engine: Engine) -> Handle:
    """Reads that are awaited together are one activity."""
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start({"text": "program-reads\nsend e-mail to customers"}, "golden-program-reads")
        await ended(handle)
    return handle


async def program_rehearsed(engine: Engine) -> Handle:
    """Approve what the rehearsal of a program foretells."""
    async with open_programs() as sandbox, sandbox_role(engine.client, engine.settings, sandbox):
        handle = await engine.start(
            {"text": "program-rehearsed\nsend e-mail to customers", "rehearse": True}, "golden-program-rehearsed"
        )
        await decided(handle, "approve", "program")
        await ended(handle)
    return handle


SHAPES: dict[str, Play] = {
    "program": program,
    "program-fed": program_fed,
    "program-asked-back": program_asked_back,
    "program-reads": program_reads,
    "program-rehearsed": program_rehearsed,
}
