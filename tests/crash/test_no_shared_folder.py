"""Two hosts that share Temporal and Postgres and no folder, each with a sandbox role that has no database."""

import asyncio
import json
import os
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

from backstay.testing import Reply
from examples.mailbox.faults import Faults
from tests.crash.case import open_case
from tests.engine import assert_no_task_failure, share_images
from tests.requirements import promise
from tests.s3_server import ACCESS

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
NOT_FOR_SANDBOX = (
    *ACCESS,
    "BACKSTAY_S3_ENDPOINT",
    "BACKSTAY_DATABASE_URL",
    "BACKSTAY_TOOLBOX",
    "BACKSTAY_POLICY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
)
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
            environment["BACKSTAY_PAYLOADS"] = "database"
        raised.append(await case.ready(environment, f"{name} {role}.log", READY[role]))
    return raised


def bucket_of(server):
    """Return the settings with which large payloads are in a new bucket."""
    address = f"s3://{server.bucket(f'b-{uuid.uuid4().hex}')}/payloads"
    return {"BACKSTAY_PAYLOADS": address, "BACKSTAY_S3_ENDPOINT": server.endpoint, **ACCESS}


def inherited(child):
    """Return the names of all variables of the processes that a worker has started, its sandbox role among them."""
    found, parents = set(), {child.born.result()}
    processes = [place for place in Path("/proc").iterdir() if place.name.isdecimal()]
    for place in sorted(processes, key=lambda place: int(place.name)):
        with suppress(OSError):
            if int((place / "stat").read_text().rpartition(")")[2].split()[1]) in parents:
                parents.add(int(place.name))
                found |= {each.partition("=")[0] for each in (place / "environ").read_text().split("\0")}
    assert "BACKSTAY_PAYLOADS" in found
    return found


async def kill(host):
    for child in host:
        child.kill()
    for child in host:
        await asyncio.wait_for(asyncio.shield(child.died), 150)


@promise("recovery:no-shared-folder")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", ["database", pytest.param("bucket", marks=pytest.mark.thorough)])
async def test_without_a_shared_folder_a_run_and_its_program_go_on_are_read_and_are_undone_on_another_host(
    temporal, nursery, sandbox, postgres, tmp_path, request, place
):
    shared = {
        "BACKSTAY_DATABASE_URL": await postgres.new_database(),
        "BACKSTAY_PAYLOADS": "database",
        **(bucket_of(request.getfixturevalue("s3_server")) if place == "bucket" else {}),
        "BACKSTAY_PROGRAM_FRAME_BYTES": str(8 << 20),
    }
    async with open_case(temporal, nursery, tmp_path, rules=rules, faults=Faults(), **shared) as case:
        first = await raise_host(case, "first", "all")
        run = await case.start(budget={"max_tool_calls": 20})
        async with asyncio.timeout(150):
            while not (asked := await case.person.pending(run)):
                assert (await run.describe()).close_time is None, await run.result()
                await asyncio.sleep(0.1)
        assert not {*ACCESS, "BACKSTAY_S3_ENDPOINT"} & {name for child in first for name in inherited(child)}
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
