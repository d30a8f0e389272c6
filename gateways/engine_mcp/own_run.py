"""The state of a run that a caller started, and how far it is as a task."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from backstay.approvals.approval import ApprovalRequest
from backstay.errors import BackstayError, Cancelled, Pruned, RunNotFound, RunTerminated, RunTimedOut
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.result import Outcome
from backstay.task.status import Status
from gateways.engine_mcp.tasks import ServedTask
from gateways.engine_mcp.views import elicitation, result_view, waiting_words
from gateways.mcp_serving import answered
from people.runs.finding import KnownRun

_LOST = (RunTerminated, RunTimedOut, RunNotFound, Pruned)
"""Why nobody can say how a run ended."""
_WORDS = 1000


@dataclass(frozen=True)
class OwnRun:
    """Hold what is known of a run of the caller at one moment."""

    found: KnownRun
    status: Status | None = None
    """None for a run that has ended, and for one that does not answer."""
    result: dict[str, Any] | None = None
    failure: BackstayError | None = None
    """Why a run has ended without a Result."""
    fault: str = ""
    """Why a run that is open says nothing."""
    questions: tuple[ApprovalRequest, ...] = ()
    """What the caller may answer."""

    @property
    def people(self) -> list[ApprovalRequest]:
        """Return what only others decide."""
        own = {question.id for question in self.questions}
        return [] if self.status is None else [each for each in self.status.pending if each.id not in own]

    def task(self) -> ServedTask:
        """Return how far it is, as a task."""
        if self.result is not None:
            return self._with_result(self.result)
        return self._open() if self.failure is None else self._without_result(self.failure)

    def _begun(self) -> ServedTask:
        row, execution = self.found.row, self.found.execution
        began = [row.opened_at] if row is not None else []
        began += [execution.started_at] if execution is not None else []
        ended = [at for at in (row and row.closed_at, execution and execution.closed_at) if at is not None]
        first = min(began, default=0.0)
        return ServedTask(self.found.workflow_id, "working", first, max([first, *ended]))

    def _open(self) -> ServedTask:
        begun = self._begun()
        last = self.status.last_events[-1] if self.status is not None and self.status.last_events else None
        words = self.fault or waiting_words(self.people, self.questions)
        if last is None:
            return begun._replace(message=words or "the run has not begun yet")
        return begun._replace(
            status="input_required" if self.questions else "working",
            updated_at=max(begun.created_at, _seconds(last)),
            message=words or f"step {last.step_index}: {one_line(last.text, 300)}",
            requests={question.id: elicitation(question) for question in self.questions},
            progress=last.n,
        )

    def _with_result(self, result: dict[str, Any]) -> ServedTask:
        if result.get("outcome") == Outcome.CANCELLED:
            summary = one_line(str(result.get("final_summary") or "the run was cancelled"), 300)
            return self._begun()._replace(status="cancelled", message=summary)
        told = result_view(self.found.workflow_id, result)
        return self._begun()._replace(status="completed", result=answered(told, is_error=not told["success"]))

    def _without_result(self, failure: BackstayError) -> ServedTask:
        words = one_line(str(failure), _WORDS)
        if isinstance(failure, _LOST):
            return self._begun()._replace(status="failed", error=words)
        if isinstance(failure, Cancelled):
            return self._begun()._replace(status="cancelled", message=words)
        error = {"type": type(failure).__name__, "message": words}
        told = result_view(self.found.workflow_id, {"outcome": Outcome.FAILED, "error": error})
        return self._begun()._replace(status="completed", result=answered(told, is_error=True))


def _seconds(event: Event) -> float:
    try:
        return datetime.fromisoformat(event.at).timestamp()
    except ValueError:
        return 0.0
