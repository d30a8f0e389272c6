"""What Temporal itself knows of runs, without asking the runs: it needs no worker."""

import contextlib
import hashlib
from datetime import timedelta
from typing import Any

from temporalio.api.common.v1 import WorkflowExecution as NamedExecution
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode

from backstay.client.failures import error_from_rpc, translated_errors
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import one_line

RUNS = "WorkflowType IN ('RunTask', 'UndoRun')"
"""What Temporal is asked for when runs are listed."""
NOT_CONTINUED = "ExecutionStatus != 'ContinuedAsNew'"
"""Each execution of a run that goes on as a new one is a row of its own; this leaves the newest."""
UNDO = "undo-"
"""How the workflow id of a run begins that undoes another one after its end."""
ANSWERED_WITHIN = timedelta(seconds=10)
_ASKED_WITHIN = timedelta(seconds=5)
_OPEN = f"({RUNS}) AND ExecutionStatus = 'Running'"
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
    """The run id of its first execution, as far as Temporal says it."""
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

    @property
    def is_open(self) -> bool:
        """Return whether the run is open."""
        return self.status == "running"


async def described(client: Client, workflow_id: str, run_id: str | None = None) -> Execution:
    """Return what Temporal knows of a run, the newest one of that name; raises RunNotFound or Unreachable."""
    named = NamedExecution(workflow_id=workflow_id, run_id=run_id or "")
    ask = DescribeWorkflowExecutionRequest(namespace=client.namespace, execution=named)
    with translated_errors(workflow_id):
        answer = await client.workflow_service.describe_workflow_execution(ask, timeout=ANSWERED_WITHIN)
    info = answer.workflow_execution_info
    status = "running"
    with contextlib.suppress(ValueError):  # a status this client does not know, such as Temporal's own pause
        status = WorkflowExecutionStatus(info.status).name.lower()
    return Execution(
        workflow_id=workflow_id,
        first_run_id=info.first_run_id or info.execution.run_id,
        kind=info.type.name,
        status=status,
        started_at=info.start_time.ToMilliseconds() / 1000,
        task_queue=info.task_queue,
        closed_at=info.close_time.ToMilliseconds() / 1000 if info.HasField("close_time") else None,
    )


async def began_at(client: Client, workflow_id: str, run_id: str) -> float:
    """Return when an execution began, or the first one that led to it, or when a schedule was to start that one.

    Raises RPCError.
    """
    own = await client.get_workflow_handle(workflow_id, run_id=run_id).describe(rpc_timeout=ANSWERED_WITHIN)
    first = own
    if own.root_id and own.root_run_id != own.run_id:
        root = client.get_workflow_handle(own.root_id, run_id=own.root_run_id)
        try:
            first = await root.describe(rpc_timeout=ANSWERED_WITHIN)
        except RPCError as error:
            # Temporal keeps no run that ended long ago; then only its own start is known.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
    known: dict[str, Any] = {pair.key.name: pair.value for pair in first.typed_search_attributes}
    return min(own.start_time, first.start_time, known.get(_DUE, first.start_time)).timestamp()


async def open_executions(client: Client, limit: int, named: str = "") -> list[Execution]:
    """Return the open runs that Temporal knows, the newest first; raises Unreachable.

    `named`: only those whose workflow ID begins so, wherever they stand among others.
    """
    begins = named.replace("'", "''")
    asked = f"{_OPEN} AND WorkflowId STARTS_WITH '{begins}'" if named else _OPEN
    try:
        found = [_listed(run) async for run in client.list_workflows(asked, limit=limit)]
    except RPCError as error:
        raise error_from_rpc(error, "") from None
    return sorted(found, key=lambda run: run.started_at, reverse=True)


async def task_of(client: Client, workflow_id: str, first_run_id: str) -> dict[str, Any]:
    """Return the task with which a run was started, as it was sent; raises TaskInvalid where it is none."""
    kind, given = await started_with(client, workflow_id, first_run_id)
    if kind != "RunTask" or given is None:
        raise TaskInvalid(f"follows: {one_line(workflow_id, 100)} is not a run of a task")
    return given if isinstance(given, dict) else {}


async def started_with(client: Client, workflow_id: str, first_run_id: str) -> tuple[str, Any]:
    """Return the type of a workflow and what it was started with; None where that is nothing."""
    execution: WorkflowHandle[Any, Any] = client.get_workflow_handle(workflow_id, run_id=first_run_id)
    with translated_errors(workflow_id):
        history = execution.fetch_history_events(page_size=1, rpc_timeout=ANSWERED_WITHIN)
        started = (await anext(history)).workflow_execution_started_event_attributes
    given = await client.data_converter.decode(started.input.payloads)
    return started.workflow_type.name, given[0] if given else None


def _listed(found: WorkflowExecution) -> Execution:
    known: dict[str, Any] = {pair.key.name: pair.value for pair in found.typed_search_attributes}
    return Execution(
        workflow_id=found.id,
        first_run_id=found.run_id,
        kind=found.workflow_type,
        status="running",
        started_at=found.start_time.timestamp(),
        state=str(known.get("BackstayState", "")),
        waiting=int(known.get("BackstayPending", 0)),
        user_id=str(known.get("BackstayUser", "")),
        task=str(known.get("BackstayTask", "")),
        task_queue=found.task_queue,
    )


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
