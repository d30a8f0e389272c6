"""Translate the errors of Temporal into errors of backstay."""

import re
from collections.abc import Generator
from contextlib import contextmanager

from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from backstay import errors
from backstay.errors import BackstayError, DecisionRefused, RunNotFound, SettingsInvalid, TaskInvalid, Unreachable
from backstay.shown import one_line, shell_words

TRANSIENT_STATUSES = frozenset(
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
"""These may be over soon: the server restarts, or no worker polls for a moment."""

ABORTED = "AcceptedUpdateCompletedWorkflow"
"""How the server names an update whose execution ended first; the next execution, or none, answers a repeat."""
SWITCHED_OFF = "is disabled on this namespace"
"""How the server refuses what an operator has switched off, to everybody."""
UPDATES = ("frontend.enableUpdateWorkflowExecution", "frontend.enableUpdateWorkflowExecutionAsyncAccepted")
"""The settings of the server without which a run takes no updates, and so no decisions."""
SWITCH_ON = "switch it on in the dynamic configuration of the Temporal server"
CLOSING = re.compile(r"by closing workflow|workflow is closing")
"""How the server refuses what comes just as an execution ends; the next execution, or none, answers a repeat."""


@contextmanager
def translated_errors(workflow_id: str) -> Generator[None]:
    """Raise errors of backstay in place of Temporal's."""
    try:
        yield
    except WorkflowUpdateFailedError as error:
        raise error_from_failure(error.cause) from None
    except WorkflowQueryRejectedError as error:
        raise Unreachable(f"the run does not answer: {_line(str(error))}") from None
    except WorkflowQueryFailedError as error:
        if error.message == str(errors.RunContinuing()):
            raise errors.RunContinuing from None
        raise Unreachable(f"the run cannot answer: {_line(error.message)}") from None
    except RPCError as error:
        raise error_from_rpc(error, workflow_id) from None
    except ValueError as error:
        if not is_pause(error):
            raise
        raise Unreachable(held_by_temporal(workflow_id)) from None


def is_pause(error: ValueError) -> bool:
    """Return whether the SDK fails because it has no name for the state of a run that Temporal itself has paused."""
    return f"is not a valid {WorkflowExecutionStatus.__name__}" in str(error)


def held_by_temporal(workflow_id: str) -> str:
    """Say that Temporal itself has paused a run, and how to have it go on."""
    named = shell_words(_line(workflow_id))
    return f"Temporal itself has paused the run; have it go on with: temporal workflow unpause --workflow-id {named}"


def error_from_failure(cause: BaseException) -> BackstayError:
    """Return the error that a run or an update failed with."""
    if not isinstance(cause, ApplicationError):
        return BackstayError(_line(str(cause)))
    if cause.type == ABORTED:
        return errors.RunContinuing()
    from backstay.approvals.admission import DecisionInvalid  # noqa: PLC0415 - with all that a request is made of

    kind = DecisionInvalid if cause.type == DecisionInvalid.__name__ else errors.error_type(cause.type)
    if kind is not None:
        return kind(cause.message)
    return BackstayError(f"{_line(cause.type or 'unknown')}: {_line(cause.message)}")


def error_from_rpc(error: RPCError, workflow_id: str) -> BackstayError:
    """Return the error for a request that Temporal refused or failed."""
    message = _line(error.message)
    match error.status:
        case RPCStatusCode.NOT_FOUND if "already completed" in error.message:
            return run_ended(workflow_id)
        case RPCStatusCode.NOT_FOUND | RPCStatusCode.RESOURCE_EXHAUSTED if CLOSING.search(error.message):
            return errors.RunContinuing()
        case RPCStatusCode.NOT_FOUND if "amespace" in error.message:
            return SettingsInvalid(f"TEMPORAL_NAMESPACE: {message}; name one that exists")
        case RPCStatusCode.NOT_FOUND:
            return RunNotFound(f"workflow_id: there is no run {_line(workflow_id)}; `backstay list` shows the runs")
        case RPCStatusCode.INVALID_ARGUMENT:
            return TaskInvalid(f"Temporal refuses this: {message}")
        case RPCStatusCode.PERMISSION_DENIED if SWITCHED_OFF in error.message:
            return _switched_off(message)
        case RPCStatusCode.PERMISSION_DENIED | RPCStatusCode.UNAUTHENTICATED:
            return SettingsInvalid(f"Temporal refuses these credentials: {message}; correct TEMPORAL_API_KEY or TLS")
        case RPCStatusCode.FAILED_PRECONDITION if "total number of distinct updates" in error.message:
            return errors.RunContinuing(
                "the run has accepted as many updates as Temporal allows; send this again later"
            )
        case RPCStatusCode.RESOURCE_EXHAUSTED if "in-flight updates" in error.message:
            return errors.RunContinuing("too many updates are under way in the run; send this again")
        case _:
            return Unreachable(f"Temporal does not answer: {message}")


def _switched_off(message: str) -> SettingsInvalid:
    """Return the error for what an operator of Temporal has switched off."""
    updates, later = UPDATES
    switch = later if "asynchronously" in message else updates
    named = switch if "UpdateWorkflowExecution" in message else "Temporal"
    return SettingsInvalid(f"{named}: {message.rstrip('.')}; {SWITCH_ON}")


def run_ended(workflow_id: str) -> DecisionRefused:
    """Return the error for what only an open run takes."""
    return DecisionRefused(f"the run {_line(workflow_id)} has ended")


def _line(text: str) -> str:
    return one_line(text, 300)
