"""Two hosts that share Temporal and Postgres and no folder, each with a sandbox role that has no database."""

import asyncio
import json
import os

import pytest

from backstay.testing import Reply
from examples.mailbox.faults import Faults
from tests.crash.case import open_case
from tests.engine import assert_no_task_failure, share_images
from tests.requirements import promise

LARGE = 2_500_000
"""More than Temporal passes at once."""
PROGRAM = f"""
import asyncio

read = [(await mail.list_customers(offset=n, limit=1))["customers"][0]["email"] for n in range(3)]
await mail.send_email(to="a@example.com", subject=read[0], body="b")
more = await asyncio.gather(*[mail.list_customers(offset=n, limit=1) for n in range(3)])
assert [page["customers"][0]["email"] for page in more] == read
return {{"read": read, "large": "x" * {LARGE}}}
"""
NOT_FOR_SANDBOX = ("BACKSTAY_DATABASE_URL", "BACKSTAY_TOOLBOX", "BACKSTAY_POLICY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
READY = {"runs": "backstay worker ready", "sandbox": "backstay sandbox ready", "all": "programs in jails"}


def rules(conversation):
    runs = conversation.calls("run_program")
    if not runs:
        return Reply(calls=[("run_program", {"code": PROGRAM})])
    parts = conversation.calls("read_result")
    if not parts:
        ref = runs[0].answer.get("storage_ref")
        if ref is None:
            return Reply(calls=[("finish", {"summary": json.dumps(runs[0].answer), "success": False})])
        return Reply(calls=[("read_result", {"ref": ref, "path": "result.read"})])
    outputs = {"read": parts[0].answer, "ref": runs[0].answer["storage_ref"]}
    return Reply(calls=[("finish", {"summary": "done", "outputs": outputs, "success": True})])


async def raise_host(case, name, *roles):
    """Start roles on a host, each with a home of its own, and return their processes."""
    raised = []
    for role in roles:
        home = share_images(case.folder / name / role)
        environment = {**case.environment, "BACKSTAY_HOME": str(home), "ROLE": role}
        if role == "sandbox":
            environment = {key: value for key, value in environment.items() if key not in NOT_FOR_SANDBOX}
        raised.append(await case.ready(environment, f"{name} {role}.log", READY[role]))
    return raised


async def kill(host):
    for child in host:
        child.kill()
    for child in host:
        await asyncio.wait_for(asyncio.shield(child.died), 150)


@promise("recovery:no-shared-folder")
@pytest.mark.timeout(600)
async def test_without_a_shared_folder_a_run_and_its_program_go_on_are_read_and_are_undone_on_another_host(
    temporal, nursery, sandbox, postgres, tmp_path
):
    shared = {
        "BACKSTAY_DATABASE_URL": await postgres.new_database(),
        "BACKSTAY_PAYLOADS": "database",
        "BACKSTAY_PROGRAM_FRAME_BYTES": str(8 << 20),
    }
    async with open_case(temporal, nursery, tmp_path, rules=rules, faults=Faults(), **shared) as case:
        first = await raise_host(case, "first", "all")
        run = await case.start(budget={"max_tool_calls": 20})
        async with asyncio.timeout(150):
            while not (asked := await case.person.pending(run)):
                assert (await run.describe()).close_time is None, await run.result()
                await asyncio.sleep(0.1)
        await kill(first)
        second = await raise_host(case, "second", "runs", "sandbox")
        await case.person.decide(run, asked[0])
        result = await case.person.attend(run)
        assert result["outcome"] == "completed", result
        assert_no_task_failure(await run.fetch_history())
        assert len(result["raw_outputs"]["read"]["data"]["items"]) == 3, result["raw_outputs"]

        await kill(second)
        await raise_host(case, "third", "runs")
        large = {"workflow_id": run.id, "ref": result["raw_outputs"]["ref"], "path": "result.large"}
        queue = case.environment["BACKSTAY_TASK_QUEUE"]
        page = await temporal.execute_workflow("ReadRun", large, id=f"read-{run.id}", task_queue=queue)
        assert page["total"] == LARGE
        undo = await case.start_undo(run.id)
        assert (await case.person.attend(undo))["outcome"] == "rolled_back"
        assert case.mailbox.rows("SELECT recipient, recalled_at IS NOT NULL FROM sent") == [("a@example.com", 1)]
        files = [name for _, _, names in os.walk(tmp_path / "first") for name in names if len(name) == 40]
        assert files == []
