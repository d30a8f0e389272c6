"""What Temporal itself knows of runs, without asking the runs: it needs no worker."""

import contextlib
import hashlib
from collections.abc import AsyncGenerator
from datetime import UTC, timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution as NamedExecution
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflow.v1 import WorkflowExecutionInfo
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest, ListWorkflowExecutionsRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle
from temporalio.converter import decode_typed_search_attributes
from temporalio.service import RPCError, RPCStatusCode

from backstay.client.failures import error_from_rpc, translated_errors
from backstay.errors import RunNotFound, TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import one_line

RUNS = "WorkflowType IN ('RunTask', 'UndoRun')"
"""What Temporal is asked for when runs are listed."""
NOT_CONTINUED = "ExecutionStatus != 'ContinuedAsNew'"
"""Each execution of a run that goes on as a new one is a row of its own; this leaves the newest."""
_ENDED = "'Completed', 'Failed', 'Canceled', 'Terminated', 'TimedOut'"
_ENDS = frozenset({"completed", "failed", "canceled", "terminated", "timed_out", "continued_as_new"})
CLOSED = f"ExecutionStatus IN ({_ENDED})"
OPEN = f"ExecutionStatus NOT IN ({_ENDED}, 'ContinuedAsNew')"
"""Those that Temporal itself has paused are open; servers that cannot pause refuse to be asked for them by name."""
UNDO = "undo-"
"""How the workflow id of a run begins that undoes another one after its end."""
ANSWERED_WITHIN = timedelta(seconds=10)
_ASKED_WITHIN = timedelta(seconds=5)
_MOST_AT_ONCE = 1000
_DUE = "TemporalScheduledStartTime"
_LONGEST_ID = 1000
"""Bytes of a workflow id that Temporal takes."""
SEARCH_ATTRIBUTES = {
    "BackstayState": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "BackstayUser": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "BackstayPending": IndexedValueType.INDEXED_VALUE_TYPE_INT,
    "BackstayCostUsd": IndexedValueType.INDEXED_VALUE_TYPE_DOUBLE,
    "BackstayTask": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
}


def undo_id(workflow_id: str) -> str:
    """Return the workflow id of the undo of an ended run; of a long id it has only the digest."""
    named = f"{UNDO}{workflow_id}"
    if len(named.encode("utf-8", "replace")) <= _LONGEST_ID:
        return named
    return f"{UNDO}{hashlib.sha256(workflow_id.encode('utf-8', 'replace')).hexdigest()}"


class Execution(Frozen):
    """Hold what Temporal knows of a run."""

    workflow_id: str
    first_run_id: str
    """The run id of its first execution, as far as Temporal says it; in a list, of the execution itself."""
    run_id: str
    """The run id of the execution itself."""
    kind: str
    """`RunTask` or `UndoRun`."""
    status: str
    """Temporal's own word in small letters; `running` for an open run, also for one that Temporal itself has paused."""
    started_at: float
    """Unix seconds, as all times here."""
    closed_at: float | None = None
    state: str = ""
    """What the run says that it does; empty where the namespace has no search attributes."""
    waiting: int = 0
    """How many requests of it wait for people."""
    user_id: str = ""
    task: str = ""
    """Its line; empty where it may not be there."""
    task_queue: str = ""
    parent_id: str | None = None
    """The workflow that has started it, if one has."""

    @property
    def is_open(self) -> bool:
        """Return whether the run is open."""
        return self.status == "running"


async def described(client: Client, workflow_id: str, run_id: str | None = None) -> Execution:
    """Return what Temporal knows of a run, the newest one of that name; raises RunNotFound or Unreachable."""
    with translated_errors(workflow_id):
        info = await _info(client, workflow_id, run_id or "")
    return Execution(
        workflow_id=workflow_id,
        first_run_id=info.first_run_id or info.execution.run_id,
        run_id=info.execution.run_id,
        kind=info.type.name,
        status=_status(info),
        started_at=info.start_time.ToMilliseconds() / 1000,
        task_queue=info.task_queue,
        closed_at=info.close_time.ToMilliseconds() / 1000 if info.HasField("close_time") else None,
    )


async def first_of(client: Client, workflow_id: str, run_id: str) -> str:
    """Return the run id of the first execution of the run to which an execution belongs; raises Unreachable.

    Temporal forgets each execution of a run by itself, of an open run too; one that it does not know counts as a first.
    """
    try:
        return (await described(client, workflow_id, run_id)).first_run_id
    except RunNotFound:
        return run_id


async def _info(client: Client, workflow_id: str, run_id: str, *, retry: bool = False) -> WorkflowExecutionInfo:
    named = NamedExecution(workflow_id=workflow_id, run_id=run_id)
    ask = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=named)
    service = client.workflow_service
    answer = await service.describe_workflow_execution(ask, retry=retry, timeout=ANSWERED_WITHIN)
    return answer.workflow_execution_info


async def began_at(client: Client, workflow_id: str, run_id: str) -> float:
    """Return when an execution began, or the first one that led to it, or when a schedule was to start that one.

    Raises RPCError.
    """
    first = own = await _info(client, workflow_id, run_id, retry=True)
    root = own.root_execution
    if root.workflow_id and root.run_id != own.execution.run_id:
        try:
            first = await _info(client, root.workflow_id, root.run_id, retry=True)
        except RPCError as error:
            # Temporal keeps no run that ended long ago; then only its own start is known.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
    starts = [info.start_time.ToDatetime(UTC) for info in (own, first)]
    return min([*starts, _attributes(first).get(_DUE, starts[0])]).timestamp()


async def open_executions(client: Client, limit: int, named: str = "") -> list[Execution]:
    """Return the open runs that Temporal knows, the newest first; raises Unreachable.

    `named`: only those whose workflow ID begins so, wherever they stand among others.
    """
    begins = named.replace("'", "''")
    asked = f"({RUNS}) AND {OPEN}"
    asked += f" AND WorkflowId STARTS_WITH '{begins}'" if named else ""
    found = [run async for run in listed(client, asked, limit)]
    return sorted(found, key=lambda run: run.started_at, reverse=True)


async def listed(client: Client, query: str, limit: int) -> AsyncGenerator[Execution]:
    """Yield the executions that a query of Temporal's visibility finds, open ones first; raises Unreachable.

    Temporal's client fails at an execution in a state that it has no name for; here it is open.
    """
    ask = ListWorkflowExecutionsRequest(namespace=client.namespace, query=query)
    while limit > 0:
        ask.page_size = min(limit, _MOST_AT_ONCE)
        try:
            page = await client.workflow_service.list_workflow_executions(ask, retry=True)
        except RPCError as error:
            raise error_from_rpc(error, "") from None
        for info in page.executions:
            yield _listed(info)
        limit -= len(page.executions)
        ask.next_page_token = page.next_page_token
        if not page.next_page_token:
            return


async def task_of(client: Client, workflow_id: str, first_run_id: str) -> dict[str, Any]:
    """Return the task with which a run was started, as it was sent; raises TaskInvalid where it is none."""
    kind, given = await started_with(client, workflow_id, first_run_id)
    if kind != "RunTask" or given is None:
        raise TaskInvalid(f"follows: {one_line(workflow_id, 100)} is not a run of a task")
    return given if isinstance(given, dict) else {}


async def started_with(client: Client, workflow_id: str, first_run_id: str) -> tuple[str, Any]:
    """Return the type of a workflow and what it was started with; None where that is nothing.

    Raises RunNotFound or Unreachable.
    """
    try:
        return await _given_to(client, workflow_id, first_run_id)
    except RunNotFound:
        # Temporal forgets each execution by itself; a run hands on to the next what it was started with.
        if (await described(client, workflow_id)).first_run_id != first_run_id:
            raise
    return await _given_to(client, workflow_id, None)


async def _given_to(client: Client, workflow_id: str, run_id: str | None) -> tuple[str, Any]:
    execution: WorkflowHandle[Any, Any] = client.get_workflow_handle(workflow_id, run_id=run_id)
    with translated_errors(workflow_id):
        history = execution.fetch_history_events(page_size=1, rpc_timeout=ANSWERED_WITHIN)
        started = (await anext(history)).workflow_execution_started_event_attributes
    given = await client.data_converter.decode(started.input.payloads)
    return started.workflow_type.name, given[0] if given else None


def _listed(info: WorkflowExecutionInfo) -> Execution:
    known = _attributes(info)
    return Execution(
        workflow_id=info.execution.workflow_id,
        first_run_id=info.execution.run_id,
        run_id=info.execution.run_id,
        kind=info.type.name,
        status=_status(info),
        started_at=info.start_time.ToMilliseconds() / 1000,
        state=str(known.get("BackstayState", "")),
        waiting=int(known.get("BackstayPending", 0)),
        user_id=str(known.get("BackstayUser", "")),
        task=str(known.get("BackstayTask", "")),
        task_queue=info.task_queue,
        parent_id=info.parent_execution.workflow_id if info.HasField("parent_execution") else None,
    )


def _attributes(info: WorkflowExecutionInfo) -> dict[str, Any]:
    return {pair.key.name: pair.value for pair in decode_typed_search_attributes(info.search_attributes)}


def _status(info: WorkflowExecutionInfo) -> str:
    """Return Temporal's word for an execution; whatever has not ended counts as running, by whatever name."""
    status = ""
    with contextlib.suppress(ValueError):  # a state that the SDK has no name for, such as Temporal's own pause
        status = WorkflowExecutionStatus(info.status).name.lower()
    return status if status in _ENDS else "running"


async def missing_search_attributes(client: Client) -> "dict[str, IndexedValueType.ValueType]":
    """Return the search attributes that the namespace does not know; raises RPCError."""
    ask = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(ask, timeout=_ASKED_WITHIN)
    return {name: kind for name, kind in SEARCH_ATTRIBUTES.items() if name not in known.custom_attributes}


async def register_search_attributes(client: Client) -> frozenset[str]:
    """Register our search attributes where that is allowed; return those that the namespace knows."""
    known = frozenset[str]()
    with contextlib.suppress(RPCError):
        missing = await missing_search_attributes(client)
        known = frozenset(SEARCH_ATTRIBUTES.keys() - missing.keys())
        if missing:
            ask = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
            await client.operator_service.add_search_attributes(ask)
        return frozenset(SEARCH_ATTRIBUTES)
    return known
