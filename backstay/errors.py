"""Name everything that can go wrong; the docstring of a class is its default message.

BackstayError
+-- Final                     trying again cannot help
|   +-- TaskInvalid           SettingsInvalid      PolicyInvalid       ToolboxInvalid
|   +-- Denied                Rejected             Expired             NotVerified
|   +-- BudgetExceeded        ReservationTooSmall
|   +-- ToolNotFound          ToolChanged          ArgumentsInvalid
|   +-- OutcomeUnknown        AnswerDoubtful       EffectConflict      CompensationFailed
|   +-- DecisionRefused       ModelRefused         RunOpen             RunNotFound
|   +-- Pruned                QuorumPending         RunTimedOut         RunTerminated
|   +-- IsolationUnavailable  ImageMissing         ProgramDiverged
|   +-- WorkspaceInvalid      WorkspaceBusy
|   +-- SnapshotRefused       SnapshotDamaged     OutputInvalid
|   +-- LifelinesExhausted    SignInRefused       StoreUnusable
|   +-- InternalError
+-- Transient                 trying again may help
    +-- ModelUnavailable      ToolUnavailable      StoreUnavailable    StoreMismatch
    +-- ToolBusy
    +-- Unreachable           SandboxLost          WorkspaceChanging
    +-- WorkerMisfit          WorkerLost           RunContinuing
"""

from typing import Any, ClassVar


class BackstayError(Exception):
    """Something went wrong in backstay."""

    final: ClassVar[bool] = True

    def __init__(self, message: str | None = None, **facts: Any) -> None:
        """Set the message, by default the first line of the docstring; `facts` are for programs."""
        super().__init__(message or (type(self).__doc__ or type(self).__name__).strip().splitlines()[0])
        self.facts = facts


class Final(BackstayError):
    """Trying again cannot help."""


class Transient(BackstayError):
    """Trying again may help."""

    final: ClassVar[bool] = False


class TaskInvalid(Final):
    """The task is not valid."""


class SettingsInvalid(Final):
    """A setting is not valid."""


class StoreUnusable(SettingsInvalid):
    """The store cannot be used until an operator does something."""


class PolicyInvalid(Final):
    """The policy is not valid."""


class ToolboxInvalid(Final):
    """The toolbox file is not valid."""


class Denied(Final):
    """A rule of the policy denies this call."""


class Rejected(Final):
    """A person rejected this call."""


class Expired(Final):
    """Nobody decided in time."""


class NotVerified(Final):
    """The proof does not show who decided."""


class QuorumPending(Final):
    """Several people must ask for it, and too few have."""


class BudgetExceeded(Final):
    """The budget is used up."""


class ReservationTooSmall(Final):
    """The model call may cost more than was reserved for it."""


class ToolNotFound(Final):
    """There is no such tool."""


class ToolChanged(Final):
    """The tool's definition changed after the call was ruled on."""


class ArgumentsInvalid(Final):
    """The arguments do not fit the tool's schema."""


class OutcomeUnknown(Final):
    """The call was sent and nobody knows whether it took effect."""


class AnswerDoubtful(Final):
    """The answer reports an error, and nobody knows whether the call took effect."""


class EffectConflict(Final):
    """Another call is already recorded under this effect's id."""


class CompensationFailed(Final):
    """An effect could not be undone."""


class DecisionRefused(Final):
    """The verdict cannot be accepted."""


class ModelRefused(Final):
    """The model endpoint refuses to serve until an operator changes something."""


class RunOpen(Final):
    """The run is still open."""


class RunNotFound(Final):
    """There is no such run."""


class Pruned(Final):
    """The run was pruned: its records are gone."""


class Unfinished(Final):
    """The task could not be done."""


class OutputInvalid(Final):
    """The answer does not fit the output schema of the task."""


class LifelinesExhausted(Final):
    """A step failed, and so did every repeat of it."""


class StepFailed(Final):
    """A step of the plan failed."""


class ReviewFailed(Final):
    """The review of the plan found too much."""


class Cancelled(Final):
    """The run was cancelled."""


class RunTerminated(Cancelled):
    """The run was terminated in Temporal; its effects are kept."""


class RunTimedOut(Final):
    """The run ended at a time limit of Temporal; its effects are kept."""


class IsolationUnavailable(Final, RuntimeError):
    """Programs and shells cannot be confined here, so none is run."""

    def __init__(self, message: str | None = None, *, cause: str = "", fix: str = "", **facts: Any) -> None:
        """Set what is missing (`cause`) and what an operator can do about it (`fix`)."""
        super().__init__(message or "; ".join(part for part in (cause, fix) if part) or None, **facts)
        self.cause = cause
        self.fix = fix


class ImageMissing(Final):
    """The image this run began with is gone; an operator must bring it back."""


class ProgramDiverged(Final):
    """Replayed from its journal, the program asks for something else than before."""


class ProgramCancelled(Final):
    """A person undid effects while the program waited, so it was ended; start again."""


class WorkspaceInvalid(Final):
    """The workspace cannot be used."""


class SignInRefused(Final):
    """A sign-in cannot be begun or finished."""


class WorkspaceBusy(Final):
    """Another run uses this workspace."""


class SnapshotRefused(Final):
    """The workspace holds something that cannot be restored, so no snapshot was taken."""


class SnapshotDamaged(Final):
    """The snapshot is missing or damaged."""


class InternalError(Final):
    """backstay itself failed; effects are kept and listed."""


class ModelUnavailable(Transient):
    """The model endpoint does not answer."""


class ToolUnavailable(Transient):
    """The tool's server cannot be reached."""


class ToolBusy(ToolUnavailable):
    """Another call must end first."""


class StoreUnavailable(Transient):
    """The store cannot be reached."""


class StoreMismatch(Transient):
    """The worker uses another store than the run; start a worker with the run's store."""


class WorkerMisfit(Transient):
    """The worker's settings do not fit the store that it uses; another worker may do what it cannot."""


class RunContinuing(Transient):
    """The run is continuing as a new execution; send this again."""


class WorkerLost(Transient):
    """The worker that had begun it was lost, and no answer came."""


class Unreachable(Transient):
    """Temporal cannot be reached, or the run does not answer."""


class SandboxLost(Transient):
    """The jail was lost before the program could go on; any worker can resume it from its journal."""


class WorkspaceChanging(Transient):
    """The workspace is being changed while it is read."""


def error_type(name: str | None) -> type[BackstayError] | None:
    """Return the error of that name, or None where backstay has none."""
    found = globals().get(name or "")
    return found if isinstance(found, type) and issubclass(found, BackstayError) else None
