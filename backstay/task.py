"""What is wanted."""

from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from backstay.budget import Budget
from backstay.errors import TaskInvalid
from backstay.noun import Noun
from backstay.plan import Plan


class Task(Noun):
    """Say what is wanted and within which bounds; `text` alone, or `plan` alone, is enough."""

    text: str = Field(default="", max_length=100_000)
    input: dict[str, Any] = Field(default_factory=dict)
    user_id: str = Field(default="singleton", min_length=1, max_length=200)
    session_id: str | None = None
    budget: Budget = Budget()
    policy: dict[str, Any] | None = None
    """May only tighten the operator's policy."""
    profile: str = "default"
    mode: Literal["act", "plan_first"] = "act"
    plan: Plan | None = None
    workspace: str | None = None
    filesystem: bool = False
    shell: bool = False
    extra_context: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    on_failure: Literal["rollback", "keep"] = "rollback"
    rehearse: bool = False
    model: str | None = None

    later: ClassVar[tuple[str, ...]] = ("profile", "mode", "workspace", "filesystem", "shell", "rehearse")
    """Fields whose feature is not built yet: accepted at their default, refused otherwise."""

    @classmethod
    def admit(cls, data: Any) -> Self:
        """Validate a task from outside; raises TaskInvalid naming field, value and fix."""
        task = super().admit({"text": data} if isinstance(data, str) else data)
        for name in cls.later:
            if getattr(task, name) != cls.model_fields[name].default:
                raise TaskInvalid(f"not available in this version: {name}")
        if task.plan is not None and task.plan.dry_run:
            raise TaskInvalid("not available in this version: plan.dry_run")
        if not task.text.strip() and task.plan is None:
            raise TaskInvalid("text: empty; say in a sentence what is wanted, or give a plan")
        return task
