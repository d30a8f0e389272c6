"""The messages by which people change a run itself, or read it, as they are admitted before anything acts on them."""

from typing import Any

from pydantic import Field

from backstay import errors
from backstay.approvals.admission import DecisionInvalid
from backstay.authority import Principal
from backstay.bounds import MOST, Name, Words
from backstay.budgets.budget import TopUp
from backstay.frozen import Frozen
from backstay.quoting import named
from backstay.shown import one_line
from backstay.task.reading import Reading

_WITH_MORE = frozenset({"top_up", "message"})
"""The updates that say more than who asks, and why."""


class RunCommand(Frozen):
    """The person who asks for a change to the run itself, and why."""

    by: Principal = ""
    proof: Name | None = None
    event_id: Name | None = Field(default=None, max_length=200)
    reason: Words = Field(default="", max_length=4000)
    to_step: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    last_seen: int | None = Field(default=None, strict=True, ge=0, le=MOST)
    """The newest effect of what was shown before an undo; a later one is not undone unseen."""


def said_in(update: str, data: Any) -> tuple[RunCommand, dict[str, Any]]:
    """Return who asks, and the limits of a top-up or the text of a message.

    Raises DecisionInvalid, or TaskInvalid for a limit, naming field, value and fix.
    """
    data = {} if data is None else data
    if not isinstance(data, dict):
        raise DecisionInvalid(f"{update}: expected a JSON object, got {type(data).__name__}")
    more = {key: value for key, value in data.items() if key not in RunCommand.model_fields}
    if more and update not in _WITH_MORE:
        raise DecisionInvalid(f"{update}: unknown field {one_line(named(next(iter(more))), 80)}; remove it")
    for name in ("to_step", "last_seen"):
        if data.get(name) is not None and update != "undo":
            raise DecisionInvalid(f"{update}.{name}: only an undo has one; remove it")
    try:
        said = RunCommand.admit({key: value for key, value in data.items() if key in RunCommand.model_fields})
    except errors.TaskInvalid as error:
        raise DecisionInvalid(f"{update}.{error}") from None
    if update == "top_up":
        # Votes on it are kept under what it says.
        TopUp.admit(more)
    return said, more


def reading_of(data: Any) -> Reading:
    """Return what is to be read; raises DecisionInvalid naming field, value and fix."""
    try:
        return Reading.admit({} if data is None else data)
    except errors.TaskInvalid as error:
        raise DecisionInvalid(f"read: {error}") from None
