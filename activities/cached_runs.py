"""Ask a run what holds it up without the server, where its workflow lives in this process."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from temporalio import workflow
from temporalio.worker import (
    ExecuteWorkflowInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)


class CachedRun(Protocol):
    """A workflow that says what holds it up."""

    def interruption(self) -> Mapping[str, Any]:
        """Answer the query of this name."""
        ...


class CachedRuns(Interceptor):
    """Know the runs whose workflows this process has in its cache."""

    def __init__(self) -> None:
        """Begin without any."""
        self._runs: dict[str, CachedRun] = {}

    def says(self, run_id: str | None, step: int) -> Mapping[str, Any] | None:
        """Return what holds an execution up that waits for its model's decision of this step.

        Return None where it lives in another process, or another process has gone on with it since: what is still in
        this one then waits for an earlier step.
        """
        run = self._runs.get(run_id or "")
        says = None if run is None else run.interruption()
        return says if says is not None and says["step"] == step else None

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - Temporal's name
        """Return what notes runs as they come into the cache, and as they leave it."""

        class Noted(_Workflow):
            runs = self._runs

        return Noted


class _Workflow(WorkflowInboundInterceptor):
    runs: ClassVar[dict[str, CachedRun]]

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - Temporal's name
        run_id, run = workflow.info().run_id, workflow.instance()
        if hasattr(run, "interruption"):
            self.runs[run_id] = run
        try:
            return await super().execute_workflow(input)
        finally:
            # A run that is evicted is cancelled, so that this runs, too.
            self.runs.pop(run_id, None)
