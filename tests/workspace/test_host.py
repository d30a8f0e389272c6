"""The host of workspaces: a process without secrets, which may die at any time."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import pytest_asyncio

from activities.resources import Resources
from backstay.errors import IsolationUnavailable, SandboxLost, StoreUnavailable, WorkspaceBusy
from backstay.policies.command_lists import CommandLists
from sandbox.workspaces.client import WorkspaceClient, open_workspace_client, plain_environment
from sandbox.workspaces.workspace import WorkspaceSettings
from tests.requirements import promise
from tests.sandbox.places import HOUSE
from toolbox.providers.answer import Answer
from toolbox.providers.provider import ProviderCall, WorkspaceAccess
from toolbox.workspace.provider import NO_WORKSPACE, WorkspaceProvider, workspace_providers

pytestmark = pytest.mark.timeout(600)


def settings_of(area: Path) -> WorkspaceSettings:
    return WorkspaceSettings(home=area, workspaces=area / "workspaces", artifacts_mb=50)


@pytest_asyncio.fixture(scope="module")
async def client(area) -> AsyncGenerator[WorkspaceClient]:
    environment = plain_environment(os.environ | {"OPENAI_API_KEY": "a-secret-of-the-worker"})
    opened = WorkspaceClient(settings_of(area), rooms=HOUSE, environment=environment)
    await opened.start()
    yield opened
    await opened.close()


async def until(path: Path) -> None:
    async with asyncio.timeout(150):
        while not path.exists():  # noqa: ASYNC240 - nothing else waits
            await asyncio.sleep(0.02)


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "XZ"
    except OSError:
        return True


@promise("workspaces:host")
@pytest.mark.thorough
async def test_the_host_holds_no_secret_of_its_worker(client):
    told = environment_of(client.pid)
    assert b"secret" not in told
    assert {line.partition(b"=")[0] for line in told.split(b"\0") if line} <= {
        b"PATH", b"LANG", b"LC_ALL", b"TZ", b"TMPDIR", b"VIRTUAL_ENV", b"PYTHONPATH",
    }  # fmt: skip


@promise("workspaces:streamed")
async def test_what_a_command_says_is_heard_while_it_runs(client, area):
    heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    running = asyncio.create_task(
        client.call(
            workspace="heard", run="r", tool="run", writable=True, effect="e1", seconds=60.0,
            arguments={"command": "echo first; while [ ! -e go ]; do sleep 0.1; done; echo last"},
            hearing=lambda stream, text: heard.put_nowait((stream, text)),
        )
    )  # fmt: skip
    assert await asyncio.wait_for(heard.get(), 150) == ("stdout", "first\n")
    assert not running.done()
    (area / "workspaces/heard/go").touch()
    assert (await running)["ok"]["stdout"] == "first\nlast\n"


@promise("workspaces:host")
async def test_a_host_that_dies_in_mid_command_is_started_again_and_nothing_half_done_is_left(client, area):
    done = {"workspace": "killed", "run": "r", "writable": True, "seconds": 60.0}
    await client.call(tool="write_file", arguments={"path": "kept", "content": "1"}, effect="e1", **done)
    running = asyncio.create_task(
        client.call(tool="run", arguments={"command": "echo > half; sleep 300"}, effect="e2", **done)
    )
    await until(area / "workspaces/killed/half")
    first = client.pid
    os.kill(first, signal.SIGKILL)
    with pytest.raises(SandboxLost):
        await running
    said = await client.call(tool="outcome", arguments={"effect": "e2"}, effect=None, **done)
    assert said["ok"] == {"applied": False, "answer": None}
    assert client.pid != first
    assert [path.name for path in (area / "workspaces/killed").iterdir()] == ["kept"]


@promise("workspaces:host")
async def test_a_command_that_nobody_waits_for_any_more_is_ended_and_undone(client, area):
    running = asyncio.create_task(
        client.call(
            workspace="dropped", run="r", tool="run", writable=True, effect="e1", seconds=60.0,
            arguments={"command": "echo > half; sleep 300"},
        )
    )  # fmt: skip
    await until(area / "workspaces/dropped/half")
    running.cancel()
    await asyncio.wait({running})
    said = await client.call(workspace="dropped", run="r", tool="list_directory", arguments={}, writable=True)
    assert said["ok"]["entries"] == []


@promise("workspaces:claims")
async def test_two_runs_on_one_workspace_are_told_apart_by_name_and_a_closed_one_makes_room(client):
    async def closed(run: str) -> bool:
        return run == "first"

    assert await client.claim("shared", "first") == "shared"
    with pytest.raises(WorkspaceBusy, match="in use by run first"):
        await client.claim("shared", "second")
    client.is_over = closed
    assert await client.claim("shared", "second") == "shared"
    assert await client.holder("shared") == "second"
    assert await client.release("shared", "second")
    assert await client.holder("shared") is None


@promise("workspaces:claims")
async def test_a_workspace_in_use_is_called_busy_while_nobody_can_be_asked_whether_its_run_is_over(client):
    async def away(*_: str) -> None:
        raise StoreUnavailable

    resources = SimpleNamespace(store=SimpleNamespace(runs=SimpleNamespace(get=away)))
    client.is_over = partial(Resources.is_over, resources)
    assert await client.claim("kept", "first/r") == "kept"
    with pytest.raises(WorkspaceBusy, match="in use by run first"):
        await client.claim("kept", "second/r")


WORKER = """
import asyncio, os, sys
from pathlib import Path
from sandbox.workspaces.client import WorkspaceClient, plain_environment
from sandbox.workspaces.workspace import WorkspaceSettings
async def main():
    area = Path(sys.argv[1])
    settings = WorkspaceSettings(home=area, workspaces=area / "workspaces")
    client = WorkspaceClient(settings, rooms=Path(sys.argv[2]), environment=plain_environment(os.environ))
    await client.start()
    print(client.pid, flush=True)
    await client.call(workspace="orphan", run="r", tool="run", writable=True, effect="e1", seconds=60.0,
                      arguments={"command": "echo > half; sleep 300"})
asyncio.run(main())
"""


@promise("workspaces:host")
@pytest.mark.thorough
async def test_a_worker_that_is_killed_takes_host_and_jails_with_it(client, area):
    environment = {"PYTHONPATH": str(HOUSE), "PATH": os.environ["PATH"]}
    command = (sys.executable, "-c", WORKER, str(area), str(HOUSE))
    worker = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - at once
    assert worker.stdout is not None
    host = int(await asyncio.to_thread(worker.stdout.readline))
    await until(area / "workspaces/orphan/half")
    jails = children_of(host)
    assert jails
    worker.kill()
    worker.wait()
    async with asyncio.timeout(150):
        while not all(map(gone, (host, *jails))):
            await asyncio.sleep(0.05)
    said = await client.call(workspace="orphan", run="r", tool="list_directory", arguments={}, writable=True)
    assert said["ok"]["entries"] == []


@promise("workspaces:isolation")
async def test_without_isolation_there_is_no_host_and_the_reason_is_given(area):
    settings = settings_of(area).model_copy(update={"nsjail": Path("/nowhere/nsjail")})
    client = WorkspaceClient(settings, rooms=HOUSE, environment=plain_environment(os.environ))
    with pytest.raises(IsolationUnavailable, match="does not exist"):
        await client.start()
    listed = await workspace_providers(client)["shell"].list()
    assert listed.reason is not None
    assert "BACKSTAY_NSJAIL" in listed.reason
    await client.close()


@promise("workspaces:host")
@pytest.mark.thorough
async def test_where_an_operator_named_a_folder_the_host_starts_with_its_worker(area):
    named = {"home": area, "nsjail": None, "rooms": HOUSE, "variables": os.environ}
    async with open_workspace_client(workspaces=area / "workspaces", **named) as begun:
        async with asyncio.timeout(300):
            while begun.pid is None:
                await asyncio.sleep(0.05)
        await begun.claim("begun", "r")
        pid = begun.pid
        assert await begun.release("begun", "r")
        assert begun.pid == pid
    assert gone(pid)
    async with open_workspace_client(workspaces=None, **named) as lazy:
        assert lazy.pid is None


def call_of(tool: str, *, effect: str | None = None, run: str = "r", **arguments) -> ProviderCall:
    async def sent() -> None:
        return None

    return ProviderCall(
        tool=tool, arguments=arguments, deadline_s=60, effect_id=effect, before_send=sent if effect else None,
        workspace_access=WorkspaceAccess(run=run, workspace="provided", writable=True),
    )  # fmt: skip


@promise("workspaces:lists")
async def test_a_provider_calls_shows_and_refuses(client):
    files, shell = (workspace_providers(client, CommandLists(deny=("rm",)))[name] for name in ("fs", "shell"))
    assert isinstance(files, WorkspaceProvider)
    assert "+x" in (await files.preview(call_of("write_file", path="a", content="x")) or "")
    written = await files.call(call_of("write_file", effect="p1", path="a", content="x"))
    assert written.success
    assert written.data["before"] != written.data["after"]
    assert (await files.call(call_of("read_file", path="a"))).data["content"] == "x"
    refused = await shell.call(call_of("run", effect="p2", command="rm a"))
    assert (refused.success, refused.data["allowed"], refused.data["exit_code"]) == (False, False, 126)
    ran = await shell.call(call_of("run", effect="p3", command="cat a", timeout_s=20))
    assert (ran.data["stdout"], ran.data["exit_code"]) == ("x", 0)
    busy = await files.call(call_of("read_file", run="other", path="a"))
    assert busy == Answer(success=False, error=busy.error)
    assert "in use by run r" in (busy.error or "")
    lost = ProviderCall(tool="read_file", arguments={"path": "a"}, deadline_s=5)
    assert (await files.call(lost)).error == NO_WORKSPACE


@promise("workspaces:one-outcome")
async def test_a_command_that_asks_for_more_time_than_its_answer_has_ends_before_that(client):
    shell = workspace_providers(client)["shell"]
    call = replace(call_of("run", effect="p4", command="sleep 50", timeout_s=50), deadline_s=10)
    assert (await shell.call(call)).data["exit_code"] == 124
