"""What happened in a run, in user words."""

from typing import Any

from pydantic import Field

from backstay.frozen import Frozen


class Event(Frozen):
    """Record one thing that happened; payloads are minimal and redacted."""

    n: int
    """Position in the run's timeline, from 1."""
    name: str
    """One of the names of docs/reference, such as `approval.asked`."""
    at: str
    """ISO 8601, UTC, from the workflow's clock."""
    step: int = 0
    text: str = ""
    """One line for people."""
    data: dict[str, Any] = Field(default_factory=dict)


class Timeline(Frozen):
    """Answer the `timeline` query."""

    events: tuple[Event, ...] = ()
    first_kept: int = 1
    events_ref: str | None = None
