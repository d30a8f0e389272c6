"""examples/typescript: a client in another language, by names and JSON alone."""

import asyncio
import json
import os
import shutil

import pytest
import pytest_asyncio

from backstay.client import Backstay
from backstay.testing import Reply
from tests.conformance.scenarios import NODE
from tests.docs.blocks import HOUSE
from tests.requirements import promise

EXAMPLE, PACKAGES = HOUSE / "examples/typescript", HOUSE / "build/typescript/node_modules"
TEXT = "Write to a."
MAIL = Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "hello", "body": "how are you?"})])


@pytest_asyncio.fixture
async def program(tmp_path):
    """Copy the example beside its packages; return how to run it."""
    assert PACKAGES.is_dir(), f"{PACKAGES} is missing; `make test` installs it"
    folder = tmp_path / "typescript"
    shutil.copytree(EXAMPLE, folder)
    (folder / "node_modules").symlink_to(PACKAGES)

    async def run(*command, typed="", **environment):
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={"PATH": f"{NODE.parent}:{os.environ['PATH']}", "HOME": str(tmp_path), **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(150):
                said, complained = await process.communicate(typed.encode())
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, said.decode(), complained.decode()

    return run


def rules(conversation):
    if not conversation.calls("mail__send_email"):
        return MAIL
    answer = json.dumps(conversation.calls("mail__send_email")[-1].answer)
    return Reply(calls=[("finish", {"summary": "not sent" if "reject" in answer else "sent"})])


async def ran(program, engine, *words, **more):
    environment = {
        "TEMPORAL_ADDRESS": engine.client.service_client.config.target_host,
        "BACKSTAY_TASK_QUEUE": engine.settings.task_queue,
    }
    return await program(str(NODE), "client.ts", *words, **environment, **more)


@promise("clients:doors-typescript")
async def test_a_client_in_typescript_starts_a_run_decides_what_it_asks_and_prints_its_result(program, open_engine):
    async with open_engine(rules) as engine:
        code, said, complained = await ran(program, engine, TEXT, "ana@example.com", typed="y\n")
        assert code == 0, complained
        assert json.loads(said) == {"outcome": "completed", "final_summary": "sent"}
        assert 'mail.send_email {"to":"a@x.example"' in complained
        assert "undo: recall_email(" in complained
        assert engine.mailbox.requests("send_email") == 1
        workflow = complained.split()[1]
        result = await engine.client.get_workflow_handle(workflow).result()
        (decided,) = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
        assert (decided["by"], decided["verdict"]) == ("ana@example.com", "approve")


@promise("clients:typescript-whole")
async def test_what_is_too_long_to_be_told_whole_is_not_decided_there(program, open_engine):
    long = Reply(calls=[("mail__send_email", {"to": "a@x.example", "subject": "hello", "body": "x" * 2500})])
    policy = 'ask: [{tool: "mail.send_email", timeout: 3s}]'
    async with open_engine([long, Reply(calls=[("finish", {"summary": "done"})])], policy=policy) as engine:
        code, _, complained = await ran(program, engine, TEXT, "ana@example.com", typed="y\n")
    assert (code, "approve? [y/n]" in complained) == (0, False), complained
    assert f"how to answer: backstay show {complained.split()[1]} r1" in complained
    assert engine.mailbox.requests("send_email") == 0


@promise("clients:typescript-rest")
async def test_it_reads_all_that_a_run_did_where_the_result_holds_only_the_end_of_it(program, open_engine):
    reads = Reply(calls=[("mail__list_customers", {"limit": n}) for n in range(1, 26)])
    async with open_engine([reads, Reply(calls=[("finish", {"summary": "done"})])]) as engine:
        code, said, complained = await ran(program, engine, TEXT, "ana@example.com")
        assert (code, json.loads(said)["final_summary"]) == (0, "done"), complained
        workflow, *told = complained.splitlines()
        run = Backstay(engine.client, task_queue=engine.settings.task_queue).run(workflow.split()[1])
        assert told == [f"{event.n} {event.text}" async for event in run.events()]
        assert len(told) > len((await run.result()).events) == 20


@promise("clients:doors-typescript")
@pytest.mark.thorough
async def test_it_says_what_a_person_rejected_and_what_is_wrong(program, open_engine):
    async with open_engine(rules) as engine:
        _, said, complained = await ran(program, engine, TEXT, "ana@example.com", typed="n\n")
        assert json.loads(said)["final_summary"] == "not sent", complained
        assert engine.mailbox.requests("send_email") == 0
        code, said, complained = await ran(program, engine, "", "ana@example.com")
        assert (code, said) == (1, "")
        assert "text: " in complained
        assert "    at " not in complained
        assert (await ran(program, engine, TEXT))[0] == 2


@promise("clients:typescript-types")
@pytest.mark.timeout(400)
async def test_its_types_are_right(program):
    code, said, complained = await program(str(PACKAGES / ".bin/tsc"), "--project", ".")

    assert code == 0, said + complained
