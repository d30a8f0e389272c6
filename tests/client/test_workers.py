"""A run that does not answer says why."""

import asyncio
import uuid
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from temporalio import workflow
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollWorkflowTaskQueueRequest
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay.client import Backstay
from backstay.client import run as client_run
from backstay.errors import Unreachable
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
        async with asyncio.timeout(40):
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


async def unanswered(run):
    with pytest.raises(Unreachable) as caught:
        await run.status()
    return str(caught.value)
