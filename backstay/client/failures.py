"""Turn what Temporal raises into errors of ours."""

from collections.abc import Generator
from contextlib import contextmanager

from temporalio.client import (
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from backstay import errors
from backstay.approvals import deciding
from backstay.errors import BackstayError, DecisionRefused, RunNotFound, SettingsInvalid, TaskInvalid, Unreachable
from backstay.shown import one_line

PASSING = frozenset(
    {
        RPCStatusCode.UNAVAILABLE,
        RPCStatusCode.DEADLINE_EXCEEDED,
        RPCStatusCode.CANCELLED,
        RPCStatusCode.RESOURCE_EXHAUSTED,
        RPCStatusCode.ABORTED,
        RPCStatusCode.FAILED_PRECONDITION,
        RPCStatusCode.INTERNAL,
        RPCStatusCode.UNKNOWN,
    }
)
"""What may be over soon: the server starts again, or no worker polls for a moment."""

NO_WORKER = (
    "no worker answers; start one with `backstay worker` (or `backstay dev`), what was begun goes on by itself then"
)


@contextmanager
def ours(workflow_id: str) -> Generator[None]:
    """Raise errors of ours in place of Temporal's."""
    try:
        yield
    except WorkflowUpdateFailedError as error:
        raise said_by(error.cause) from None
    except WorkflowUpdateRPCTimeoutOrCancelledError:
        raise Unreachable(f"{NO_WORKER}; what was asked may still be accepted") from None
    except WorkflowQueryRejectedError as error:
        raise Unreachable(f"the run does not answer: {_line(str(error))}") from None
    except WorkflowQueryFailedError as error:
        raise Unreachable(f"the run cannot answer: {_line(error.message)}") from None
    except RPCError as error:
        raise of_rpc(error, workflow_id) from None


def said_by(cause: BaseException) -> BackstayError:
    """Return the error of ours that a failure of a run or of an update stands for."""
    if not isinstance(cause, ApplicationError):
        return BackstayError(_line(str(cause)))
    kind = getattr(errors, cause.type or "", None) or getattr(deciding, cause.type or "", None)
    if isinstance(kind, type) and issubclass(kind, BackstayError):
        return kind(cause.message)
    return BackstayError(f"{_line(cause.type or 'unknown')}: {_line(cause.message)}")


def of_rpc(error: RPCError, workflow_id: str) -> BackstayError:
    """Return the error of ours that a refused or failed request to Temporal stands for."""
    said = _line(error.message)
    match error.status:
        case RPCStatusCode.NOT_FOUND if "already completed" in error.message:
            return DecisionRefused(f"the run {_line(workflow_id)} has ended")
        case RPCStatusCode.NOT_FOUND if "amespace" in error.message:
            return SettingsInvalid(f"TEMPORAL_NAMESPACE: {said}; name one that exists")
        case RPCStatusCode.NOT_FOUND:
            return RunNotFound(f"workflow_id: there is no run {_line(workflow_id)}; `backstay list` shows those known")
        case RPCStatusCode.INVALID_ARGUMENT if "failed state" in error.message:
            return Unreachable(f"the run cannot answer, because the worker cannot carry it on: {said}")
        case RPCStatusCode.INVALID_ARGUMENT:
            return TaskInvalid(f"Temporal refuses this: {said}")
        case RPCStatusCode.PERMISSION_DENIED | RPCStatusCode.UNAUTHENTICATED:
            return SettingsInvalid(f"Temporal refuses these credentials: {said}; correct TEMPORAL_API_KEY or TLS")
        case RPCStatusCode.FAILED_PRECONDITION:
            return Unreachable(NO_WORKER)
        case RPCStatusCode.DEADLINE_EXCEEDED | RPCStatusCode.CANCELLED:
            return Unreachable(f"no answer in time: {NO_WORKER}")
        case _:
            return Unreachable(f"Temporal does not answer: {said}")


def _line(text: str) -> str:
    return one_line(text, 300)
