"""Start runs, and get the handles of runs that exist."""

import uuid
from functools import partial
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy

from backstay.approvals.proof import START, Binding
from backstay.client.failures import translated_errors
from backstay.client.run import Run, signed
from backstay.shown import markdown_line, one_line
from backstay.task.task import Task

_SUMMARY_BYTES = 200


class Backstay:
    """Start runs, and get the handles of runs that exist."""

    def __init__(self, client: Client, *, task_queue: str = "backstay", approver_key: str | None = None) -> None:
        """Use `connect` instead; it provides a client."""
        self.client = client
        self.task_queue = task_queue
        self._key = approver_key.encode() if approver_key else None

    async def start(self, task: Task | dict[str, Any] | str, id: str | None = None) -> Run:  # noqa: A002 - Temporal's word
        """Start a run, or attach to the one that is open under the same id.

        A task with `by` is signed when the connection has the approver key.
        Raises TaskInvalid naming field, value and fix before anything is sent.
        """
        admitted = Task.admit(task)
        workflow_id = id or f"task-{uuid.uuid4()}"
        ask = admitted.model_dump(mode="json", by_alias=True, exclude_unset=True)
        if self._key is not None and admitted.by and admitted.proof is None:
            ask["proof"] = self._signed(Binding(**self._of(workflow_id), run_id="", update=START), ask)
        text = admitted.text or (admitted.plan.title or "plan" if admitted.plan else "")
        return await self._start(
            "RunTask",
            ask,
            workflow_id,
            summary=text,
            details=f"{markdown_line(text)}\n\nfor {markdown_line(admitted.user_id)}",
        )

    def run(self, workflow_id: str) -> Run:
        """Return the handle of a run, without asking whether it exists."""
        handle: WorkflowHandle[Any, Any] = self.client.get_workflow_handle(workflow_id)
        return Run(handle, partial(self.start_undo, workflow_id), self._key)

    async def start_undo(self, workflow_id: str, *, to_step: int | None = None, by: str = "") -> Run:
        """Start to undo the effects of a run that has ended, or attach to an undo that is already open."""
        ask: dict[str, Any] = {"workflow_id": workflow_id}
        ask |= {} if to_step is None else {"to_step": to_step}
        ask |= {"by": by} if by else {}
        if self._key is not None and by:
            run_id = await self._first_run_id(workflow_id)
            ask["proof"] = self._signed(Binding(**self._of(workflow_id), run_id=run_id, update="UndoRun"), ask)
        return await self._start(
            "UndoRun",
            ask,
            f"undo-{workflow_id}",
            summary=f"undo {workflow_id}",
            details=f"Takes back the effects of {markdown_line(workflow_id)}",
        )

    async def _first_run_id(self, workflow_id: str) -> str:
        with translated_errors(workflow_id):
            described = await self.client.get_workflow_handle(workflow_id).describe()
        return described.raw_description.workflow_execution_info.first_run_id or described.run_id

    def _of(self, workflow_id: str) -> dict[str, str]:
        return {"namespace": self.client.namespace, "workflow_id": workflow_id}

    def _signed(self, binding: Binding, payload: dict[str, Any]) -> str:
        return signed(self._key or b"", binding, payload)

    async def _start(self, kind: str, ask: dict[str, Any], workflow_id: str, *, summary: str, details: str) -> Run:
        line = one_line(summary, _SUMMARY_BYTES).encode()[:_SUMMARY_BYTES].decode(errors="ignore")
        with translated_errors(workflow_id):
            await self.client.start_workflow(
                kind,
                ask,
                id=workflow_id,
                task_queue=self.task_queue,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                static_summary=line,
                static_details=details,
            )
        return self.run(workflow_id)
