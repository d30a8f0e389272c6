"""The roles of a worker: programs run in a process that holds no secret and knows no tool."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from temporalio import activity
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.worker import Worker

from backstay.client.roles import polls_here
from backstay.testing import Reply
from examples.mailbox.faults import Faults
from tests.cli.commands import HOUSE, bare, environment_of, forked, until_polled
from tests.cli.test_dev import descendants_of, nothing_left
from tests.engine import share_images, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import OPERATORS_WORKER
from tests.requirements import promise

SECRETS = {
    "OPENAI_API_KEY": "made-up-key-of-a-model",
    "BACKSTAY_APPROVER_KEY": "made-up-key-of-an-approver",
    "BACKSTAY_NOTIFY_URLS": "http://127.0.0.1:9/made-up-token-of-a-receiver",
    "MAIL_TOKEN": "made-up-token-of-a-mailbox",
}
FOREIGN = ("aiosqlite", "alembic", "mcp", "openai", "sqlalchemy", "toolbox.manifest", "toolbox.bindings", "workflows")


@asynccontextmanager
async def worker_of_all_roles(folder, temporal, nursery):
    async with open_mailbox(folder / "mailbox.db", Faults()) as address:
        environment = bare(
            TEMPORAL_ADDRESS=temporal.service_client.config.target_host,
            BACKSTAY_HOME=str(share_images(folder / "home")),
            BACKSTAY_TOOLBOX=str(toolbox_of(folder, folder / "mailbox.db", address=address)),
            BACKSTAY_TASK_QUEUE=f"queue-of-{folder.name}",
            **SECRETS,
        )
        log = folder / "worker.log"
        child = await nursery.raised(OPERATORS_WORKER, environment=environment, log=log, folder=folder)
        try:
            yield child
        finally:
            child.kill(signal.SIGTERM)
            await asyncio.wait_for(asyncio.shield(child.died), 150)
            await nothing_left(folder)


def sandbox_role_of(folder):
    """Return the process that starts jails, and what it was told."""
    for pid, line in descendants_of(folder):
        if b"worker.py --role sandbox" in line and b"launcher" not in line:
            with suppress(OSError):
                return pid, Path(f"/proc/{pid}/environ").read_bytes().decode()
    return None, ""


@promise("sandbox:role")
async def test_the_sandbox_role_is_told_no_secret_and_is_started_again_however_often_it_dies(
    temporal, nursery, tmp_path
):
    async with worker_of_all_roles(tmp_path, temporal, nursery) as child:
        await child.ready()
        (ready,) = [line for line in child.said().splitlines() if "backstay worker ready:" in line]
        first, told = sandbox_role_of(tmp_path)
        for _ in range(2):
            # The second one dies before it is ready.
            killed = sandbox_role_of(tmp_path)[0]
            os.kill(killed, signal.SIGKILL)
            async with asyncio.timeout(150):
                while sandbox_role_of(tmp_path)[0] in (killed, None):
                    await asyncio.sleep(0.05)
        async with asyncio.timeout(150):
            while "sandbox.back" not in child.said():
                await asyncio.sleep(0.05)
        lines = child.said().splitlines()

    assert sandbox_role_of(tmp_path)[0] is None
    assert [line.count("sandbox.lost") for line in lines if "sandbox." in line] == [1, 1, 0]
    assert first is not None
    assert ready.endswith("programs in jails")
    assert "BACKSTAY_HOME=" in told
    assert "TEMPORAL_ADDRESS=" in told
    assert [secret for secret in SECRETS.values() if secret in told] == []
    assert [name for name in SECRETS if f"{name}=" in told] == []


@promise("sandbox:role-code")
async def test_the_sandbox_role_loads_no_code_that_knows_a_model_a_tool_or_a_database():
    code = f"import sys, worker; print([name for name in {FOREIGN} if name in sys.modules])"
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=HOUSE, env=bare(), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()

    assert out.decode() == "[]\n"


@promise("deployment:health")
async def test_the_health_of_a_worker_is_that_it_asks_for_work_from_this_host(open_engine, nursery, tmp_path):
    async with open_engine(lambda _: Reply(text="done")) as opened:
        here = environment_of(opened)
        async with asyncio.timeout(150):
            while not await polls_here(opened.client, opened.settings, "runs"):
                await asyncio.sleep(0.05)
        well = await forked(nursery, "health", environment=here, folder=tmp_path)
        sandbox = await forked(nursery, "health", "--role", "sandbox", environment=here, folder=tmp_path)
    nowhere = await forked(
        nursery, "health", environment={**here, "BACKSTAY_TASK_QUEUE": "nobody-polls"}, folder=tmp_path
    )
    address = {**here, "TEMPORAL_ADDRESS": "127.0.0.1:9"}
    unreachable = await forked(nursery, "health", environment=address, folder=tmp_path)

    assert (well.code, well.err) == (0, "")
    assert f"role runs on {socket.gethostname()} asks for work" in well.out
    assert [done.code for done in (sandbox, nowhere, unreachable)] == [1, 1, 1]
    assert "no worker of role sandbox" in sandbox.err
    assert "no worker of role runs" in nowhere.err
    assert "127.0.0.1:9" in unreachable.err


@activity.defn
async def nothing() -> None:
    """Be served by a worker."""


@promise("deployment:health-of-a-child")
async def test_the_sandbox_role_of_a_worker_that_uses_a_file_is_looked_for_where_the_file_says(
    temporal, nursery, tmp_path
):
    queue, name = f"queue-of-{tmp_path.name}", f"1@{socket.gethostname()}/0"
    address = temporal.service_client.config.target_host
    (tmp_path / ".env").write_text(f"TEMPORAL_ADDRESS={address}\n", encoding="utf-8")
    # At the usual address there may be another engine, but none serves this queue.
    own = {"BACKSTAY_HOME": str(tmp_path / "home"), "BACKSTAY_TASK_QUEUE": queue}
    trusting = bare(BACKSTAY_TRUSTED=str(tmp_path), **own)
    asked = ("health", "--role", "sandbox")
    nobody = await forked(nursery, *asked, environment=trusting, folder=tmp_path)
    async with Worker(temporal, task_queue=f"{queue}-sandbox", activities=[nothing], identity=name):
        await until_polled(temporal, f"{queue}-sandbox", TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY)
        well = await forked(nursery, *asked, environment=trusting, folder=tmp_path)
        strange = await forked(nursery, *asked, environment={**trusting, "BACKSTAY_TRUSTED": ""}, folder=tmp_path)

    assert (nobody.code, well.code, strange.code) == (1, 0, 1)
    assert "no worker of role sandbox" in nobody.err
    assert "asks for work" in well.out


@promise("deployment:secrets-not-handed")
async def test_a_process_that_becomes_a_worker_is_not_handed_what_stands_in_secret_files(temporal, tmp_path):
    (tmp_path / "held").mkdir()
    (tmp_path / "held/OPENAI_API_KEY").write_text(SECRETS["OPENAI_API_KEY"], encoding="utf-8")
    environment = bare(
        TEMPORAL_ADDRESS=temporal.service_client.config.target_host,
        BACKSTAY_HOME=str(tmp_path / "home"),
        BACKSTAY_TASK_QUEUE=f"queue-of-{tmp_path.name}",
        BACKSTAY_SECRET_FILES=str(tmp_path / "held"),
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backstay", "worker", "--role", "runs"),
        env=environment,
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    place = Path(f"/proc/{process.pid}")
    try:
        # As soon as it is the worker, and before that has imported anything.
        async with asyncio.timeout(150):
            while b"worker.py" not in await asyncio.to_thread((place / "cmdline").read_bytes):
                await asyncio.sleep(0.01)
        told = await asyncio.to_thread((place / "environ").read_text)
    finally:
        process.kill()
        await asyncio.wait_for(process.wait(), 150)

    assert "BACKSTAY_SECRET_FILES=" in told
    assert SECRETS["OPENAI_API_KEY"] not in told
