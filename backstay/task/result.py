"""How a run ended."""

from enum import StrEnum
from typing import Any

from pydantic import Field

from backstay import errors
from backstay.budgets.budget import MICRO, Budget
from backstay.budgets.usage import Usage
from backstay.effects.compensation import Undone
from backstay.effects.effect import Effect
from backstay.frozen import Frozen
from backstay.task.event import Event

KEPT = 100
RESULT_EVENTS = 20
"""How many effects, and how many events, a Result holds at most: the last ones."""


class Outcome(StrEnum):
    """Name how a run ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled_back"
    ROLLBACK_FAILED = "rollback_failed"


class Failure(Frozen):
    """Name what went wrong."""

    type: str
    message: str

    @classmethod
    def of(cls, error: errors.BackstayError) -> "Failure":
        """Name an error."""
        return cls(type=type(error).__name__, message=str(error))

    def error(self) -> errors.BackstayError:
        """Return the error that is named; an unknown type is a bug in backstay."""
        kind = errors.error_type(self.type)
        return kind(self.message) if kind else errors.InternalError(f"{self.type}: {self.message}")


class Result(Frozen):
    """Tell how a run ended, what it did and what it cost."""

    outcome: Outcome
    success: bool
    final_summary: str = ""
    raw_outputs: dict[str, Any] = Field(default_factory=dict)
    output: Any = None
    """The value that the task wants, checked against its output schema."""
    output_ref: str | None = None
    """Where the value is stored, when it is too large to be here."""
    usage: dict[str, Any] = Field(default_factory=dict)
    """steps, tool_calls, code_runs, llm_cost_usd, models by name."""
    budget: Budget = Budget()
    effects: tuple[Effect, ...] = ()
    """The last 100; all of them under `effects_ref`."""
    effects_ref: str | None = None
    undone: tuple[Undone, ...] = ()
    events: tuple[Event, ...] = ()
    """The last 20; all of them under `events_ref`."""
    events_total: int = 0
    events_ref: str | None = None
    error: Failure | None = None
    programs_unavailable: str | None = None
    """Why no program of the run could run; None when nothing kept them from it."""
    ledger_head: str | None = None
    workflow_id: str = ""
    run_id: str = ""


def usage_shown(usage: Usage, cost_micro: int) -> dict[str, Any]:
    """Return usage as the wire shows it: money is a JSON number rounded to 1e-6.

    `llm_cost_usd` includes reservations that were charged because an answer was lost; the models' own sums do not.
    """
    models = {
        name: {**spent.model_dump(exclude={"cost_micro"}), "cost_usd": round(spent.cost_micro / MICRO, 6)}
        for name, spent in usage.models.items()
    }
    return {
        "steps": usage.steps,
        "plan_steps": usage.plan_steps,
        "tool_calls": usage.tool_calls,
        "code_runs": usage.code_runs,
        "lifelines": usage.lifelines,
        "free_calls": usage.free_calls,
        "calls_by_tool": dict(usage.calls_by_tool),
        "llm_cost_usd": round(cost_micro / MICRO, 6),
        "models": models,
        **({"delegated_steps": usage.delegated_steps} if usage.delegated_steps else {}),
    }
