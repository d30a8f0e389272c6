"""The work that a run is in the middle of, so that its next execution can go on there."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backstay.approvals.approval import ApprovalRequest, CallVerdict, Verdict
from backstay.approvals.proposal import PlanToggles
from backstay.authority import Authority
from backstay.budgets.budget import Reservation
from backstay.budgets.share import Share
from backstay.canonical import canonical
from backstay.frozen import Frozen
from backstay.plans.rehearsal import Rehearsal
from backstay.starting import EndedChild
from backstay.task.decision import Decision
from backstay.task.result import Failure, Outcome
from backstay.tools.program import Halt, ProgramAnswer
from backstay.tools.server_task import TaskProgress
from backstay.tools.tool import ToolCall, ToolResult

MOST_HELD = 400_000
"""Characters of all decisions that are held back, so that the state of the run stays small."""


class RequestOutcome(Frozen):
    """Hold what was decided about a request."""

    verdict: Verdict | None
    """None when the request expired."""
    calls: dict[int, CallVerdict] = Field(default_factory=dict)
    answer: Any = None
    stop: bool = False
    by: str = ""
    verified: bool = False
    """Whether it is proven who that is."""
    comment: str = ""
    on_expiry: str = "reject"
    per_step: bool = False
    """Whether a plan goes on without the steps that were rejected."""
    left_out_by: dict[int, tuple[str, str]] = Field(default_factory=dict)
    """Who left out which step of a plan, and why."""
    toggles: PlanToggles | None = None
    """What an approved plan may not do."""
    no_processes_by: str = ""
    """Who lets it start none."""
    dry_run: bool = False
    """Whether a plan is approved for nothing but a dry run."""
    again: bool = False
    """Whether what it changed is asked about again before any call is made."""


class OpenRequest(Frozen):
    """Hold a request that waits for people."""

    key: str
    """What the request is about; a call that asks about the same again goes on with this request."""
    request: ApprovalRequest
    reminded: int = 0


class BegunCall(Frozen):
    """Hold one call of the batch under way."""

    call: ToolCall
    effect: int | None = None
    send: int = 1
    authority: Authority | None = None
    result: ToolResult | None = None
    """The answer to its last send; None while that is under way."""
    question: str = Field(default="", exclude_if=lambda ref: not ref)
    """Ref of the sealed question of its server that the send under way answers."""
    reply: Any = Field(default=None, exclude_if=lambda reply: reply is None)
    """The answer to that question; None declines it."""
    raised: Failure | None = None
    """What ended it without a result."""
    progress: TaskProgress | None = None
    """How far the task is by which its server answers."""
    done: bool = False


class BegunBatch(Frozen):
    """Hold the batch of calls under way."""

    refused: dict[int, ToolResult] = Field(default_factory=dict)
    """By index in the batch: why a call may not be made."""
    calls: tuple[BegunCall, ...] = ()
    """The other calls, in order."""


class ProgramWork(Frozen):
    """Hold where the program under way stands."""

    halt: Halt
    made: int = 0
    """How many calls it has made."""
    first_effect: int = 0
    """The number of the first effect that could be its own."""
    undos: int = 0
    """How often a person had effects of the run undone before it began."""
    answers: tuple[ProgramAnswer, ...] | None = None
    """Answers that it was not given yet; None while its calls are to be made."""
    rehearsal: Rehearsal | None = None
    """How far it was rehearsed; None for a program that is not."""
    foretold: dict[int, ToolCall] = Field(default_factory=dict)
    """By their numbers: the calls of the rehearsal that people are asked about."""
    approved: bool = False
    """Whether what was foretold is approved, so that it runs for real."""
    results: dict[int, str] = Field(default_factory=dict)
    """After a rehearsal: the stored real results by the numbers of the calls."""
    people: tuple[dict[str, Any], ...] = ()
    """What people changed of its calls, and what they said."""

    @property
    def rehearsing(self) -> bool:
        """Return whether its calls are only foretold."""
        return self.rehearsal is not None and not self.approved


class PlanAnswers(Frozen):
    """Hold what was answered about the steps of the plan under way."""

    answered: dict[int, ToolCall | ToolResult] = Field(default_factory=dict)
    proposed: tuple[str, ...] = ()
    """The plans that people choose from."""
    plan_id: str = ""
    """The one that they approved."""
    toggles: PlanToggles | None = None
    """What they did not let it do."""
    dry_run: bool = False
    """Whether they let it do nothing but a dry run."""
    people: tuple[dict[str, Any], ...] = ()
    """What people changed of its steps, and what they said."""


class OpenSubrun(Frozen):
    """Hold one sub-run that is not settled yet."""

    workflow_id: str
    call: ToolCall
    """The delegation."""
    share: Share
    held: Reservation | None = None
    """The money that is reserved for it; None where the run has no limit."""
    ended: EndedChild | None = None
    """How its workflow has ended, as Temporal told."""


class EndedWork(Frozen):
    """Hold how the loop of a run ended, while the run is closed."""

    outcome: Outcome
    summary: str = ""
    outputs: dict[str, Any] = Field(default_factory=dict)
    output: Any = None
    output_ref: str | None = None
    error: Failure | None = None
    undone: dict[str, int] = Field(default_factory=dict)
    """How many effects were undone before the end, by how that ended."""


class Work(BaseModel):
    """Hold what a run is in the middle of; only workflow code changes it."""

    model_config = ConfigDict(extra="ignore")

    searched: bool = False
    """Whether the first search was made."""
    missing: dict[str, str] = Field(default_factory=dict)
    """Why providers could not be used at the last search; the model was told."""
    counted: bool = False
    """Whether the step under way is counted already."""
    decision: Decision | None = None
    """The decision that is carried out; None while the model is asked for one."""
    unpaid: bool = False
    """Whether it was billed more than was reserved for it, and nobody has looked yet whether the money is there."""
    action: int = 0
    """How many of its actions are done."""
    failed: bool = False
    """Whether one of them failed."""
    repeats: int = 0
    """How many steps before this one failed and are repeated by it."""
    ran: bool = False
    """Whether a program of this step, or of one that it repeats, was counted."""
    fault: str = ""
    """What the program of this decision failed with."""
    said: str = ""
    """What its program said with a marker, and nobody has looked at yet."""
    succeeded: bool = False
    """Whether any action of this decision succeeded."""
    output_faults: int = 0
    """How many of the model's answers were not taken as the value that the task wants."""
    output_fault: str = ""
    """Why the last one of them was not taken."""
    agreed: dict[str, RequestOutcome] = Field(default_factory=dict)
    """What people have decided about calls that were not begun yet, by the key of the request."""
    batch: BegunBatch | None = None
    program: ProgramWork | None = None
    plan: PlanAnswers | None = None
    keeps: bool = False
    """Whether a person said that what the task's plan did is kept, though its review found too much."""
    shares: tuple[Share, ...] = ()
    """Those about which people are asked; the next execution asks about the same, so it goes on with the request."""
    subruns: tuple[OpenSubrun, ...] = ()
    """Those under way; a run that has some does not continue as a new execution."""
    planned: bool = False
    """Whether people have approved a plan, so that the run does more than plan."""
    ended: EndedWork | None = None
    requests: tuple[OpenRequest, ...] = ()
    """The open requests; set when the state is carried over."""
    held: list[Any] = Field(default_factory=list)
    """Decisions that came by signal and were not looked at yet."""
    held_characters: int = 0
    looked_at: dict[str, str] = Field(default_factory=dict)
    """By what the proofs are used up of decisions by signal that are looked at, or are held back again."""
    message_bytes: int = 0
    """Of all messages that the run has received."""

    def hold(self, data: Any, characters: int) -> bool:
        """Hold a decision; return False when there is no room for it."""
        if self.held_characters + characters > MOST_HELD:
            return False
        self.held.append(data)
        self.held_characters += characters
        return True

    def take_held(self) -> Any:
        """Return the decision that was held first."""
        data = self.held.pop(0)
        self.held_characters = self.held_characters - len(canonical(data)) if self.held else 0
        return data

    def next_action(self) -> None:
        """Forget what belongs to the action that is done."""
        self.action += 1
        self.batch = self.program = None

    def next_decision(self) -> None:
        """Forget the decision that is carried out."""
        self.decision, self.action, self.failed = None, 0, False
        self.fault, self.succeeded = "", False

    def next_step(self) -> None:
        """Let the next decision be one of a new step, and not a repeat of this one."""
        self.repeats, self.ran = 0, False
