"""The questions of a run to its models, and how far it has come with each."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.budgets.budget import Reservation
from backstay.plans.review import PlanWork
from backstay.responses import ModelChoice
from backstay.task.decision import Decision

Purpose = Literal["step", "closing", "perception", "review"]


@dataclass
class Asking:
    """Hold how far one call has come."""

    purpose: Purpose
    choices: list[ModelChoice]
    """Who is asked, and those that may be asked instead, in their order."""
    tries: int = 0
    held: bool = False
    """Whether it was not sent last time, since the endpoint had asked others to wait."""
    since: datetime = field(default_factory=workflow.now)
    failed: datetime | None = None
    """When it failed first."""
    needed: int | None = None
    """What the call costs at most, where a reservation was too small for it."""
    why: str = ""
    """Why that is more than it should cost."""
    asks_tokens: int = 0
    """How many tokens there are to send, where too few were left for it."""
    answer_tokens: int = 0
    """How many the shortest answer needs."""
    work: PlanWork | None = None
    """What is to be looked at, where a verdict is asked for."""

    @property
    def closing(self) -> bool:
        """Return whether it is paid from what was kept back."""
        return self.purpose == "closing"

    def learns(self, facts: dict[str, Any]) -> bool:
        """Note what the call needs, as the worker that refused it says; return whether that is more than was known."""
        asks, needed = int(facts.get("asks_tokens", 0)), int(facts.get("needed", 0))
        if asks > self.asks_tokens:
            self.asks_tokens, self.answer_tokens = asks, int(facts.get("answer_tokens", 0))
            return True
        more = needed > (self.needed or 0)
        self.needed, self.why = max(needed, self.needed or 0) or None, str(facts.get("why", ""))
        return more

    def forget_needs(self) -> None:
        """Ask anew what the next try needs."""
        self.needed, self.asks_tokens, self.answer_tokens = None, 0, 0

    def begin_again(self, choices: list[ModelChoice]) -> None:
        """Count tries from zero."""
        self.choices, self.tries, self.since, self.failed = choices, 0, workflow.now(), None


@dataclass
class Ahead:
    """Hold a question that goes to the model together with the calls before it."""

    asking: Asking
    held: Reservation | None
    ask: calls.AskModel
    sent: int
    """How many of the items that the model is to be told go with it."""
    decision: Decision | None = None
    fault: ApplicationError | None = None
    """Why the model gave no decision."""
    learned: bool = False
    """Whether the fault says what the next try needs."""
