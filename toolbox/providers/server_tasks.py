"""The requests to a server about the task by which it answers a call that takes long."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from backstay.canonical import digest_of
from backstay.errors import OutcomeUnknown
from toolbox.providers.answer import Answer
from toolbox.providers.elicitation import ElicitationRequest, InputResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """Hold what is asked of a server about one task."""

    action: Literal["get", "update", "cancel"]
    id: str = field(repr=False)
    deadline_s: float
    reply: InputResponse | None = None
    """For `update`: what a person answered."""
    answered: frozenset[str] = frozenset()
    """What was answered before, as `marks_of` names it; a server may ask it for a while longer."""


class TaskGone(OutcomeUnknown):
    """The server does not know the task any more, or says nothing of it that can be used; asking again is not a use."""


@runtime_checkable
class FollowsTasks(Protocol):
    """Be a provider whose servers may answer a call by a task."""

    async def follow(self, request: TaskRequest) -> Answer:
        """Ask about a task; the answer holds its state, or what the call came to.

        Raises TaskGone, and ToolUnavailable, NotSent and OutcomeUnknown where another try may find out more.
        """
        ...


def marks_of(requests: Iterable[ElicitationRequest]) -> frozenset[str]:
    """Return what stands for questions that were answered; the same key with other words is another question."""
    return frozenset(digest_of([asked.key, asked.message, asked.form, asked.url])[:16] for asked in requests)
