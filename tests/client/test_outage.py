"""A client outlives the Temporal server's restart, and says which of server and worker is silent."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from backstay.client import Backstay
from backstay.client import run as client_run
from backstay.errors import Unreachable
from backstay.task.result import Outcome
from backstay.testing import Reply
from gateways.terminal.local.embedded import start_temporal
from tests.engine import Scripts, engine
from tests.ports import own_port
from tests.requirements import promise


def place_in(folder):
    return {
        "port": own_port(),
        "ui_port": None,
        "database": folder / "temporal.db",
        "log": folder / "temporal.log",
        "environment": {"PATH": os.environ["PATH"]},
    }


@promise("clients:outages")
@pytest.mark.thorough
@pytest.mark.timeout(400)
async def test_events_and_result_go_on_over_a_restart_of_temporal(tmp_path):
    scripts = Scripts()
    task = scripts.task(
        Reply(calls=[("mail__send_email", {"to": "one@outage.example", "subject": "s", "body": "b"})]),
    )
    place = place_in(tmp_path)
    server = await start_temporal(**place)
    try:
        client = await server.client()
        async with engine(client, tmp_path, scripts) as opened:
            run = await Backstay(client, task_queue=opened.settings.task_queue).start(task)
            names = []
            asked = asyncio.Event()

            async def follow():
                async for event in run.events():
                    names.append(event.name)
                    if event.name == "approval.asked":
                        asked.set()

            following = asyncio.create_task(follow())
            resulting = asyncio.create_task(run.result())
            async with asyncio.timeout(150):
                await asked.wait()
            await server.child.stop(10)
            server = await start_temporal(**place)
            async with asyncio.timeout(150):
                await Backstay(await server.client()).run(run.id).approve("r1", by="ana")
                await following
                result = await resulting
    finally:
        await server.child.stop(10)

    assert result.outcome is Outcome.COMPLETED
    assert (names.count("approval.asked"), names[-1]) == (1, "run.ended")


async def stopped(pid):
    """Stop a process, and wait until its last thread has stopped."""
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(150):
        while not _is_still(pid):
            await asyncio.sleep(0.01)


def _is_still(pid):
    states = [stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")]
    return set(states) == {"T"}


@promise("clients:outages")
async def test_a_temporal_that_is_silent_is_told_from_a_worker_that_is(tmp_path, monkeypatch):
    monkeypatch.setattr(client_run, "ANSWERED_WITHIN", timedelta(seconds=1))
    server = await start_temporal(**place_in(tmp_path))
    try:
        run = await Backstay(await server.client(), task_queue="no worker polls this").start("Do it.")
        with pytest.raises(Unreachable, match="no worker answers"):
            await run.status()
        await stopped(server.child.process.pid)
        with pytest.raises(Unreachable, match="Temporal does not answer"):
            await run.cancel()
    finally:
        server.child.kill()
        await server.child.ended()
