"""Named defaults that an operator writes for runs."""

from typing import Any, Literal

from pydantic import Field

from backstay.budgets.budget import Budget
from backstay.frozen import Frozen


class Memory(Frozen):
    """Say whether runs may use what earlier ones have remembered."""

    read: bool = False
    write: bool = False


class Profile(Frozen):
    """Give a run what its task does not say."""

    strategy: Literal["default", "conservative", "exploratory"] = "default"
    """Which block of the prompt tells the model how to go about it."""
    persona: str = Field(default="", max_length=8000)
    """The operator's own words to the model."""
    model: str | None = Field(default=None, min_length=1, max_length=200)
    """Which model is asked, when the task names none."""
    budget: Budget = Budget()
    """The limits that a task has where it sets none itself; no ceiling."""
    lifelines: int = Field(default=3, ge=0, le=100)
    """How many repeats a step gets whose program or arguments failed."""
    perception: bool = False
    """Whether a model call of its own narrows the first search."""
    markers: bool = False
    """Whether `FINAL_ANSWER:` and `FURTHER_PROCESSING_REQUIRED:` mean something."""
    review: dict[str, Any] | None = None
    """How what a plan did is checked."""
    image: Literal["python", "data"] | None = None
    """What programs may import; None: as the settings say."""
    memory: Memory = Memory()
