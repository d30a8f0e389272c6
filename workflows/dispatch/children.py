"""Start runs as children of a workflow, and tell how they have ended."""

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.common import Priority, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, CancelledError, ChildWorkflowError, TerminatedError

from backstay.shown import NOBODY
from backstay.task.task import fairness_key

CANCELLED = "cancelled"


async def start_run(
    workflow_id: str, task: dict[str, Any], line: str, close: workflow.ParentClosePolicy
) -> workflow.ChildWorkflowHandle[Any, Any]:
    """Start a run; raises WorkflowAlreadyStartedError where one of that name was started before.

    `close` says what becomes of it when this workflow is closed first.
    """
    return await workflow.start_child_workflow(
        "RunTask",
        task,
        id=workflow_id,
        cancellation_type=workflow.ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
        parent_close_policy=close,
        id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
        static_summary=line or None,
        # Its priority is that of this workflow.
        priority=Priority(fairness_key=fairness_key(str(task.get("user_id") or NOBODY))),
    )


def fault_of(run: "asyncio.Future[Any]") -> str:
    """Return with what error a run failed; nothing for one that has a Result."""
    if run.cancelled():
        return CANCELLED
    error = run.exception()
    if not isinstance(error, ChildWorkflowError):
        return "" if error is None else type(error).__name__
    match error.cause:
        case ApplicationError() as cause:
            return cause.type or "failed"
        case TerminatedError():
            return "terminated"
        case CancelledError():
            return CANCELLED
        case cause:
            return type(cause).__name__
