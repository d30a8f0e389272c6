"""Jobs of plugins: bring them into a lane, and see what Temporal knows of them without asking a worker."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import PendingActivityState
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.common import Priority

from backstay.client.backstay import Backstay
from backstay.client.failures import translated_errors
from backstay.errors import RunNotFound, ToolBusy
from backstay.task.lane import ADD, DROP, METADATA, WORKFLOW, LaneJob, lane_id
from backstay.task.task import Task, fairness_key

_WITHIN = timedelta(seconds=10)
_SURE_S = 0.5
"""An attempt that waits for its turn ends at once; one that lasts longer has its turn."""
_CALLS = "call_tool"
_BEGINNING_S = (0.0, 0.1, 0.4, 1.5)
"""When to look for a run that its lane was about to start as it was told to drop the job."""


async def add_to_lane(backstay: Backstay, plugin: str, workflow_id: str, task: Task) -> None:
    """Let a job wait for its turn; this lasts, whatever ends. Raises Unreachable, and TaskInvalid.

    A job that waits, runs or has ended under this id stays as it is.
    """
    given = task.model_dump(mode="json", by_alias=True, exclude_unset=True)
    job = LaneJob(workflow_id=workflow_id, task=given, summary=task.text[:200])
    name = lane_id(backstay.task_queue, plugin)
    with translated_errors(name):
        await backstay.client.start_workflow(
            WORKFLOW,
            id=name,
            task_queue=backstay.task_queue,
            start_signal=ADD,
            start_signal_args=[job.model_dump(mode="json")],
            static_summary=f"jobs of {plugin or 'all plugins'}",
            # It is nobody's own; each job in it has the key of its user.
            priority=Priority(fairness_key=fairness_key(name)),
            rpc_timeout=_WITHIN,
        )


async def cancel_job(backstay: Backstay, plugin: str | None, workflow_id: str) -> None:
    """Take a job out of its lane, if it has one, and cancel its run, if it has begun. Raises Unreachable."""
    if plugin is not None:
        name = lane_id(backstay.task_queue, plugin)
        with suppress(RunNotFound), translated_errors(name):
            await backstay.client.get_workflow_handle(name).signal(DROP, workflow_id, rpc_timeout=_WITHIN)
    for pause in _BEGINNING_S if plugin is not None else (0.0,):
        await asyncio.sleep(pause)
        with suppress(RunNotFound), translated_errors(workflow_id):
            await backstay.client.get_workflow_handle(workflow_id).cancel(rpc_timeout=_WITHIN)
            return


async def lane_chain(backstay: Backstay, plugin: str) -> str | None:
    """Return the first run id of the lane that is open now; None where none is. Raises Unreachable."""
    with suppress(RunNotFound):
        found = await backstay.execution(lane_id(backstay.task_queue, plugin))
        return found.first_run_id if found.is_open else None
    return None


async def digest_of_job(backstay: Backstay, workflow_id: str) -> str:
    """Return the digest of the payload that asked for a job. Raises RunNotFound, TaskInvalid and Unreachable."""
    found = await backstay.execution(workflow_id)
    task = await backstay.task_of(workflow_id, found.first_run_id)
    metadata: Any = task.get("metadata")
    return str(metadata.get(METADATA, "")) if isinstance(metadata, dict) else ""


async def is_calling(client: Client, workflow_id: str) -> bool:
    """Return whether a worker carries out the call of a job, and does not merely look whether it is its turn."""
    ask = DescribeWorkflowExecutionRequest(
        namespace=client.namespace, execution=WorkflowExecution(workflow_id=workflow_id)
    )
    with translated_errors(workflow_id):
        answer = await client.workflow_service.describe_workflow_execution(ask, timeout=_WITHIN)
    for pending in answer.pending_activities:
        started = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
        if not started or pending.activity_type.name != _CALLS:
            continue
        if pending.last_failure.application_failure_info.type != ToolBusy.__name__:
            return True
        since = pending.last_started_time.ToDatetime(tzinfo=UTC)
        return (datetime.now(UTC) - since).total_seconds() > _SURE_S
    return False
