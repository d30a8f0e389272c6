"""The task that a run is given."""

import hashlib
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, WithJsonSchema

from backstay.authority import Principal
from backstay.bounds import DEEPEST, TASK, Id, Name, PolicyOfTask, Text, sent_size
from backstay.budgets.budget import Budget
from backstay.canonical import deeper_than
from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.frozen import PublicInput
from backstay.shown import NOBODY
from backstay.task.attachment import MOST_ATTACHED, Attachment
from backstay.task.plan import Plan, has_references, refuse_large_steps

URGENT = 2
"""Temporal's priority of what a person waits for or has decided: an undo, a decision, a page of what is stored."""
USUAL = 3
"""What the server takes for no priority at all."""
LAST = 5
"""The last priority that the server knows."""
_FAIRNESS_KEY = 64
"""The server refuses longer keys; bytes."""


def fairness_key(name: str) -> str:
    """Return the key under which the server gives turns to what is done for a name, such as that of a user."""
    data = name.encode("utf-8", "surrogatepass")
    return name if len(data) <= _FAIRNESS_KEY else hashlib.sha256(data).hexdigest()


def too_long(task: dict[str, Any] | str) -> TaskInvalid | None:
    """Return the refusal of a task that is too long for the server to carry, or no JSON; None for any other.

    The server refuses payloads of 2 MiB, and activities carry more beside the task.
    """
    try:
        if sent_size(task) <= TASK:
            return None
    except ValueError as error:
        return TaskInvalid(f"Task: {error}")
    return TaskInvalid(f"Task: larger than {TASK:,} bytes of JSON; put large content in a file")


def _json_schema(given: Any) -> Any:
    """Return the JSON Schema that is meant by one, or by a class of pydantic."""
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given.model_json_schema()
    if given is None or isinstance(given, dict):
        return given
    raise ValueError("must be a JSON Schema, which is an object, or a class of pydantic")


_SCHEMA_OR_NULL = {"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "null"}]}
OutputSchema = Annotated[
    dict[str, Any] | type[BaseModel] | None, BeforeValidator(_json_schema), WithJsonSchema(_SCHEMA_OR_NULL)
]


class Follows(PublicInput):
    """Name a run that has ended and whose context is continued."""

    workflow_id: Id = Field(min_length=1)
    run_id: str = Field(min_length=1, max_length=100)
    """Of its first execution, as `status` and the Result say, or of a later one."""


class Task(PublicInput):
    """Say what is wanted and within which bounds; `text` alone, or `plan` alone, is enough."""

    text: Text = Field(default="", max_length=100_000)
    text_from: Literal["task", "others"] = "task"
    """Whose words `text` and `output_schema` hold: `others` where a stranger may have written them, such as another
    program's model. The run does what they say all the same."""
    input: dict[str, Any] = Field(default_factory=dict)
    input_from: Literal["task", "others"] = "task"
    """Whose words `input` holds: `others` where a stranger may have written it, such as the body of a web request."""
    attachments: tuple[Attachment, ...] = Field(default=(), max_length=MOST_ATTACHED)
    """Pictures and PDFs that the task is about; their content counts as others' words."""
    user_id: Principal = Field(default=NOBODY, min_length=1)
    session_id: Name | None = None
    follows: Follows | None = None
    """The run of the same user and session that this one goes on from."""
    by: Principal = ""
    """Who starts the run; counts only with a proof."""
    proof: Name | None = None
    """Proves `by`: signed for the update `start`, with this task without `proof` as the payload."""
    budget: Budget = Budget()
    policy: PolicyOfTask | None = None
    """May only tighten the operator's policy."""
    profile: str = Field(default="default", min_length=1, max_length=200)
    """Which of the operator's profiles says what this task does not."""
    mode: Literal["act", "plan_first"] = "act"
    plan: Plan | None = None
    output_schema: OutputSchema = None
    """JSON Schema of the value under `Result.output`; a class of pydantic stands for its schema."""
    workspace: str | None = Field(default=None, min_length=1, max_length=200)
    """A folder beneath the worker's folder of workspaces; it is made when there is none."""
    filesystem: bool = False
    """Whether the run may use the files of its workspace."""
    shell: bool = False
    """Whether the run may run commands in its workspace."""
    extra_context: dict[str, Any] = Field(default_factory=dict)
    metadata: dict[str, Any] = Field(default_factory=dict)
    on_failure: Literal["rollback", "keep"] = "rollback"
    rehearse: bool = False
    """Whether plans and programs run first with their writes simulated; people approve what that foretells."""
    model: str | None = Field(default=None, max_length=200)

    @classmethod
    def admit(cls, data: Any) -> Self:
        """Validate a task from outside; raises TaskInvalid naming field, value and fix."""
        if deeper_than(data, DEEPEST):
            raise TaskInvalid(f"Task: nested deeper than {DEEPEST} levels; flatten it, or put it in a file")
        task = super().admit({"text": data} if isinstance(data, str) else data)
        _check_plan(task)
        if task.plan is not None and task.output_schema is not None:
            raise TaskInvalid("output_schema: no model answers in a plan, which reports raw_outputs; leave it out")
        _check_workspace(task)
        if task.plan is not None and task.attachments:
            raise TaskInvalid("attachments: no model looks at them in a plan; leave them out")
        if not task.text.strip() and task.plan is None:
            raise TaskInvalid("text: empty; say in a sentence what is wanted, or give a plan")
        return task

    @property
    def builtin(self) -> tuple[str, ...]:
        """Return the providers that a workspace brings."""
        return tuple(name for name, wanted in (("fs", self.filesystem), ("shell", self.shell)) if wanted)

    @property
    def doubts_names(self) -> bool:
        """Return whether the answer of a person counts as theirs only with a proof, whatever the policy says."""
        return self.text_from == "others"

    @property
    def fairness_key(self) -> str:
        """Return the key under which the runs of its user take turns with those of others."""
        return fairness_key(self.user_id)


def _check_plan(task: Task) -> None:
    if task.plan is None:
        return
    for name in ("hash", "state"):
        if getattr(task.plan, name):
            raise TaskInvalid(f"plan.{name}: computed by the engine; leave it out")
    try:
        _check_size(task, task.plan)
    except ArgumentsInvalid as error:
        raise TaskInvalid(f"plan.{error}") from None
    except ValueError:
        raise TaskInvalid("plan: a value is none that JSON can hold; give it as a string, or as null") from None
    if task.mode == "plan_first":
        raise TaskInvalid("mode: no model plans in a run that is given its plan; leave mode, or plan, out")


def _check_size(task: Task, plan: Plan) -> None:
    """Raise ArgumentsInvalid for a plan that is too large with its input, and ValueError for what JSON cannot say."""
    if not has_references([step.arguments for step in plan.steps]):
        return
    # A program may have given values of Python, such as dates.
    steps = [step.model_dump(mode="json", include={"arguments"})["arguments"] for step in plan.steps]
    refuse_large_steps(steps, task.model_dump(mode="json", include={"input"})["input"])


def _check_workspace(task: Task) -> None:
    if task.workspace is None and task.builtin:
        wanted = "filesystem" if task.filesystem else "shell"
        raise TaskInvalid(f"workspace: required for {wanted}; name a folder, or leave {wanted} out")
    if task.workspace is not None and not task.builtin:
        raise TaskInvalid("workspace: of no use without filesystem or shell; set one of them to true")
