"""The workflow `ReadRun`: read what a run has stored, after its end or beside it."""

from typing import Any

from pydantic import Field
from temporalio import workflow

from backstay import calls
from backstay.bounds import Id
from backstay.errors import BackstayError
from backstay.shown import one_line
from backstay.task.reading import Reading
from backstay.task.task import Task
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import as_application_error


class ReadRequest(Reading):
    """Name the run, and what to read of it."""

    workflow_id: Id
    run_id: str | None = Field(default=None, max_length=100)
    """The first one of the run; the last run of that name without it."""


@workflow.defn(name="ReadRun")
class ReadRun:
    """Read one page of what a run has stored."""

    @workflow.run
    async def run(self, ask: Any = None, *more: Any) -> dict[str, Any]:
        """Return the page; the same argument and answer as the update `read`, with `workflow_id` and `run_id`."""
        try:
            return await self._read(ReadRequest.admit(ask))
        except BackstayError as error:
            raise as_application_error(error) from None

    async def _read(self, request: ReadRequest) -> dict[str, Any]:
        reading = Reading(**{name: getattr(request, name) for name in Reading.model_fields})
        ask = calls.ReadPage(reading=reading, workflow_id=request.workflow_id, workflow_run_id=request.run_id)
        activities = RunContext("", Task(text="read"), lambda: None).activities
        summary = f"read of {one_line(request.workflow_id, 80)}"
        page = await activities.execute_in_handler(calls.read_page, ask, summary=summary)
        return page.answer(reading)
