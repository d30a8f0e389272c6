"""StartRun: start one run of a schedule or a trigger, within the budget of its day."""

import asyncio
from typing import Any

from pydantic import Field
from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from backstay import calls
from backstay.errors import BackstayError
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.starting import NOT_BEGUN
from backstay.task.standing import Kind
from backstay.task.task import Task
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import as_application_error
from workflows.dispatch.children import CANCELLED, fault_of, start_run

TAKEN = "a run of that name was started before"


class StartRequest(Frozen):
    """Name the schedule or the trigger; the request for it is in the store, where nobody at Temporal can change it."""

    kind: Kind
    name: str = Field(min_length=1, max_length=50)


@workflow.defn(name="StartRun")
class StartRun:
    """Reserve for a run, start it, and settle what it has cost once it has ended.

    It lasts as long as the run, so that Temporal knows of a schedule whether its last run has ended.
    """

    @workflow.run
    async def run(self, ask: Any = None, *more: Any) -> dict[str, Any]:
        """Return the workflow id of the run and how it ended, or why none was started."""
        try:
            request = StartRequest.admit(ask)
        except BackstayError as error:
            raise as_application_error(error) from None
        info = workflow.info()
        own = f"{info.workflow_id}/{info.first_execution_run_id}"
        activities = RunContext(own, Task(text="start"), lambda: None).activities
        asked = calls.BeginStart(kind=request.kind, name=request.name, start=info.workflow_id)
        summary = f"start {request.kind} {one_line(request.name, 60)}"
        beginning = asyncio.ensure_future(activities.execute_patiently(calls.begin_start, asked, summary=summary))
        # A reservation must be settled, also when this start is cancelled while the worker reserves.
        cancelled = await _finished(beginning)
        begun = beginning.result()
        if begun.refused and not cancelled:
            return {"refused": begun.refused}
        if begun.refused:
            raise asyncio.CancelledError
        ended = calls.EndStart(start=info.workflow_id, workflow_id=begun.workflow_id)
        update = {"fault": NOT_BEGUN}
        if not cancelled:
            update, cancelled = await self._ran(begun)
        settles = ended.model_copy(update=update)
        settling = asyncio.ensure_future(
            activities.execute_patiently(calls.end_start, settles, summary=f"settle {summary}")
        )
        cancelled |= await _finished(settling)
        if cancelled:
            raise asyncio.CancelledError
        return {"workflow_id": begun.workflow_id, **update}

    async def _ran(self, begun: calls.BegunStart) -> tuple[dict[str, str], bool]:
        """Start the run and wait for its end; return what came of it, and whether this start was cancelled."""
        try:
            run = await start_run(begun.workflow_id, begun.task, begun.line, workflow.ParentClosePolicy.ABANDON)
        except WorkflowAlreadyStartedError:
            return {"fault": TAKEN}, False
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is None:
                raise  # the worker evicts this
            return {"fault": CANCELLED}, True
        cancelled = await _finished(run)
        return {"first_run_id": run.first_execution_run_id or "", "fault": fault_of(run)}, cancelled


async def _finished(work: "asyncio.Future[Any]") -> bool:
    """Wait for the end of something, also when this start is cancelled meanwhile; return whether it was."""
    cancelled = False
    while not work.done():
        try:
            await workflow.wait([work])
        except asyncio.CancelledError:
            if workflow.cancellation_reason() is None:
                raise
            cancelled = True
            if isinstance(work, workflow.ChildWorkflowHandle):
                work.cancel()
    return cancelled
