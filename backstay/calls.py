"""The menu: everything the engine can do to the world, in the order an auditor would ask.

Each entry is a typed activity without a body; `activities/` implements it under the same Temporal name. Workflows call
`workflow.execute_activity(calls.call_tool, CallTool(...), ...)` and never see a body.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field, ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions, pydantic_data_converter

from backstay.approval import ApprovalRequest
from backstay.context import ContextItem
from backstay.decision import Decision
from backstay.effect import Effect
from backstay.event import Event
from backstay.noun import Noun
from backstay.policy import Policy
from backstay.result import Result
from backstay.task import Task
from backstay.tool import Tool, ToolResult


class Unreadable:
    """Stand for what a stranger sent that is no JSON, so that it can be refused like any other bad input."""

    def __repr__(self) -> str:
        return "what is not JSON"


class _CompactConverter(PydanticPayloadConverter):
    def __init__(self) -> None:
        super().__init__(ToJsonOptions(exclude_unset=True))

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        hints: list[Any] = type_hints or [Any] * len(payloads)
        if any(hint is not Any for hint in hints):
            return super().from_payloads(payloads, type_hints)
        # Where anything may come, a fault of the sender must not become a fault of the workflow task, which never ends.
        return [self._read(payload) for payload in payloads]

    def _read(self, payload: Payload) -> Any:
        try:
            return super().from_payloads([payload], None)[0]
        except ValidationError:
            return Unreadable()


DATA_CONVERTER = replace(pydantic_data_converter, payload_converter_class=_CompactConverter)
"""What every client, worker and replayer of ours uses; fields left at their default do not reach history."""


class OfRun(Noun):
    """Say for which run, and on which store, a call is made."""

    run: str
    """The run key: `<workflow id>/<first execution run id>`."""
    store: str = ""
    """`<store id>/<epoch>` as `open_run` found it; another store is refused."""
    events: tuple[Event, ...] = ()
    """Events of the workflow that no activity has written yet."""


class OpenRun(OfRun):
    """Ask to resolve once what the run must not re-read later."""

    task: Task
    at: str
    workflow_run_id: str


class Opened(Noun):
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
    settle_after_s: float = 5
    deadline_s: float = 30
    """How long a tool may take to answer, unless a plan step says otherwise."""
    transient_s: float = 45
    """How long a fault that may pass is waited out before a person is asked."""
    wait_notices: bool = False
    """Whether there is anybody to announce requests to."""


class AskModel(OfRun):
    """Ask the model what to do next."""

    user_id: str
    model: str
    context: str
    append: tuple[ContextItem, ...] = ()
    micro: int | None = None
    """The reservation: the call is refused before sending when it may cost more. None: no USD limit."""
    closing: bool = False
    """Ask for a closing summary instead of actions."""
    event: int = 0
    step: int = 0
    max_completion_tokens: int | None = None
    """What is left of the token limit, when there is one."""
    budget: str = ""
    """What is left, in one line for the model."""


class FindTools(OfRun):
    """Search the catalog."""

    user_id: str
    query: str
    detail_level: Literal["summary", "full"] = "summary"
    limit: int = 10
    event: int = 0
    step: int = 0


class Found(Noun):
    """Answer a search without carrying the hits through history."""

    ref: str
    catalog: str
    count: int


class ReadStored(OfRun):
    """Look further into a stored result."""

    ref: str
    path: str = ""
    offset: int = 0
    limit: int = 20


class CheckCall(OfRun):
    """Resolve and validate one call that did not come from the model: a plan step, or modified arguments."""

    user_id: str
    tool: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    resolved: bool = True
    """False when references to later results remain, so that only the known part can be validated."""


class CheckedCall(Noun):
    """Hold a checked call, with secrets and big leaves replaced."""

    tool: Tool | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    error: str | None = None
    """What is wrong and how to fix it; None when the call may be ruled on."""
    error_type: str | None = None


class CallTool(OfRun):
    """Call one tool, or the declared verify or compensation of one effect."""

    user_id: str
    purpose: Literal["call", "verify", "undo"] = "call"
    tool: str
    """For verify and undo: the tool of the effect itself; the arguments come from the store."""
    definition: str = ""
    arguments: dict[str, Any] = Field(default_factory=dict)
    args_digest: str = ""
    effect: int | None = None
    """Number of the effect; None for a read-only call."""
    send: int = 1
    """Counts deliberate sends; above 1 the row must show that the earlier send is settled as not sent."""
    results: dict[int, str] = Field(default_factory=dict)
    """Stored results by plan step, for references in the arguments."""
    deadline_s: float = 30
    event: int = 0
    step: int = 0


class SettleEffect(OfRun):
    """Read what is recorded of one effect, or record what a check or a person says of it."""

    effect: int
    undo: bool = False
    """Whether the effect meant is the compensation of effect n."""
    verdict: Literal["look", "happened", "did_not_happen", "kept"] = "look"
    by: str = ""


class LoadEffects(OfRun):
    """Read the effects of a run."""

    open_only: bool = False
    """Only those that could still be undone."""
    workflow_id: str | None = None
    """For an undo after the end: the run is named by workflow id and, optionally, any run id of its chain."""
    workflow_run_id: str | None = None


class LoadedEffects(Noun):
    """Hold the effects of a run, the last 100 inline."""

    run: str = ""
    user_id: str = ""
    opened: Opened | None = None
    """What the run was opened with, when it is loaded after its end."""
    effects: tuple[Effect, ...] = ()
    count: int = 0
    effects_ref: str | None = None


class CheckProof(OfRun):
    """Verify who decided; design section 8."""

    workflow_id: str
    update: str
    payload: dict[str, Any]
    """The whole payload, the proof included."""


class Proven(Noun):
    """Say whether a proof holds."""

    verified: bool
    reason: str = ""


class Announce(OfRun):
    """Tell the outside that a request waits."""

    workflow_id: str
    request: ApprovalRequest


class CloseRun(OfRun):
    """Store how a run ended."""

    result: Result


class Closed(Noun):
    """Hold what the store adds to the Result."""

    effects: tuple[Effect, ...] = ()
    """The last 100."""
    effects_ref: str | None = None
    events_ref: str | None = None


@activity.defn
async def open_run(ask: OpenRun) -> Opened:
    """Resolve once what the run must not re-read later."""
    raise NotImplementedError


@activity.defn
async def ask_model(ask: AskModel) -> Decision:
    """Render the context, call the model once, price the answer and parse it into a Decision."""
    raise NotImplementedError


@activity.defn
async def search_tools(ask: FindTools) -> Found:
    """Search the catalog of the run's user."""
    raise NotImplementedError


@activity.defn
async def read_result(ask: ReadStored) -> ToolResult:
    """Cut a part out of a stored result and store it as a digest of its own."""
    raise NotImplementedError


@activity.defn
async def check_call(ask: CheckCall) -> CheckedCall:
    """Resolve and validate one call before it is ruled on."""
    raise NotImplementedError


@activity.defn
async def call_tool(ask: CallTool) -> ToolResult:
    """Call one tool; an effect is recorded before it is sent and settled after."""
    raise NotImplementedError


@activity.defn
async def settle_effect(ask: SettleEffect) -> Effect:
    """Read or settle what is recorded of one effect."""
    raise NotImplementedError


@activity.defn
async def load_effects(ask: LoadEffects) -> LoadedEffects:
    """Read the effects of a run, in shown form."""
    raise NotImplementedError


@activity.defn
async def check_proof(ask: CheckProof) -> Proven:
    """Verify who decided."""
    raise NotImplementedError


@activity.defn
async def announce(ask: Announce) -> int:
    """Tell the outside that a request waits; return how many receivers took it."""
    raise NotImplementedError


@activity.defn
async def close_run(ask: CloseRun) -> Closed:
    """Store how the run ended."""
    raise NotImplementedError


MENU = (
    open_run,
    ask_model,
    search_tools,
    read_result,
    check_call,
    call_tool,
    settle_effect,
    load_effects,
    check_proof,
    announce,
    close_run,
)
