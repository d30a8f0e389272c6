"""Have a worker do an activity that belongs to no workflow, and leave nothing of it in Temporal."""

import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from temporalio.api.workflowservice.v1 import DeleteActivityExecutionRequest
from temporalio.client import ActivityFailureError, ActivityHandle, Client
from temporalio.common import Priority
from temporalio.service import RPCError, RPCStatusCode

from backstay.errors import StoreUnavailable, WorkerMisfit
from backstay.requests import OfRun
from backstay.task.task import URGENT

Ask = TypeVar("Ask", bound=OfRun)
Answer = TypeVar("Answer")
_WAIT = timedelta(seconds=20)
_RPC_TIMEOUT = timedelta(seconds=30)


async def execute_standalone(
    client: Client, entry: Callable[[Ask], Awaitable[Answer]], ask: Ask, *, queue: str
) -> Answer:
    """Return what a worker of a task queue answers within 20 seconds.

    Raises StoreUnavailable when none does, and WorkerMisfit when this Temporal server offers no such activities.
    """
    handle: ActivityHandle[Answer] | None = None
    try:
        handle = await client.start_activity(
            entry,
            ask,
            id=f"backstay-{entry.__name__}-{uuid.uuid4().hex}",
            task_queue=queue,
            schedule_to_close_timeout=_WAIT,
            priority=Priority(priority_key=URGENT),
            rpc_timeout=_RPC_TIMEOUT,
        )
        return await handle.result()
    except ActivityFailureError as error:
        raise StoreUnavailable(
            f"no worker of task queue {queue!r} answered {entry.__name__}: {error.cause}"[:300]
        ) from None
    except RPCError as error:
        if error.status is RPCStatusCode.UNIMPLEMENTED:
            raise WorkerMisfit(
                "BACKSTAY_PAYLOADS: database needs activities without a workflow, which this Temporal server does not "
                "offer; use a newer server, or a shared folder and BACKSTAY_PAYLOADS=files"
            ) from None
        raise StoreUnavailable(f"Temporal did not take {entry.__name__}: {error.message}"[:300]) from None
    finally:
        if handle is not None:
            await _delete(client, handle)


async def _delete(client: Client, handle: ActivityHandle[Any]) -> None:
    """Delete a request and its answer, which may hold payloads: Temporal would keep them as long as ended workflows."""
    named = DeleteActivityExecutionRequest(
        namespace=client.namespace, activity_id=handle.id, run_id=handle.run_id or ""
    )
    with suppress(RPCError):
        await client.workflow_service.delete_activity_execution(named, timeout=_RPC_TIMEOUT)
