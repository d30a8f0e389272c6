"""What the model answered: actions and a short reason."""

from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field

from backstay.bounds import size_of
from backstay.budgets.share import AskedSums, asked_share
from backstay.budgets.usage import ModelUsage
from backstay.errors import ArgumentsInvalid
from backstay.frozen import Frozen, Message
from backstay.provenance.source import ArgumentSources
from backstay.shown import one_line
from backstay.task.plan import Plan
from backstay.tools.tool import ToolCall

MOST_ALTERNATIVES = 4
MOST_GIVEN = 8_000
"""Bytes of JSON of the task of a sub-run, and of what narrows its policy: people are to read both."""
_GIVEN = ("task", "share", "policy")


class _Act(Frozen):
    def model_post_init(self, _context: Any) -> None:
        """Count the kind as set: it must reach history even though it has a default."""
        self.model_fields_set.add("kind")


class SearchTools(_Act):
    """Look for tools."""

    kind: Literal["search_tools"] = "search_tools"
    call_id: str
    query: str
    detail_level: Literal["summary", "full"] = "summary"
    limit: int = Field(default=10, ge=1, le=40)


class ReadResult(_Act):
    """Look further into a stored result."""

    kind: Literal["read_result"] = "read_result"
    call_id: str
    ref: str
    path: str = ""
    offset: int = 0
    limit: int = 20


class Recall(_Act):
    """Look for what earlier runs of the same user have left in memory."""

    kind: Literal["recall"] = "recall"
    call_id: str
    query: str
    limit: int = Field(default=8, ge=1, le=20)


class CallTools(_Act):
    """Call tools together: ruled together, asked about in one request, run in parallel."""

    kind: Literal["call_tools"] = "call_tools"
    calls: tuple[ToolCall, ...]


class RunProgram(_Act):
    """Run a program that the model wrote."""

    kind: Literal["run_program"] = "run_program"
    call_id: str
    program: str
    """Ref of the stored bundle."""
    source: str | dict[str, Any]
    """For the person who is asked about it; a long one is folded, as the arguments of calls are."""
    begins: str = ""
    """How a folded source begins."""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    """Where it uses what an operator wants people to be warned of."""


class Delegation(Frozen):
    """Name one part of a task that is to be given to a sub-run."""

    call_id: str
    task: str
    share: float | AskedSums | None = None
    """A part of what is left, sums of single limits, or an equal part."""
    policy: dict[str, Any] | None = None
    """What narrows the policy of the run."""
    reason: str = ""

    @classmethod
    def asked(cls, call_id: str, arguments: dict[str, Any], reason: str) -> Self:
        """Return what a model gives to a sub-run; raises ArgumentsInvalid naming field and fix."""
        unknown = next((name for name in arguments if name not in _GIVEN), None)
        if unknown is not None:
            raise ArgumentsInvalid(f"{one_line(unknown, 80)}: unknown; give {', '.join(_GIVEN)}")
        task, policy = arguments.get("task"), arguments.get("policy")
        if not isinstance(task, str) or not task.strip():
            raise ArgumentsInvalid("task: required; say in words what the sub-run is to do")
        if (size := size_of(task)) > MOST_GIVEN:
            raise ArgumentsInvalid(
                f"task: {size:,} bytes of JSON are more than the {MOST_GIVEN:,} allowed; name refs in place of contents"
            )
        if policy is not None and not isinstance(policy, dict):
            raise ArgumentsInvalid('policy: must be an object, such as {"deny": ["mail.*"]}')
        if policy is not None and size_of(policy) > MOST_GIVEN:
            raise ArgumentsInvalid(f"policy: more than {MOST_GIVEN:,} bytes of JSON; narrow it with fewer rules")
        share = asked_share(arguments.get("share"))
        return cls(call_id=call_id, task=task, share=share, policy=policy, reason=reason)


class Delegate(_Act):
    """Give parts of the task to sub-runs, which work at the same time."""

    kind: Literal["delegate"] = "delegate"
    parts: tuple[Delegation, ...]


class AskPerson(_Act):
    """Ask a person a question."""

    kind: Literal["ask_person"] = "ask_person"
    call_id: str
    question: str


class ProposePlan(_Act):
    """Propose a plan, and perhaps others to choose from."""

    kind: Literal["propose_plan"] = "propose_plan"
    call_id: str
    plans: tuple[Plan, ...] = Field(min_length=1, max_length=MOST_ALTERNATIVES)
    parent: str | None = None
    """The plan that this one amends or corrects."""
    sources: tuple[tuple[ArgumentSources | None, ...], ...] = ()
    """Where the arguments of each step of each plan come from; empty where nobody needs to know."""


class MarkStep(_Act):
    """Say something of a step of the last plan; it changes nothing."""

    kind: Literal["mark_step"] = "mark_step"
    call_id: str
    idx: int
    status: str = ""
    note: str = ""


class Finish(_Act):
    """End the run."""

    kind: Literal["finish"] = "finish"
    call_id: str | None = None
    summary: str = ""
    outputs: dict[str, Any] = Field(default_factory=dict)
    output: Any = None
    """The value that the task wants, checked against its schema."""
    output_ref: str | None = None
    """Where the value is stored, when it is too large to be here."""
    success: bool = True


Action = Annotated[
    SearchTools | ReadResult | Recall | MarkStep | CallTools | Delegate | RunProgram | ProposePlan | AskPerson | Finish,
    Field(discriminator="kind"),
]


class Perception(Frozen):
    """Hold what a model makes of a task before tools are searched; a hint, never a fact."""

    intent: str = Field(max_length=500)
    entities: tuple[Annotated[str, Field(max_length=100)], ...] = Field(max_length=20)
    """Names, addresses, amounts and dates that the task speaks of."""
    tool_hint: str = Field(max_length=300)
    """Words that the tools to look for could be described with."""
    tags: tuple[Annotated[str, Field(max_length=50)], ...] = Field(max_length=20)
    selected_servers: tuple[Annotated[str, Field(max_length=100)], ...] = Field(max_length=100)
    """The servers whose tools are needed, of those that there are."""


class PlanVerdict(Frozen):
    """Hold what a model says of the work of a plan; as hostile as what that model has read."""

    model_config = ConfigDict(frozen=True, strict=True)

    approved: bool
    confidence: float = Field(ge=0, le=1, allow_inf_nan=False)
    problems: tuple[Annotated[str, Field(max_length=300)], ...] = Field(max_length=20, strict=False)


class Decision(Message):
    """Hold one answer of the model, already validated, with secrets and big leaves replaced."""

    actions: tuple[Action, ...] = ()
    """In the order in which they are performed; empty when every call was refused and the model has been told."""
    reason: str = ""
    """What the model says about why; never an engine fact."""
    context: str
    """Ref of the context that includes this answer and the refusals."""
    refused: int = 0
    """Calls answered with an error inside the activity: malformed, unknown, against their schema."""
    fault: str = ""
    """What is wrong with the arguments, or the program, of the first of these that was refused for that."""
    output_fault: str = ""
    """Why the model's last word was not taken as the value that the task wants; empty when it was, or gave none."""
    catalog: str = ""
    """Version of the catalog that the tools were taken from."""
    usage: ModelUsage = ModelUsage()
    worst_case_micro: int = 0
    """What this call could have cost at most; guides the next reservation."""
    dropped: int = 0
    """Items that trimming left out of the request."""
    verdict: PlanVerdict | None = None
    """What it says of the work of a plan, where it was asked for that; None with the reason why it says nothing."""
    perception: Perception | None = None
    """What the task is about, where that was asked and could be read."""
    private: tuple[str, ...] = ()
    """The providers of what the model was told that not everybody may read."""
    learned: str = ""
    """How the endpoint is asked from now on, because of what it has refused."""
