"""The present state of a run."""

from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from backstay.approvals.approval import ApprovalRequest
from backstay.frozen import Frozen
from backstay.task.event import Event


class State(StrEnum):
    """Name what a run is doing."""

    STARTING = "starting"
    DECIDING = "deciding"
    CALLING = "calling"
    COMPUTING = "computing"
    WAITING = "waiting"
    PAUSED = "paused"
    UNDOING = "undoing"
    DONE = "done"


class StepProgress(Frozen):
    """Say what a step of the model called, and how that ended."""

    step: int
    tool: str
    status: Literal["ok", "failed"]


class Status(Frozen):
    """Answer the `status` query."""

    state: State
    paused: str | None = None
    """Why the run is held, also while it waits for people; None when it is not."""
    namespace: str = ""
    workflow_id: str = ""
    run_id: str = ""
    """The run id of the first execution; a proof names it, as it does the namespace."""
    step: int = 0
    task_progress: tuple[StepProgress, ...] = ()
    """What the model's steps have called so far, the last 20 calls."""
    pending: tuple[ApprovalRequest, ...] = ()
    usage: dict[str, Any] = Field(default_factory=dict)
    last_events: tuple[Event, ...] = ()
    refused: int = 0
    """How many signals and updates the run has refused after it accepted them for examination."""
