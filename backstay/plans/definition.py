"""Definitions: plans that are kept in files, each with a schema of the input that it takes.

A step names its tool as a plan does, by `tool`, as `provider.tool`. Where it has none, the tool is its `mcp_class`, a
dot and its `mcp_method`, or else those of the whole definition. `params` is another word for `arguments`.
"""

from typing import Annotated, Any, NamedTuple, Self

from pydantic import Field, model_validator

from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.frozen import Frozen
from backstay.task.plan import Plan, PlanStep, references_in, steps_named

PROVIDER = "definitions"
"""What is before the id in the name under which models are offered a definition."""
_DESCRIPTION = 1000
_ANY_OBJECT = {"type": "object"}
_INPUT = "input."


class OfferedDefinition(NamedTuple):
    """Describe a definition as models are shown a tool."""

    name: str
    description: str
    parameters: dict[str, Any]


class PlanDefinition(Frozen):
    """Keep a plan under an id, with the schema of its input."""

    id: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,49}$")]
    version: int = Field(default=1, ge=1)
    title: str = Field(default="", max_length=500)
    summary: str = Field(default="", max_length=5000)
    """What it does, for whoever chooses between definitions."""
    domain: str = Field(default="", max_length=200)
    action: str = Field(default="", max_length=200)
    mcp_class: str = Field(default="", max_length=200)
    mcp_method: str = Field(default="", max_length=200)
    input: dict[str, Any] = Field(default_factory=lambda: dict(_ANY_OBJECT))
    """JSON Schema of an object."""
    offer: bool = False
    """Whether models are offered it as a tool."""
    continue_on_failure: bool = False
    allowed_side_effects: tuple[str, ...] = ()
    """Globs of the tools whose writes go on after a failure, where the plan as a whole goes on."""
    steps: tuple[PlanStep, ...] = Field(min_length=1, max_length=1000)

    @model_validator(mode="before")
    @classmethod
    def _in_words_of_plans(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
            return data
        named = (data.get("mcp_class"), data.get("mcp_method"))
        return data | {"steps": [_step(number, step, named) for number, step in enumerate(data["steps"])]}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.input.get("type") != "object":
            raise ValueError("input: must be the schema of an object; begin it with `type: object`")
        known = self.input.get("properties")
        for number, step in enumerate(self.steps):
            try:
                steps_named(number, step.arguments)
            except ArgumentsInvalid as error:
                raise ValueError(str(error).removeprefix("plan.")) from None
            for path in references_in(step.arguments):
                name = path.removeprefix(_INPUT).partition(".")[0]
                if path.startswith(_INPUT) and isinstance(known, dict) and name not in known:
                    raise ValueError(
                        f"steps.{number}: ${{{path}}}: the schema of `input` has no {name!r}; add it there"
                    )
        return self

    @classmethod
    def read(cls, data: Any, file: str) -> Self:
        """Return what a file holds. Raises TaskInvalid naming file, field and fix."""
        if not isinstance(data, dict):
            raise TaskInvalid(f"{file}: is not a mapping of fields; write id, input and steps")
        try:
            return cls.admit(data)
        except TaskInvalid as error:
            raise TaskInvalid(f"{file}: {error}") from None

    @property
    def line(self) -> str:
        """Return what it is called, for people."""
        return self.title or self.summary.partition("\n")[0] or self.id

    def task(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a task that carries it out with this input, which has been checked."""
        about = {
            "definition": self.id,
            "definition_version": self.version,
            "domain": self.domain,
            "action": self.action,
        }
        about |= {"mcp_class": self.mcp_class, "mcp_method": self.mcp_method}
        plan = Plan(
            id=self.id,
            title=self.line,
            summary=self.summary,
            steps=self.steps,
            continue_on_failure=self.continue_on_failure,
            allowed_side_effects=self.allowed_side_effects,
            metadata={name: value for name, value in about.items() if value},
        )
        return {"text": self.line, "input": given, "plan": plan.model_dump(mode="json", exclude_unset=True)}

    def offered(self) -> OfferedDefinition | None:
        """Return how models are offered it; None where it is not offered."""
        if not self.offer:
            return None
        calls = ", ".join(dict.fromkeys(step.tool for step in self.steps))
        told = dict.fromkeys(" ".join(part.split()).rstrip(".") for part in (self.line, self.summary, f"Calls {calls}"))
        description = "".join(f"{part}. " for part in told if part).strip()
        return OfferedDefinition(f"{PROVIDER}.{self.id}", description[:_DESCRIPTION], self.input)


def _step(number: int, step: Any, named: tuple[Any, Any]) -> Any:
    """Return a step as a plan has it."""
    if not isinstance(step, dict):
        return step
    if "params" in step and "arguments" in step:
        raise ValueError(f"steps.{number}: params and arguments are the same; keep one of them")
    rest = {name: value for name, value in step.items() if name not in ("params", "mcp_class", "mcp_method")}
    if "params" in step:
        rest["arguments"] = step["params"]
    if "tool" not in rest:
        own = (step.get("mcp_class", named[0]), step.get("mcp_method", named[1]))
        if not all(own):
            raise ValueError(f"steps.{number}.tool: required field is missing; write provider.tool")
        rest["tool"] = ".".join(map(str, own))
    return rest
