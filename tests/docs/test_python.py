"""Every Python block of the documents runs."""

import asyncio
import signal
import textwrap
from contextlib import suppress

import pytest

from backstay.client import Backstay
from backstay.errors import Unreachable
from backstay.testing import Reply
from tests.docs.blocks import HOUSE, blocks
from tests.requirements import promise
from tests.sizes import spread

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
FIRST, *PROGRAMS = [block for block in blocks("python") if not block.noun]
OF_TOOLBOX = ("plugin", "tools")
FRAGMENTS = [
    block for block in blocks("python") if block.noun and block.noun != "main" and not block.noun.startswith(OF_TOOLBOX)
]
IN_JAILS = [block for block in blocks("python") if block.noun == "main"]


@promise("docs:docs")
@pytest.mark.parametrize("block", spread(PROGRAMS, 3), ids=lambda block: block.place)
async def test_a_program_in_the_documents_runs_to_its_end(documented, nursery, tmp_path, block):
    program = tmp_path / "program.py"
    program.write_text(block.text, encoding="utf-8")

    code, said, complained = await documented.forked(nursery, program, folder=tmp_path)

    assert "Traceback" not in complained, complained
    # A program that exits right after Temporal's own client has answered may die as Python ends, perhaps silently.
    died_at_the_end = "PyGILState_Release" in complained or code == -signal.SIGSEGV
    assert code == 0 or ("from backstay" not in block.text and said and died_at_the_end), (
        f"{block.place}\n{said}\n{complained}"
    )


@promise("docs:docs")
@pytest.mark.parametrize("block", FRAGMENTS, ids=lambda block: block.place)
async def test_a_fragment_in_the_documents_holds_for_a_run_that_waits(documented, block):
    assert block.noun == "run", f"{block.place}: no such kind of fragment"
    run = await Backstay(documented.engine.client).start(TASK)
    async with asyncio.timeout(150):
        while not (pending := await run.pending()):
            await asyncio.sleep(0.1)
    body = textwrap.indent(block.text, "    ")
    scope = {}
    exec(compile(f"async def fragment(run, request):\n{body}", block.place, "exec"), scope)

    async with asyncio.timeout(150):
        await scope["fragment"](run, pending[0])


@promise("clients:client")
async def test_the_first_example_does_what_the_readme_promises(documented, nursery, tmp_path):
    assert FIRST.place.startswith("README")
    mailbox = documented.engine.mailbox
    before, standing = mailbox.requests("send_email"), mailbox.sent()

    program = tmp_path / "program.py"
    program.write_text(FIRST.text, encoding="utf-8")

    code, said, complained = await documented.forked(nursery, program, folder=tmp_path)

    sent = mailbox.requests("send_email") - before
    assert "completed" in said, complained
    assert (code, "Traceback" in complained) == (0, False), complained
    assert said.count("approval.asked") == 1
    assert said.count("undone:") == sent > 1
    assert mailbox.sent() == standing


@promise("clients:starter")
async def test_the_smallest_client_runs_and_prints_the_summary(documented, nursery, tmp_path):
    backstay = Backstay(documented.engine.client)
    starting = asyncio.create_task(documented.forked(nursery, HOUSE / "starter.py", TASK, folder=tmp_path))
    # Tests share the server, and a run that another test left without a worker would not answer.
    here = f"ExecutionStatus='Running' AND TaskQueue='{documented.engine.settings.task_queue}'"
    known = set()
    async with asyncio.timeout(150):
        while not starting.done():
            async for found in documented.engine.client.list_workflows(here):
                # Engine, model and test share one interpreter, which may be too busy to answer in time.
                with suppress(Unreachable):
                    for request in await backstay.run(found.id).pending() if found.id not in known else ():
                        known.add(found.id)
                        await backstay.run(found.id).approve(request.id, by="ana@example.com")
            await asyncio.sleep(0.2)
    code, said, complained = await starting

    assert code == 0, complained
    assert "EUR" in said
    assert "backstay approve task-" in complained


@promise("docs:jail-program")
@pytest.mark.parametrize("block", IN_JAILS, ids=lambda block: block.place)
async def test_a_program_for_the_jail_in_the_documents_does_what_it_says(open_engine, sandbox, block):
    def rules(conversation):
        runs = conversation.calls("run_program")
        if not runs:
            return Reply(calls=[("run_program", {"code": block.text})])
        return Reply(calls=[("finish", {"summary": "ok", "outputs": {"answer": runs[0].answer}, "success": True})])

    async with open_engine(rules, sandbox=sandbox) as engine:
        handle = await engine.start({"text": "run it"})
        result = await asyncio.wait_for(handle.result(), 150)
        (customers,) = engine.mailbox.rows("SELECT count(*) FROM customers")[0]

    assert result["raw_outputs"]["answer"]["data"]["result"]["customers"] == customers
