"""The questions that people are asked, and their answers."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal
from urllib.parse import quote

from pydantic import Field, field_validator

from backstay.approvals.forecast import ForecastEntry
from backstay.approvals.proposal import ApproveOption, PlanToggles, Proposal
from backstay.authority import Authority, Principal
from backstay.bounds import AnswerOfPerson, Name, Words
from backstay.canonical import pointer_to
from backstay.frozen import Frozen, PublicInput
from backstay.policies.accepted import Like, Remember
from backstay.provenance.source import Source, among
from backstay.provenance.telling import COMPOSED, ArgumentOrigin, told_of
from backstay.quoting import named
from backstay.shown import for_user, holds_mask, one_line
from backstay.tools.tool import Safety


class Verdict(StrEnum):
    """Name a decision."""

    APPROVE = "approve"
    MODIFY = "modify"
    REJECT = "reject"
    ANSWER = "answer"
    HAPPENED = "happened"
    DID_NOT_HAPPEN = "did_not_happen"
    RETRY = "retry"


class RequestKind(StrEnum):
    """Name what a request is about."""

    CALL = "call"
    BATCH = "batch"
    PLAN = "plan"
    PROGRAM = "program"
    BUDGET = "budget"
    OUTCOME = "outcome"
    QUESTION = "question"
    ELICITATION = "elicitation"


_LONGEST_INDEX = 100
PROGRAM_INDEX = -1
"""The index under which the program is read that makes the calls of a request."""


class RequestedCall(Frozen):
    """Show one call that waits for a verdict; engine facts only, text escaped."""

    index: int
    tool: str
    arguments: dict[str, Any]
    safety: Safety
    undoable: bool
    undo_how: str | None = None
    side_effects: tuple[str, ...] = ()
    """What the operator says that it changes."""
    diff: str | None = None
    """What the call would change, as the provider or a declared preview shows it."""
    clipped: int = 0
    """How many characters are not shown; approving needs the full digest then."""
    left_out: int = 0
    """How many arguments are not shown at all."""
    args_digest: str = ""
    repeats: str | None = None
    """When the run made the same call before, and what came of it."""
    changed: tuple[str, ...] = Field(default=(), exclude_if=lambda lines: not lines)
    """What people have changed of it since it was asked first, as lines; none where it is as the run wants it."""
    changed_by: str = Field(default="", exclude_if=lambda who: not who)
    """Who changed it."""
    sources: dict[str, tuple[Source, ...]] = Field(default_factory=dict)
    """By JSON pointer into the arguments: where what is told of came from; none for the model's own words."""
    minded: tuple[str, ...] = Field(default=(), exclude_if=lambda pointers: not pointers)
    """The arguments because of whose sources policy asks, as JSON pointers."""

    @property
    def count(self) -> int:
        """Return how many arguments the call has; one entry of those shown stands for all that are left out."""
        return len(self.arguments) + max(self.left_out - 1, 0)

    def told(self, name: str) -> ArgumentOrigin:
        """Return what people are told of where an argument came from."""
        minded = any(among(at, [pointer_to("", name)]) for at in self.minded)
        text = told_of(self.sources, name) or (COMPOSED if minded else "")
        return ArgumentOrigin(one_line(text, 500), minded)


class Links(Frozen):
    """Say where a person finds a request and its run."""

    page: str | None = None
    """None until there is a page of approvals."""
    web_ui: str | None = None
    """The run in Temporal's Web UI; None where nobody said where that is."""


class ApprovalRequest(Frozen):
    """Ask people something; the engine's facts are apart from what the model says."""

    id: str = ""
    """Given when the request is opened."""
    kind: RequestKind
    question: str
    task: str = ""
    """The first line of the task, redacted."""
    above: tuple[str, ...] = Field(default=(), exclude_if=lambda above: not above)
    """The first lines of the tasks of the runs that have delegated to this one, the first of them first."""
    user_id: str = ""
    session_id: str | None = None
    step: int = 0
    links: Links = Links()
    calls: tuple[RequestedCall, ...] = ()
    program: RequestedCall | None = Field(default=None, exclude_if=lambda program: program is None)
    """The program that makes these calls, as its source; None where no program does."""
    answer_schema: dict[str, Any] | None = Field(default=None, alias="schema")
    options: tuple[str, ...] = ()
    """Verdicts that will be accepted."""
    reason: str = ""
    """What the model or the author of the plan says; hostile text is escaped."""
    rule: str = ""
    """Which rule asked."""
    approvers: tuple[str, ...] = ()
    """Verified persons who may decide; empty means anyone with access to the namespace."""
    quorum: int = 1
    no_self_approval: bool = False
    decided: tuple[dict[str, Any], ...] = ()
    """Verdicts so far, while a quorum is not complete."""
    cost_so_far: float = 0
    created_at: str = ""
    expires_at: str | None = None
    on_expiry: Literal["reject", "escalate", "fail"] = "reject"
    args_digest: str = ""
    namespace: str = ""
    run_id: str = ""
    """The run id of the run's first execution; a proof names it, and the namespace."""
    digest: str = ""
    """The digest of the request as it was opened; a proof names it."""
    verified: bool = False
    """Whether a verified person must decide even where none is named."""
    proposal: Proposal | None = None
    """The plan that waits for approval; None for other requests."""
    forecast: tuple[ForecastEntry, ...] = ()
    """What a rehearsal foretells; a real call that fits it is covered by the decision."""
    sequence: int = 0
    """The number of the notice that it was asked with; 0 for one that was asked before the run was open."""
    escalated: bool = False
    """Whether nobody had decided in time, so it was asked again."""
    escalated_to: tuple[str, ...] = ()
    """Who was asked, too, when nobody had decided in time."""
    may_remember: tuple[Remember, ...] = ()
    """How long a decision about its calls can be remembered; none where more than the policy's default asks."""

    model_config = Frozen.model_config | {"populate_by_name": True, "serialize_by_alias": True}

    @property
    def shown(self) -> tuple[RequestedCall, ...]:
        """Return all that it shows arguments of: its calls, and the program that makes them."""
        return self.calls if self.program is None else (*self.calls, self.program)

    @property
    def masked(self) -> bool:
        """Return whether the calls, as they are shown, hold masks or handles in place of values."""
        return any(holds_mask([call.arguments, call.diff]) for call in self.shown)

    @property
    def sign_in(self) -> str | None:
        """Return the place on our own page where people sign in at the server that asks for that; None for any other.

        A server whose question looks like one leads people there too, and nowhere else.
        """
        page, known, _ = (self.links.page or "").rpartition("/requests/")
        providers = {call.tool.partition(".")[0] for call in self.calls}
        if self.kind is not RequestKind.ELICITATION or not known or len(providers) != 1:
            return None
        place = f"{page}/connections#{quote(providers.pop())}"
        return place if place in self.question else None

    def wants_sign_in(self, mark: str) -> bool:
        """Return whether it asks for a sign-in and nothing else: no server can tell the mark."""
        schema = self.answer_schema or {}
        own = schema.get("$comment") == mark and schema.get("type") == "boolean"
        return self.kind is RequestKind.ELICITATION and own

    @property
    def place(self) -> str:
        """Return whom it is for, in which session, and which step asks, in words."""
        session = f"session {self.session_id}" if self.session_id else ""
        return ", ".join(filter(None, (for_user(self.user_id), session, f"step {self.step}")))

    @property
    def escalation(self) -> str:
        """Return whom it was escalated to, in words; empty where it was not."""
        return escalation(self.escalated_to, escalated=self.escalated)

    @property
    def then(self) -> str:
        """Return what happens when it expires; nobody is asked a third time."""
        return "reject" if self.escalated else self.on_expiry

    @property
    def unchecked(self) -> tuple[str, str]:
        """Return who says something about it that nobody checked, such as "the model", and what they say.

        The text of each is empty where the plan's title has said it.
        """
        if self.proposal is None:
            return "the model", self.reason
        return "the plan", "" if self.reason == self.proposal.title else self.reason

    @property
    def authority(self) -> Authority:
        """Return who may decide."""
        return Authority(
            approvers=self.approvers,
            quorum=self.quorum,
            no_self_approval=self.no_self_approval,
            verified=self.verified,
        )

    @property
    def deciders(self) -> frozenset[str]:
        """Return who may decide it, or a part of it; empty where anybody may."""
        parts = () if self.proposal is None else self.proposal.parts
        named = [{*part.approvers, *part.escalate_to} if part.approvers else set[str]() for part in parts]
        if not parts:
            named = [{*self.approvers, *self.escalated_to} if self.approvers else set[str]()]
        return frozenset[str]().union(*named) if all(named) else frozenset()


def _plain_number(index: str) -> bool:
    return len(index) < _LONGEST_INDEX and str(int(index)) == index


def escalation(people: Sequence[str], *, escalated: bool) -> str:
    """Say who was asked, too, when nobody had decided in time, or that it was asked again; empty where it was not."""
    if not escalated:
        return ""
    if named := one_line(", ".join(people), 500):
        return f"Asked in addition, because nobody had decided in time: {named}"
    return "Asked again, because nobody had decided in time"


class ChangedCall(Frozen):
    """Say what a decision changed of one call."""

    index: int
    args_digest: str
    """The digest of the changed arguments, all of them."""
    lines: tuple[str, ...] = ()
    """What differs, in the form that people are shown."""


class RecordedDecision(Frozen):
    """Keep one decision that a run accepted, for the audit."""

    n: int
    at: str
    update: str
    """Through which update or signal it came."""
    by: str
    verified: bool
    verdict: str = ""
    """The most permissive one that it named, for the whole or for a single call."""
    calls: dict[int, str] = Field(default_factory=dict, exclude_if=lambda calls: not calls)
    """The verdict of each call, by index; nothing where the request asked about none."""
    request_id: str = ""
    args_digest: str = ""
    comment: str = ""
    state: str = ""
    """decided | recorded: it completed the request, or waits for others."""
    remember: str = ""
    """How long it was to be remembered."""
    handle: str = ""
    """The secret that was shown, by its handle."""
    stop: bool = Field(default=False, exclude_if=lambda stop: not stop)
    """Whether it ends the run."""
    asked_again: bool = Field(default=False, exclude_if=lambda again: not again)
    """Whether the calls are asked about again with its change, so that it let none of them go."""
    option: str = ""
    """How a plan was approved."""
    left_out: tuple[int, ...] = ()
    """The steps of a plan that were rejected while the rest was approved."""
    toggles: PlanToggles | None = None
    """What an approved plan may not do, though it was proposed so."""
    changed: tuple[ChangedCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """What it changed of calls."""


class CallVerdict(PublicInput):
    """Decide one call of a batch."""

    verdict: Literal["approve", "modify", "reject"]
    arguments: dict[str, Any] | None = None
    """Of `modify`: the arguments that change, by their top-level names."""
    without: tuple[str, ...] = ()
    """Of `modify`: the arguments that are left out."""


class Approval(PublicInput):
    """A person's decision on one request."""

    request_id: Name
    verdict: Verdict
    calls: dict[int, CallVerdict] | None = None
    """Per-call verdicts by index; calls that are not named follow `verdict`.

    With `modify` they follow nothing: unless every call is named, all of them are asked about again with the change.
    """
    answer: AnswerOfPerson = None
    stop: bool = False
    by: Principal = Field(min_length=1)
    proof: Name | None = None
    comment: Words = Field(default="", max_length=4000)
    args_digest: Name | None = None
    ask_again: bool = False
    """With `modify`: whether the changed calls are asked about again before any of them is made."""
    event_id: Name | None = Field(default=None, max_length=200)
    remember: Literal[False] | Remember = False
    """How long this decision holds for such calls; true is `always`."""
    option: ApproveOption | None = None
    """How a plan is approved."""
    plan_id: Name | None = None
    """Which plan is approved, where several are proposed."""
    toggles: PlanToggles | None = None
    """What an approved plan may not do, though it was proposed so."""
    remember_arguments: Literal["these", "alike", "any"] = "these"
    """Whether it is remembered for exactly the same arguments, for calls that are alike, or for any arguments."""
    remember_like: Like | None = Field(default=None, exclude_if=lambda like: like is None)
    """With `alike`: which calls these are, as it was shown; nothing else is remembered."""

    @field_validator("calls", mode="before")
    @classmethod
    def _each_index_once(cls, value: Any) -> Any:
        known: dict[Any, Any] = value if isinstance(value, dict) else {}
        for index in known:
            # "00" and "0.0" would be read as 0, and one of two verdicts about it would not count.
            if isinstance(index, str) and not (index.removeprefix("-").isdecimal() and _plain_number(index)):
                raise ValueError(f"{named(index)!r} is not the index of a call; write it as a plain number, such as 0")
        return value

    @field_validator("by")
    @classmethod
    def _somebody(cls, value: str) -> str:
        if not value:
            raise ValueError("empty; say who decides")
        return value

    @field_validator("remember", mode="before")
    @classmethod
    def _true_is_always(cls, value: Any) -> Any:
        return "always" if value is True else value
