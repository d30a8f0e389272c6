"""The workers that take the work of a task queue, and why a run does not answer."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, PendingWorkflowTaskState, TaskQueueType, WorkflowExecutionStatus
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError, RPCStatusCode

from backstay.client.executions import ANSWERED_WITHIN
from backstay.client.failures import held_by_temporal, translated_errors
from backstay.errors import Unreachable
from backstay.shown import one_line

POLLED_S = 90
"""A worker that lives asks for work at least once a minute."""
SILENT_S = 5.0
"""How long a run may be left to itself before whoever waits for it is told that no worker has it."""
_LONGEST_S = 60.0
"""How far apart looks at a run come to lie that has a worker."""
_LAST_EVENTS = 20
_TIMED_OUT = {RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED}
_SILENT = {RPCStatusCode.FAILED_PRECONDITION, *_TIMED_OUT}
"""How the server says that no worker took what only a worker answers."""
_NO_POLLER = "no poller seen"
"""How the server says that a worker it still names is gone."""
_START = "start one with `backstay worker` or `backstay dev`"


async def pollers(
    client: Client, queue: str, kind: "TaskQueueType.ValueType" = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
) -> list[str]:
    """Return the names of the workers that have asked a task queue for work lately; raises RPCError."""
    return sorted(await _polled(client, queue, kind))


async def _polled(client: Client, queue: str, kind: "TaskQueueType.ValueType") -> dict[str, float]:
    """Return how many seconds ago each worker has asked for work; raises RPCError."""
    ask = DescribeTaskQueueRequest(namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind)
    described = await client.workflow_service.describe_task_queue(ask, timeout=ANSWERED_WITHIN)
    now = time.time()
    ages = {poller.identity: now - poller.last_access_time.ToSeconds() for poller in described.pollers}
    # Temporal names a worker for minutes after its end.
    return {name: max(0.0, age) for name, age in ages.items() if age < POLLED_S}


@asynccontextmanager
async def asking(client: Client, workflow_id: str) -> AsyncGenerator[None]:
    """Raise errors of backstay in place of Temporal's for what only a worker answers; they say why none has."""
    with translated_errors(workflow_id):
        try:
            yield
        except WorkflowUpdateRPCTimeoutOrCancelledError:
            why = await _silence(client, workflow_id, "")
            raise Unreachable(f"{why}; the request may still be accepted") from None
        except RPCError as error:
            if not _is_silence(error):
                raise
            raise Unreachable(await _silence(client, workflow_id, _said(error))) from None


@asynccontextmanager
async def minded(client: Client, workflow_id: str, say: Callable[[str], None]) -> AsyncGenerator[None]:
    """Say once, while the block waits for a run, that no worker has it."""
    minding = asyncio.create_task(_mind(client, workflow_id, say))
    try:
        yield
    finally:
        minding.cancel()
        await asyncio.gather(minding, return_exceptions=True)


async def _mind(client: Client, workflow_id: str, say: Callable[[str], None]) -> None:
    pause = SILENT_S
    while True:
        await asyncio.sleep(pause)
        pause = min(_LONGEST_S, 2 * pause)
        # A caller that waits is told of an outage of Temporal elsewhere.
        with suppress(RPCError):
            if (why := await _unattended(client, workflow_id)) is not None:
                say(why)
                return


async def _unattended(client: Client, workflow_id: str) -> str | None:
    """Return what to say where no worker has a run; raises RPCError."""
    described = await _described(client, workflow_id)
    if described.workflow_execution_info.HasField("close_time"):
        return None
    if _is_held(described):
        return held_by_temporal(workflow_id)
    queue, waits = described.execution_config.task_queue.name, _waits_s(described)
    ages = await _polled(client, queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
    if ages and waits < SILENT_S:
        return None
    last = f", and the last one asked {min(ages.values()):.0f} s ago" if ages else ""
    lacks = f"no worker has taken the run for {waits:.0f} s{last}" if ages else "no worker polls its task queue"
    return f"{lacks}: the run waits for a worker of the task queue {_quoted(queue)}; {_START}"


def _is_held(described: DescribeWorkflowExecutionResponse) -> bool:
    """Return whether Temporal itself has paused a run."""
    return described.workflow_execution_info.status == WorkflowExecutionStatus.WORKFLOW_EXECUTION_STATUS_PAUSED


def _waits_s(described: DescribeWorkflowExecutionResponse) -> float:
    """Return for how long a run has had something to do that no worker has taken."""
    task = described.pending_workflow_task
    if task.state != PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED:
        return 0.0
    return max(0.0, time.time() - task.scheduled_time.ToSeconds())


async def _silence(client: Client, workflow_id: str, said: str) -> str:
    """Return why a run did not answer; `said` is what Temporal itself says of it."""
    try:
        described = await _described(client, workflow_id)
        if _is_held(described):
            return held_by_temporal(workflow_id)
        queue = described.execution_config.task_queue.name
        ages = await _polled(client, queue, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)
        fault = await _failing(client, workflow_id) if described.pending_workflow_task.attempt > 1 else ""
    except RPCError as error:
        return f"Temporal does not answer: {one_line(error.message, 300)}"
    if not ages or _NO_POLLER in said:
        return f"no worker answers: none polls the task queue {_quoted(queue)}; {_START}, and open runs continue"
    if fault or "failed state" in said:
        return f"the run cannot answer, because its worker cannot continue it: {fault or said}"
    workers = "a worker" if len(ages) == 1 else f"one of {len(ages)} workers"
    events = described.workflow_execution_info.history_length
    return (
        f"the run has not answered yet{f' ({said})' if said else ''}: {workers} asked the task queue {_quoted(queue)} "
        f"for work {min(ages.values()):.0f} s ago, and may be busy with the {events:,} events of the run, or gone; "
        "ask again in a minute"
    )


async def _described(client: Client, workflow_id: str) -> DescribeWorkflowExecutionResponse:
    named = WorkflowExecution(workflow_id=workflow_id)
    ask = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=named)
    return await client.workflow_service.describe_workflow_execution(ask, timeout=ANSWERED_WITHIN)


async def _failing(client: Client, workflow_id: str) -> str:
    """Return why the last workflow task of a run failed; empty where that is not it; raises RPCError."""
    named = WorkflowExecution(workflow_id=workflow_id)
    ask = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace, execution=named, maximum_page_size=_LAST_EVENTS
    )
    found = await client.workflow_service.get_workflow_execution_history_reverse(ask, timeout=ANSWERED_WITHIN)
    for event in found.history.events:
        match event.event_type:
            case EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
                return ""
            case EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED:
                failure = event.workflow_task_failed_event_attributes.failure
                kind = failure.application_failure_info.type
                return one_line(f"{kind}: {failure.message}" if kind else failure.message, 300)
            case _:
                continue
    return ""


def _is_silence(error: RPCError) -> bool:
    if "total number of distinct updates" in error.message:
        return False
    return error.status in _SILENT or (
        error.status is RPCStatusCode.INVALID_ARGUMENT and "failed state" in error.message
    )


def _said(error: RPCError) -> str:
    """Return what Temporal says, where it is more than that time is up."""
    return one_line(error.message, 300) if error.status not in _TIMED_OUT else ""


def _quoted(queue: str) -> str:
    return f"{one_line(queue, 200)!r}"
