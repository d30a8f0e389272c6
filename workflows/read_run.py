"""The workflow `ReadRun`: read what a run has stored after it has ended, and so takes no update any longer."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from backstay import calls
from backstay.errors import BackstayError
from backstay.task.reading import Reading
from workflows.activity_calls import cause_of, error_of
from workflows.handlers import as_application_error
from workflows.options import options_for


class ReadRequest(Reading):
    """Name the run, and what to read of it."""

    workflow_id: str
    run_id: str | None = None
    """The first one of the run; the last run of that name without it."""


@workflow.defn(name="ReadRun")
class ReadRun:
    """Read one page of what a run has stored."""

    @workflow.run
    async def run(self, ask: Any = None, *more: Any) -> dict[str, Any]:
        """Return the page; the same argument and answer as the update `read`, with `workflow_id` and `run_id`."""
        try:
            reading = ReadRequest.admit(ask)
            return await self._read(reading)
        except ApplicationError as error:
            raise as_application_error(error_of(error)) from None
        except BackstayError as error:
            raise as_application_error(error) from None

    async def _read(self, reading: ReadRequest) -> dict[str, Any]:
        given = {name: getattr(reading, name) for name in Reading.model_fields}
        ask = calls.ReadPage(reading=Reading(**given), workflow_id=reading.workflow_id, workflow_run_id=reading.run_id)
        options = options_for("read_page")
        try:
            page = await workflow.execute_activity(
                calls.read_page, ask, summary=f"read of {reading.workflow_id[:80]}", **options.keywords()
            )
        except ActivityError as error:
            raise cause_of(error) from None
        return page.answer(reading)
