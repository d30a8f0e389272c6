"""The request of each entry of the menu, in the order of the menu."""

from typing import Any, Literal, TypeVar

from pydantic import Field

from backstay.approvals.approval import RecordedDecision
from backstay.approvals.forecast import ForecastEntry
from backstay.approvals.notice import NoticeDraft
from backstay.approvals.proposal import Proposal
from backstay.authority import Authority
from backstay.budgets.share import Spent
from backstay.frozen import Message
from backstay.plans.plan_run import PlanEnd
from backstay.plans.rehearsal import RehearsedCall
from backstay.plans.review import PlanWork, ReviewRules
from backstay.policies.accepted import AcceptedLine
from backstay.policies.denials import Denial
from backstay.provenance.source import ArgumentSources
from backstay.task.context import ContextItem
from backstay.task.decision import Decision
from backstay.task.event import Event, EventDraft, NumberedDraft, call_drafts, model_draft, search_draft
from backstay.task.plan import Plan
from backstay.task.reading import Reading
from backstay.task.result import Result
from backstay.task.task import Task
from backstay.task.theirs import Theirs
from backstay.tools.program import ProgramAnswer
from backstay.tools.tool import PreviewedCall, ToolResult, WorkspaceLimits

Part = TypeVar("Part", bound="OfRun")


class OfRun(Message):
    """Say for which run, and on which store, a call is made."""

    run: str = ""
    """The run key: `<workflow id>/<first execution run id>`. Set where activities are started, as all that follows."""
    store: str = ""
    """`<store id>/<epoch>` as `open_run` found it; another store is refused."""
    events: tuple[Event, ...] = ()
    """Events of the workflow that no activity has written yet."""
    numbered: tuple[NumberedDraft, ...] = ()
    """Events that activities left in the store as drafts, and their places in the timeline."""
    user_id: str = "singleton"
    session_id: str | None = None
    decisions: tuple[RecordedDecision, ...] = ()
    """Decisions that no activity has written yet."""
    workspace: str = ""
    """The workspace of the run; empty when it has none."""
    workspace_place: str = ""
    """Where it is, `<host>/<id>`; a worker of another place is refused."""
    builtin: tuple[str, ...] = ()
    """Which providers of the workspace the run may use."""

    def shared_with(self, part: Part) -> Part:
        """Return a part of this request with the fields that name the run; events and decisions stay with the whole."""
        return part.model_copy(update={name: getattr(self, name) for name in _OF_EACH_PART})


_OF_EACH_PART = ("run", "store", "user_id", "session_id", "workspace", "workspace_place", "builtin")


class FindTools(OfRun):
    """Search the catalog."""

    query: str
    detail_level: Literal["summary", "full"] = "summary"
    limit: int = 10
    draft: int = 0
    step: int = 0
    patience_s: float = 0
    """How long servers that are starting are waited for."""
    servers: tuple[str, ...] = ()
    """Only tools of these servers are looked for, where they have any; empty: those of all."""

    def happened(self, hits: int, catalog: str) -> tuple[EventDraft, ...]:
        """Return the event of this search."""
        return (search_draft(self.query, self.step, hits=hits, catalog=catalog),)


class OpenRun(OfRun):
    """Ask to resolve once what the run must not re-read later."""

    task: Task
    at: str
    workflow_run_id: str
    names_as_sent: dict[str, str] = Field(default_factory=dict)
    """The names of people in the task that were sent in another than their canonical form; a proof is for these."""
    search: FindTools | None = None
    """The first search, but for its query, which is the task; None where none is made."""


class AskModel(OfRun):
    """Ask the model what to do next."""

    model: str
    context: str
    append: tuple[ContextItem, ...] = ()
    micro: int | None = None
    """The reservation: the call is refused before sending when it may cost more. None: no USD limit."""
    listed: bool = False
    """Whether the model is an entry of models.yaml; then it is asked nowhere else."""
    closing: bool = False
    """Ask for a closing summary instead of actions."""
    perception: bool = False
    """Ask what the task is about instead of for actions."""
    work: PlanWork | None = None
    """Ask for a verdict on what a plan has done instead of for actions."""
    draft: int = 0
    """The first number under which the events of this call are left in the store; 0 leaves none."""
    step: int = 0
    tokens_left: int | None = None
    """What is left of the token limit for the request and its answer, when there is one."""
    budget: str = ""
    """What is left, in one line for the model."""
    programs: bool = False
    """Whether programs can run, so that the model may write one."""
    planning: bool = False
    """Whether the model may only plan: nothing is done before people approve a plan."""
    plans: bool = False
    """Whether the model may propose plans."""
    image: Literal["", "python", "data"] = ""
    """What programs may import, where the profile says so; empty: as the settings say."""
    markers: bool = False
    """Whether the markers at the start of its words mean something."""
    memory: bool = False
    """Whether the model may recall what is remembered of earlier runs."""
    delegation: bool = False
    """Whether the model may give parts of the task to sub-runs."""
    progress: str = ""
    """What each of the last steps called and how that ended, in one line for the model."""
    sources: bool = False
    """Whether the run's policy, or the people it asks, need to know where the arguments of writes came from."""
    output_schema: str = ""
    """Ref of the schema of the value that the task wants; empty when it wants none."""

    @property
    def purpose(self) -> Literal["step", "closing", "perception", "review"]:
        """Name what the model is asked for."""
        if self.work is not None:
            return "review"
        if self.closing:
            return "closing"
        return "perception" if self.perception else "step"

    def happened(self, decision: Decision) -> tuple[EventDraft, ...]:
        """Return the event of this call."""
        actions = [action.kind for action in decision.actions]
        context, learned = decision.context, decision.learned
        return (model_draft(self.model, decision.usage, self.step, actions, context, learned=learned),)


class ReadStored(OfRun):
    """Look further into a stored result."""

    ref: str
    path: str = ""
    offset: int = 0
    limit: int = 20


class RecallMemory(OfRun):
    """Look for what is remembered of earlier runs of the run's user."""

    query: str
    limit: int = 8


class ReadPage(OfRun):
    """Read a page of what a run has stored."""

    reading: Reading
    workflow_id: str | None = None
    """Which run, when another workflow reads; null for the run that asks."""
    workflow_run_id: str | None = None


class OfArguments(OfRun):
    """Say how the arguments of a call are written."""

    of_plan: bool = False
    """Whether they are those of a plan's step, in which `${…}` refers and `$${` stands for `${`."""
    results: dict[int, str] = Field(default_factory=dict)
    """Stored results by plan step, for references in the arguments."""

    @property
    def references(self) -> dict[int, str] | None:
        """Return what references name; None where a string that looks like one is a string."""
        return self.results if self.of_plan else None


class CheckCall(OfArguments):
    """Resolve and validate what did not come from the model: a plan step, modified arguments, an answer to a tool."""

    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    resolved: bool = True
    """False when references to later results remain, so that only the known part can be validated."""
    by_model: bool = False
    """Whether a model wrote the arguments; otherwise they are the task's."""
    theirs: Theirs | None = None
    """Which part of the task's arguments others gave; None where nobody did."""
    where_from: bool = False
    """Whether it is to be said where what references bring came from."""
    sources: ArgumentSources | None = None
    """Of a step that a model planned: where its arguments came from, as far as that was known when it was proposed."""
    denials: tuple[Denial, ...] = ()
    """Rules that deny the call if what references bring is as the rules say."""
    judge: bool = False
    """Whether the operator's own checks look at it, too, so that nobody is asked about what they deny."""
    before: dict[str, Any] | None = None
    """What a person has changed into the arguments: a name that the tool does not know is refused then."""
    forecast: ForecastEntry | None = None
    """What a rehearsal foretold of the call, with which it is compared."""
    answers: dict[int, str] = Field(default_factory=dict)
    """For that: the stored real results by their numbers in the forecast."""
    question: str = ""
    """Ref of the sealed question that the tool asked; then only the reply is checked, against that question."""
    reply: Any = None


class PreviewCalls(OfArguments):
    """Ask what calls would change, without making them."""

    calls: tuple[PreviewedCall, ...]


class KeepPlan(OfRun):
    """Keep a plan as it is proposed, for people and for later."""

    plan: Plan
    proposal: Proposal


class CallTool(OfArguments):
    """Call one tool, or the declared verify or compensation of one effect."""

    purpose: Literal["call", "simulate", "verify", "undo", "verify_undo"] = "call"
    """`call` for those of the model, of programs and of plans alike; `simulate` for those that are only foretold."""
    tool: str
    """For purposes other than `call`: the tool that made, or undoes, the effect; the arguments come from the store."""
    definition: str = ""
    accepted: bool = False
    """Whether a person accepted that definition: it is one of those last allowed from now on."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    sources: ArgumentSources | None = None
    """Where the arguments came from, for the event of the call."""
    denials: tuple[Denial, ...] = ()
    """Rules that deny the call if its arguments, once they are known, are as the rules say."""
    args_digest: str = ""
    effect: int | None = None
    """Number of the effect; None for a read-only call."""
    authority: Authority | None = None
    """Who may decide about the effect; recorded with its intent."""
    ruling: str = ""
    """What policy says of the call, and by which rule; recorded with it."""
    asked_again: bool = False
    """Whether a person allowed it after the tool was found changed."""
    send: int = 1
    """Counts deliberate sends; above 1 the row must show that the earlier send is settled as not sent."""
    tried: bool = False
    """Whether another activity has tried this send before, so that a record of it that is missing may be lost."""
    rehearsal: RehearsedCall | None = None
    """Set in a rehearsal: a read is real, but for one whose arguments hold simulated values."""
    question: str = ""
    """Ref of the sealed question that the tool asked when it was called before."""
    reply: Any = None
    """What a person answered to it; None declines."""
    deadline_s: float = 30
    limits: WorkspaceLimits | None = None
    """What it may use of its jail, when that is less than usual."""
    draft: int = 0
    step: int = 0

    def happened(self, result: ToolResult) -> tuple[EventDraft, ...]:
        """Return the events of this call."""
        return call_drafts(self.tool, self.arguments, result, effect=self.effect, sources=self.sources, step=self.step)


class FollowTask(OfRun):
    """Ask a server about the task by which it answered a call, answer its question, have it end, or ask no more."""

    tool: str
    """The tool that was called, or whose effect the call checks or undoes."""
    purpose: Literal["call", "verify", "undo", "verify_undo"] = "call"
    """What the call was made for, as in `CallTool`."""
    action: Literal["get", "update", "cancel", "forget"] = "get"
    """With `forget`, nobody asks about it any more, and what came of the call is unknown."""
    why: str = ""
    """For `forget`: why it is not followed any further."""
    effect: int | None = None
    """Number of the effect; None for a read-only call."""
    sealed: str = ""
    """Ref of the sealed task, where no effect holds it."""
    answered: tuple[str, ...] = ()
    """What stands for the questions that were answered."""
    question: str = ""
    """For `update`: ref of the sealed question."""
    reply: Any = None
    """What a person answered to it; None declines."""
    deadline_s: float = 30


class CallTogether(OfRun):
    """Make several calls in one activity."""

    calls: tuple[CallTool, ...]
    """What they have in common with this request is not said again."""


class ActAndAsk(CallTogether):
    """Make the calls of one decision, and ask the model for the next when each of them succeeded."""

    answers: tuple[ContextItem, ...]
    """What the model is told of each call beside its result."""
    ordered: tuple[int, ...] = ()
    """The places of the calls that are made one after the other with those to the same provider."""
    ask: AskModel
    """What it is asked then, without the answers of the calls."""
    news: int = 0
    """How often people had told the run something when this was scheduled; since then, the model is not asked."""
    within_s: float | None = None
    """How long the run may still take by its limit; after that, the model is not asked."""


class EndRehearsal(OfRun):
    """Throw away the copies of the workspace in which something was rehearsed."""


class ResumeProgram(OfRun):
    """Run a program until it waits or ends."""

    program: str
    """Ref of the bundle."""
    journal: str = ""
    """Ref of the journal so far; empty at the start."""
    append: tuple[ProgramAnswer, ...] = ()
    """Answers to the batch it waits for; no more than one round, so that history does not grow."""
    image: str = ""
    """Hash of the image it began in; empty at the start."""
    rehearsed: bool = False
    """Whether its arguments may hold tokens for values that nobody knows yet."""
    denials: tuple[Denial, ...] = ()
    """Rules that deny the program if its source is as the rules say; asked before its first round."""
    shown: dict[str, Any] = Field(default_factory=dict)
    """For that: the program as the policy has seen it, with a source that is stored apart."""


class VerifyProgram(OfRun):
    """Feed a program that has ended once more, to prove that its journal leads to the same end."""

    program: str
    """Ref of the bundle."""
    journal: str
    """Ref of the whole journal."""
    image: str


class ForgetProgram(OfRun):
    """End a kept program that will not be continued."""

    program: str
    """Ref of the bundle."""


class DigestPayload(OfRun):
    """Keep a payload that is not a tool's answer, so that the model gets its digest."""

    label: str
    payload: str
    """Ref of the payload."""
    marked: bool = False
    """Whether what a program returned is a string of its own with a marker, which the workflow is to be told."""


class ReviewWork(OfRun):
    """Check what a plan has done."""

    rules: ReviewRules
    answers: dict[int, ToolResult] = Field(default_factory=dict)
    """How the calls of custom checks ended, by the place of their check."""
    results: dict[int, str] = Field(default_factory=dict)
    """Stored results by plan step: the files that they name are expected unless a check says otherwise."""


class SettleEffect(OfRun):
    """Read what is recorded of one effect, or record what a check or a person says of it."""

    effect: int
    undo: bool = False
    """Whether the effect meant is the compensation of effect n."""
    verdict: Literal["look", "show_undo", "happened", "did_not_happen", "failed", "kept", "undone_by_hand"]
    """`show_undo` reads too, with all arguments of the call that would undo it."""
    by: str = ""


class LoadEffects(OfRun):
    """Read the effects of a run that could still be undone."""

    workflow_id: str | None = None
    """For an undo after the end: the run is named by workflow id and, optionally, any run id of its chain."""
    workflow_run_id: str | None = None
    to_step: int | None = None
    """Only those of later steps."""
    before: int | None = None
    """Only those with a lower number. Without it, the answer also says who may undo all of them together."""
    limit: int
    """How many at most, the newest of them."""
    parked: int | None = None
    """Only the effect of this number; raises ArgumentsInvalid where its undo is not parked."""


class CheckProof(OfRun):
    """Verify who decided."""

    workflow_id: str
    run_id: str = ""
    """The first execution of the run that the proof names."""
    update: str
    payload: dict[str, Any]
    """The whole payload, the proof included."""
    request_id: str = ""
    digest: str = ""
    """The digest of the request that is decided."""
    used_by: str = ""
    """What uses the proof up: a retry of the same use is not a second one."""


class HideSecrets(OfRun):
    """Ask for a handle in place of each secret in what a person typed."""

    typed: dict[str, Any]
    """By the name of the field."""
    names: dict[str, list[str]] = Field(default_factory=dict)
    """Names by field, which are kept as they are: one with a secret in it is to be refused."""


class RememberLines(OfRun):
    """Keep lines that a decision is to be remembered by beyond its run."""

    lines: tuple[AcceptedLine, ...]
    accepting: bool = False
    """Whether the policy that the run was opened with lets this person accept lines."""
    quorum: int = 1
    """How many people must, by that policy."""


class CarryOver(OfRun):
    """Keep the state of a run for its next execution."""

    packed: str
    """The state as JSON, compressed, in base64."""
    written_by: str
    """The run id of this execution."""


class LoadCarried(OfRun):
    """Read the state that the execution before has kept."""

    ref: str
    seal: str
    written_by: str
    """The run id of the execution that this one continues, as the server says."""
    workflow_run_id: str = ""
    """The run id of this execution."""


class Announce(OfRun):
    """Tell people, and other programs, what has become of requests and effects."""

    workflow_id: str
    run_id: str
    """The run id of the first execution of the workflow."""
    notices: tuple[NoticeDraft, ...]
    """What is told, in order."""


class CloseRun(OfRun):
    """Store how a run ended."""

    result: Result
    context: str = ""
    """Ref of the transcript, for runs that follow this one."""
    append: tuple[ContextItem, ...] = ()
    """What the model was not told any more."""
    plans: tuple[PlanEnd, ...] = ()
    """What became of the run's plans."""
    notices: tuple[NoticeDraft, ...] = ()
    """What is still to be told; that it ended comes last."""
    remember: bool = False
    """Whether later runs of its user may recall it."""
    spent: Spent | None = None
    """What a sub-run has spent, for the run that delegated to it."""
