"""A run that does not answer says why, and whoever waits for one without a worker is told once."""

import asyncio
import logging
import sys
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay import execute_mcp_task
from backstay.client import Backstay
from backstay.client import run as client_run
from backstay.client.connecting import DATA_CONVERTER
from backstay.client.failures import UPDATES
from backstay.errors import SettingsInvalid, Unreachable
from tests.cli.commands import bare, environment_of, forked
from tests.engine import Engine, Mailbox, Scripts, engine
from tests.nursery.nursery import COMMAND
from tests.requirements import promise


@workflow.defn(name="RunTask", sandboxed=False)
class Broken:
    """A run that its worker cannot continue."""

    @workflow.run
    async def run(self, _: dict[str, str]) -> None:
        raise ValueError("broken by a test")


@asynccontextmanager
async def run_on(client, queue):
    run = await Backstay(client, task_queue=queue).start("Do it.")
    yield run
    await client.get_workflow_handle(run.id).terminate()


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(client_run, "ANSWERED_WITHIN", timedelta(seconds=1))
    return f"queue-{uuid.uuid4()}"


@promise("clients:unanswered")
async def test_a_run_without_a_worker_names_the_task_queue_that_none_polls(temporal, queue):
    async with run_on(temporal, queue) as run:
        with pytest.raises(Unreachable, match=f"no worker answers: none polls the task queue '{queue}'; start one"):
            await run.status()


@promise("clients:unanswered")
async def test_a_run_that_its_worker_cannot_continue_says_what_is_wrong(temporal, queue):
    options = {"workflow_runner": UnsandboxedWorkflowRunner(), "build_id": "broken"}
    async with Worker(temporal, task_queue=queue, workflows=[Broken], **options), run_on(temporal, queue) as run:
        async with asyncio.timeout(150):
            while "cannot continue" not in (said := await unanswered(run)):
                await asyncio.sleep(0.2)

    assert said == "the run cannot answer, because its worker cannot continue it: ValueError: broken by a test"


@promise("clients:unanswered")
async def test_a_run_whose_worker_lives_and_is_busy_is_not_said_to_have_none(temporal, queue):
    async with run_on(temporal, queue) as run:
        # Like a worker that is at work for long: it takes what there is to do, and says nothing yet.
        ask = PollWorkflowTaskQueueRequest(
            namespace=temporal.namespace, task_queue=TaskQueue(name=queue), identity="busy@here"
        )
        await temporal.workflow_service.poll_workflow_task_queue(ask, timeout=timedelta(seconds=20))
        said = await unanswered(run)

    assert said.startswith("the run has not answered yet")
    assert f"a worker asked the task queue '{queue}' for work" in said
    assert "no worker" not in said


@promise("clients:updates-off")
async def test_a_server_that_takes_no_updates_is_named_with_the_setting_and_not_as_wrong_credentials(nursery, tmp_path):
    binary = str(Path(sys.executable).parent / "temporal")
    off = [f"{UPDATES[0]}=false", f"{UPDATES[1]}=false"]
    options = {"dev_server_extra_args": [argument for each in off for argument in ("--dynamic-config-value", each)]}
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=binary, **options
    ) as own:
        async with run_on(own.client, "nobody") as run:
            with pytest.raises(SettingsInvalid, match=f"^{UPDATES[0]}: .+; switch it on in the dynamic"):
                await run.pause(by="ana")
        address = own.client.service_client.config.target_host
        environment = bare(TEMPORAL_ADDRESS=address, BACKSTAY_NSJAIL="/none", BACKSTAY_HOME=str(tmp_path / "home"))
        done = await forked(nursery, "doctor", environment=environment, folder=tmp_path)

    (line,) = [line for line in done.out.splitlines() if line.split()[1] == "updates"]
    assert line.startswith("missing  updates")
    assert UPDATES[0] in line


async def unanswered(run):
    with pytest.raises(Unreachable) as caught:
        await run.status()
    return str(caught.value)


@promise("clients:no-worker")
async def test_a_command_that_waits_without_a_worker_says_so_once_and_goes_on_when_one_comes(
    temporal, nursery, tmp_path
):
    scripts = Scripts()
    async with engine(temporal, tmp_path / "other", scripts) as other:
        alone = other.settings.model_copy(update={"task_queue": f"queue-{uuid.uuid4()}"})
        environment = environment_of(Engine(temporal, alone, Mailbox(tmp_path / "none.db"), other.model))
        text = scripts.task()["text"]
        files = {"out": tmp_path / "out", "log": tmp_path / "err"}
        child = await nursery.raised(COMMAND, "run", text, environment=environment, folder=tmp_path, **files)
        line = f"waits for a worker of the task queue '{alone.task_queue}'; start one with `backstay worker`"
        async with asyncio.timeout(150):
            while line not in " ".join(child.said().split()):
                await asyncio.sleep(0.1)
        async with engine(temporal, tmp_path / "own", scripts, task_queue=alone.task_queue):
            code = await child.ended(60)

    assert (code, child.answered()) == (0, "done\n")
    assert " ".join(child.said().split()).count(line) == 1


@promise("clients:no-worker")
@pytest.mark.thorough
async def test_a_program_that_waits_without_a_worker_is_told_in_its_log(tmp_path, monkeypatch, caplog):
    scripts = Scripts()
    task = scripts.task()
    binary = str(Path(sys.executable).parent / "temporal")
    # A server of its own: the queue's name is the one that programs use when nobody says otherwise.
    async with await WorkflowEnvironment.start_local(
        data_converter=DATA_CONVERTER, dev_server_existing_path=binary
    ) as own:
        monkeypatch.setenv("TEMPORAL_ADDRESS", own.client.service_client.config.target_host)
        with caplog.at_level(logging.WARNING, "backstay.client"):
            waiting = asyncio.create_task(execute_mcp_task(task["text"]))
            async with asyncio.timeout(150):
                while not caplog.messages:
                    await asyncio.sleep(0.1)
            async with engine(own.client, tmp_path, scripts, task_queue="backstay"):
                result = await waiting

    assert result.success
    assert caplog.messages == [
        (
            "no worker polls its task queue: the run waits for a worker of the task queue 'backstay'; "
            "start one with `backstay worker` or `backstay dev`"
        )
    ]
