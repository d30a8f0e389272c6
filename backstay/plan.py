"""The explicit form of a task: steps in order, which may refer to the input and to earlier results."""

from datetime import datetime
from typing import Any

from pydantic import Field

from backstay.noun import Noun
from backstay.safety import Safety


class PlanStep(Noun):
    """One call of a plan."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    """Strings may hold `${input.x}` and `${steps.0.result.id}`; a lone reference keeps the value's type."""
    summary: str = ""
    safety: Safety | None = None
    """May only raise the tool's own safety."""
    transactional: bool = False
    """Refuse the plan when the tool declares no compensation."""
    timeout_s: float = Field(default=30, gt=0, le=600)
    continue_on_failure: bool = False


class Plan(Noun):
    """Steps that run in order without a model."""

    id: str = "plan"
    title: str = ""
    author: str = ""
    summary: str = ""
    created_at: datetime | None = None
    dry_run: bool = False
    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=20)
    metadata: dict[str, Any] = Field(default_factory=dict)
    parent: str | None = None
    version: int = 1
