"""The meaning of the exit codes; scripts rely on them."""

from backstay import errors
from backstay.approvals.admission import DecisionInvalid
from backstay.errors import BackstayError
from backstay.task.result import Outcome

DONE, FAILED, USAGE, DETACHED = 0, 1, 2, 130

ENDED = {
    Outcome.COMPLETED: DONE,
    Outcome.FAILED: FAILED,
    Outcome.BUDGET_EXCEEDED: 3,
    Outcome.REJECTED: 4,
    Outcome.ROLLED_BACK: 5,
    Outcome.ROLLBACK_FAILED: 6,
    Outcome.CANCELLED: 7,
}

_USAGE = (
    errors.TaskInvalid,
    errors.SettingsInvalid,
    errors.PolicyInvalid,
    errors.ToolboxInvalid,
    errors.ToolNotFound,
    DecisionInvalid,
    errors.RunNotFound,
    errors.Unreachable,
)


def code_of(error: BackstayError) -> int:
    """Return the exit code for an error: 2 when the command, a file or a setting must be corrected."""
    match error:
        case errors.BudgetExceeded():
            return ENDED[Outcome.BUDGET_EXCEEDED]
        case errors.Cancelled():
            return ENDED[Outcome.CANCELLED]
        case _:
            return USAGE if isinstance(error, _USAGE) else FAILED
