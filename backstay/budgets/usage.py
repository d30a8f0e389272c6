"""The amounts that a run has spent."""

from pydantic import Field

from backstay.frozen import Frozen


class ModelUsage(Frozen):
    """Tokens and money of one model."""

    calls: int = 0
    input_cached_tokens: int = 0
    input_new_tokens: int = 0
    input_written_tokens: int = 0
    """Those of the new ones that the endpoint keeps, so that they are cached later."""
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cost_micro: int = 0
    """Millionths of a US dollar."""

    def plus(self, other: "ModelUsage") -> "ModelUsage":
        """Return the sum, field by field."""
        return ModelUsage(**{name: getattr(self, name) + getattr(other, name) for name in ModelUsage.model_fields})

    @property
    def tokens(self) -> int:
        """Return all tokens in and out."""
        return self.input_cached_tokens + self.input_new_tokens + self.output_tokens


class Usage(Frozen):
    """Count what counts against the budget, and apart from it what does not."""

    steps: int = 0
    """Decisions of the model."""
    plan_steps: int = 0
    """Steps of plans, which no limit counts but that of their calls."""
    tool_calls: int = 0
    code_runs: int = 0
    lifelines: int = 0
    """Steps that repeated a failed one: they are billed, and do not count against `max_steps`."""
    delegated_steps: int = Field(default=0, exclude_if=lambda steps: not steps)
    """Steps of sub-runs, which count against `max_steps` as well."""
    free_calls: int = 0
    """Verifies, undos, searches, reads of stored results and the closing summary: never refused."""
    calls_by_tool: dict[str, int] = Field(default_factory=dict)
    models: dict[str, ModelUsage] = Field(default_factory=dict)

    @property
    def step(self) -> int:
        """Return the number of the step under way: decisions of the model and steps of plans together."""
        return self.steps + self.plan_steps

    @property
    def tokens(self) -> int:
        """Return the tokens of all models."""
        return sum(model.tokens for model in self.models.values())

    @property
    def steps_taken(self) -> int:
        """Return how many steps count against the limit: all but the repeats of failed ones, and those of sub-runs."""
        return self.steps - self.lifelines + self.delegated_steps

    def decided(self, count: int = 1) -> "Usage":
        """Count decisions of the model; below zero undoes what was counted."""
        return self.model_copy(update={"steps": self.steps + count})

    def called(self, tool: str) -> "Usage":
        """Count one dispatched call."""
        by_tool = {**self.calls_by_tool, tool: self.calls_by_tool.get(tool, 0) + 1}
        return self.model_copy(update={"tool_calls": self.tool_calls + 1, "calls_by_tool": by_tool})

    def uncalled(self, tool: str) -> "Usage":
        """Undo the count of one call, because nothing was sent for it."""
        by_tool = {**self.calls_by_tool, tool: self.calls_by_tool.get(tool, 0) - 1}
        left = {name: count for name, count in by_tool.items() if count > 0}
        return self.model_copy(update={"tool_calls": self.tool_calls - 1, "calls_by_tool": left})

    def asked(self, model: str, spent: ModelUsage) -> "Usage":
        """Count one answer of a model."""
        total = self.models.get(model, ModelUsage()).plus(spent)
        return self.model_copy(update={"models": {**self.models, model: total}})

    def with_subrun(self, other: "Usage") -> "Usage":
        """Count what a sub-run has used; the number of the step under way stays that of the run."""
        tools = {*self.calls_by_tool, *other.calls_by_tool}
        models = {*self.models, *other.models}
        none = ModelUsage()
        update = {
            "delegated_steps": self.delegated_steps + other.steps_taken,
            "tool_calls": self.tool_calls + other.tool_calls,
            "code_runs": self.code_runs + other.code_runs,
            "free_calls": self.free_calls + other.free_calls,
            "calls_by_tool": {
                tool: self.calls_by_tool.get(tool, 0) + other.calls_by_tool.get(tool, 0) for tool in sorted(tools)
            },
            "models": {name: self.models.get(name, none).plus(other.models.get(name, none)) for name in sorted(models)},
        }
        return self.model_copy(update=update)
