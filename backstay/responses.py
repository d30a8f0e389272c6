"""The answers of entries of the menu, where no other noun says it."""

from typing import Any

from pydantic import Field

from backstay.authority import Authority
from backstay.effects.effect import Effect
from backstay.frozen import Message
from backstay.policies.accepted import AcceptedLine
from backstay.policies.policy import Policy
from backstay.profile import Profile
from backstay.provenance.source import ArgumentSources
from backstay.task.decision import Decision
from backstay.tools.tool import Tool, ToolResult, WorkspaceLimits
from backstay.tools.trying import FOLLOWED_S, TRANSIENT_S


class ModelChoice(Message):
    """Name a model that may be asked, and what its first call may cost."""

    name: str
    reserve_micro: int = 0
    """What to reserve for its first call."""
    listed: bool = False
    """Whether it is an entry of models.yaml; then it is asked nowhere else."""


class SearchFindings(Message):
    """Answer a search without carrying the hits through history."""

    ref: str
    catalog: str
    count: int
    starting: bool = False
    """Whether a server has not answered yet since it was started, and may still do so."""
    unavailable: dict[str, str] = Field(default_factory=dict)
    """Why providers cannot be used now, by provider."""


class RunAbove(Message):
    """Name a run that has delegated to this one, directly or through another sub-run."""

    workflow_id: str
    run_id: str
    """Of its first execution."""
    task_line: str = ""


class OpenedRun(Message):
    """Hold what was resolved when the run began."""

    store: str
    model: str
    policy: Policy
    policy_hash: str
    prompt_hash: str
    catalog: str
    context: str
    """Ref of the context that holds the prompt and the task."""
    reserve_micro: int = 0
    """What to reserve for the first model call."""
    finalize_micro: int = 0
    """What to keep back for one closing summary."""
    search_attributes: bool = False
    """Whether the namespace knows our search attributes."""
    task_line: str = ""
    """The first line of the task, without secrets."""
    searched: str = ""
    """The beginning of the task without secrets, for the first search; empty where the task holds none."""
    plan_words: dict[str, Any] | None = None
    """What the plan of the task says for people, without secrets; None where it holds none."""
    task_searchable: bool = False
    """Whether that line may be in a search attribute, which is never encrypted."""
    web_ui: str = ""
    """Where people find Temporal's Web UI; empty when nobody said."""
    settle_after_s: float = 5
    deadline_s: float = 30
    """How long a tool may take to answer, unless a plan step says otherwise."""
    step_timeout_s: float = 30
    """How long the call of a plan's step may take, where the plan does not say."""
    server_task_s: float = FOLLOWED_S
    """For how long the task is followed by which a server answers a call."""
    transient_s: float = TRANSIENT_S
    """How long a fault that may pass is waited out before a person is asked."""
    sandbox_queue: str = ""
    """Where programs run; empty when no worker there answers, so that none is offered."""
    workspace: str = ""
    """The workspace that the run holds until it ends."""
    workspace_place: str = ""
    """Where it is, `<host>/<id>`."""
    builtin: tuple[str, ...] = ()
    """Which providers of the workspace the run may use."""
    jail: WorkspaceLimits = WorkspaceLimits()
    """What a call of theirs may use at most, where that is known."""
    started_by: str = ""
    """Who proved to have started the run; empty when nobody did."""
    text_by_others: bool = False
    """Whether others may have written what the run is about."""
    page: str = ""
    """Where people find the page of approvals; empty when nobody said."""
    output_schema: str = ""
    """Ref of the schema of the value that the task wants; empty when it wants none."""
    accepted: tuple[AcceptedLine, ...] = ()
    """The lines that people accepted before, for runs such as this one."""
    listed: bool = False
    """Whether `model` is an entry of models.yaml."""
    fallbacks: tuple[ModelChoice, ...] = ()
    """Who is asked in turn when that model fails."""
    closing: tuple[ModelChoice, ...] = ()
    """Who is asked in turn for a closing summary; empty: the models of the run."""
    perception: tuple[ModelChoice, ...] = ()
    """Who is asked in turn what the task is about, before the first search; empty: nobody."""
    reviewer: tuple[ModelChoice, ...] = ()
    """Who is asked in turn for a verdict on what a plan has done; empty: nobody."""
    profile: Profile = Profile()
    """What the run has where its task says nothing."""
    memory_of: str = ""
    """Whose memory the run reads or fills; empty where it has none."""
    above: tuple[RunAbove, ...] = ()
    """The runs that have delegated to this one, the first of them first; none for a run that a person, a program or a
    schedule has started."""
    private: tuple[str, ...] = ()
    """The providers that have answered a run above this one something which not everybody may read."""
    misnamed: str = ""
    """Which tools the quotas and the policy of the task name that there are not."""
    found: SearchFindings | None = None
    """What the first search found; None where it must be made by itself, as servers are starting or a model is asked
    what to look for."""


NOT_OPENED = OpenedRun(store="", model="", policy=Policy(), policy_hash="", prompt_hash="", catalog="", context="")
"""What holds until `open_run` has answered; only then a store is named."""


class RedactedInput(Message):
    """Hold what a person typed, with a handle in place of each secret."""

    typed: dict[str, Any]
    refused: str = ""
    """The field in which a name holds a secret."""


class ActivityFault(Message):
    """Tell an error of an activity where it is a value."""

    type: str
    message: str
    facts: dict[str, Any] = Field(default_factory=dict)


class CallOutcomes(Message):
    """Hold what calls led to that were made in one activity."""

    results: tuple[ToolResult | None, ...]
    """In the order of the calls; None for one that was not made, which is free to be made again."""


class StepOutcome(CallOutcomes):
    """Hold what the model decided after calls, too."""

    decision: Decision | None = None
    fault: ActivityFault | None = None
    """Why the model was asked in vain; None where it decided, or was not asked."""
    asked: bool = False
    """Whether it may have been asked, so that its reservation is spent."""
    unwritten: bool = False
    """Whether the events and decisions that came with the request were not written."""


class CheckedCall(Message):
    """Hold a checked call, with secrets and big leaves replaced."""

    tool: Tool | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    error: str | None = None
    """What is wrong and how to fix it; None when the call may be ruled on."""
    error_type: str | None = None
    sources: ArgumentSources | None = None
    """Where the resolved arguments came from, when stored results were given."""
    differs: str = ""
    """Where the call is not as it was foretold; empty when it fits, or nothing was foretold."""


class CallPreviews(Message):
    """Hold what calls would change, in their order."""

    diffs: tuple[str | None, ...] = ()
    """Unified diffs, redacted and cut; None where nothing can be shown beforehand."""


class LoadedEffects(Message):
    """Hold effects of a run, those with the highest numbers first."""

    run: str = ""
    user_id: str = ""
    session_id: str | None = None
    opened: OpenedRun | None = None
    """What the run was opened with, when it is loaded after its end."""
    last_event: int = 0
    """The number of its last event, when it is loaded after its end."""
    effects: tuple[Effect, ...] = ()
    more: bool = False
    """Whether there are others with lower numbers."""
    count: int = 0
    """How many there are in all, when the first of them are asked for."""
    authority: Authority | None = None
    """Who may undo all of them, when the first of them are asked for."""


class Reproduction(Message):
    """State whether a program that was run again ended the same way."""

    differs: str = ""
    """What was different; empty when nothing was."""


class ProofCheck(Message):
    """State whether a proof is valid."""

    verified: bool
    reason: str = ""
    used: bool = False
    """Whether it holds, and was used before."""


class RememberedLines(Message):
    """Tell which lines hold from now on."""

    held: tuple[AcceptedLine, ...] = ()
    """The others wait until enough people accept them."""
    missing: int = 0
    """How many people must still accept those that wait; 0 when only who can write policy.yaml may."""


class CarriedOver(Message):
    """Name a kept state, and vouch for it."""

    ref: str
    seal: str
    written_by: str
    """The execution that it is vouched for."""


class LoadedState(Message):
    """Hold the state of the execution before."""

    packed: str
    """The state as JSON, compressed, in base64."""


class ClosingFigures(Message):
    """Hold what the store adds to the Result."""

    effects: tuple[Effect, ...] = ()
    """The last 100."""
    effects_ref: str | None = None
    events_total: int | None = None
    """None where the store was not reached."""
    events_ref: str | None = None
    raw_outputs: dict[str, Any] | None = None
    """The outputs of a plan with the short answers of its steps; None where they stay as they are."""
    ledger_head: str | None = None
    """The head of the run's chain in the ledger, as it was when the run was closed."""
