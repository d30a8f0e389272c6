"""What a run is doing now."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from backstay.approval import ApprovalRequest
from backstay.event import Event
from backstay.noun import Noun


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


class Status(Noun):
    """Answer the `status` query."""

    state: State
    step: int = 0
    pending: tuple[ApprovalRequest, ...] = ()
    usage: dict[str, Any] = Field(default_factory=dict)
    last_events: tuple[Event, ...] = ()
