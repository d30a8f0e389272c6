"""The menu: every activity of the engine, which is everything that a run can do to the world.

Each entry is a typed activity without code; `activities/` implements it under the same Temporal name. Workflows call
`workflow.execute_activity(calls.call_tool, CallTool(...), ...)` and never see the code.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import activity
from temporalio.common import RawValue

from backstay.effects.effect import Effect
from backstay.plans.review import Review
from backstay.requests import (
    ActAndAsk,
    Announce,
    AskModel,
    CallTogether,
    CallTool,
    CarryOver,
    CheckCall,
    CheckProof,
    CloseRun,
    DigestPayload,
    EndRehearsal,
    FindTools,
    FollowTask,
    ForgetProgram,
    HideSecrets,
    KeepPlan,
    LoadCarried,
    LoadEffects,
    OpenRun,
    PreviewCalls,
    ReadPage,
    ReadStored,
    RecallMemory,
    RememberLines,
    ResumeProgram,
    ReviewWork,
    SettleEffect,
    VerifyProgram,
)
from backstay.responses import (
    CallOutcomes,
    CallPreviews,
    CarriedOver,
    CheckedCall,
    ClosingFigures,
    LoadedEffects,
    LoadedState,
    OpenedRun,
    ProofCheck,
    RedactedInput,
    RememberedLines,
    Reproduction,
    SearchFindings,
    StepOutcome,
)
from backstay.starting import (
    BeginStart,
    BeginSubruns,
    BegunStart,
    BegunSubruns,
    EndedSubruns,
    EndStart,
    EndSubruns,
)
from backstay.task.decision import Decision
from backstay.task.reading import Page
from backstay.tools.program import Halt
from backstay.tools.tool import ToolResult


@dataclass(frozen=True)
class EncodedInput(RawValue):
    """Hold what an activity is asked as history holds it, so that it is encoded once."""

    ask: Any
    """What it was, for whoever looks at calls on their way."""


def asked(args: Sequence[Any]) -> Any:
    """Return what an activity is asked, from the arguments of its start; None where there is nothing."""
    first = args[0] if args else None
    return first.ask if isinstance(first, EncodedInput) else first


MENU: list[Callable[[Any], Awaitable[Any]]] = []
"""Every entry, in the order of this module."""
Entry = TypeVar("Entry", bound=Callable[[Any], Awaitable[Any]])


def _entry(declared: Entry) -> Entry:
    MENU.append(declared)
    return activity.defn(declared)


@_entry
async def open_run(ask: OpenRun) -> OpenedRun:
    """Resolve once what the run must not re-read later."""
    raise NotImplementedError


@_entry
async def ask_model(ask: AskModel) -> Decision:
    """Render the context, call the model once, price the answer and parse it into a Decision."""
    raise NotImplementedError


@_entry
async def search_tools(ask: FindTools) -> SearchFindings:
    """Search the catalog of the run's user."""
    raise NotImplementedError


@_entry
async def read_page(ask: ReadPage) -> Page:
    """Return a page of a stored result, or of the events, to whoever reads the run."""
    raise NotImplementedError


@_entry
async def read_result(ask: ReadStored) -> ToolResult:
    """Cut a part out of a stored result and store it as a digest of its own."""
    raise NotImplementedError


@_entry
async def recall(ask: RecallMemory) -> ToolResult:
    """Search the memory of the run's user, and store what is found as a digest."""
    raise NotImplementedError


@_entry
async def check_call(ask: CheckCall) -> CheckedCall:
    """Resolve and validate one call before it is ruled on."""
    raise NotImplementedError


@_entry
async def preview_calls(ask: PreviewCalls) -> CallPreviews:
    """Return what calls would change, without making them."""
    raise NotImplementedError


@_entry
async def keep_plan(ask: KeepPlan) -> int:
    """Keep a plan as it is proposed; return its version."""
    raise NotImplementedError


@_entry
async def call_tool(ask: CallTool) -> ToolResult:
    """Call one tool; an effect is recorded before it is sent and settled after."""
    raise NotImplementedError


@_entry
async def follow_task(ask: FollowTask) -> ToolResult:
    """Ask about the task by which a server answered a call; its outcome is recorded as the answer."""
    raise NotImplementedError


@_entry
async def call_together(ask: CallTogether) -> CallOutcomes:
    """Make calls that only read at the same time; the answer of each is recorded as soon as it is known."""
    raise NotImplementedError


@_entry
async def act_and_ask(ask: ActAndAsk) -> StepOutcome:
    """Make the calls of one decision, and ask the model for the next when what became of each is known."""
    raise NotImplementedError


@_entry
async def end_rehearsal(ask: EndRehearsal) -> int:
    """Throw away the copies of the workspace in which something was rehearsed; return how many there were."""
    raise NotImplementedError


@_entry
async def settle_effect(ask: SettleEffect) -> Effect:
    """Read or settle what is recorded of one effect."""
    raise NotImplementedError


@_entry
async def load_effects(ask: LoadEffects) -> LoadedEffects:
    """Read the effects of a run, in shown form."""
    raise NotImplementedError


@_entry
async def begin_start(ask: BeginStart) -> BegunStart:
    """Reserve for one run of a schedule or a trigger, and say with which task it starts."""
    raise NotImplementedError


@_entry
async def end_start(ask: EndStart) -> int:
    """Settle what one run of a schedule or a trigger has cost; return it in millionths of a US dollar."""
    raise NotImplementedError


@_entry
async def begin_subruns(ask: BeginSubruns) -> BegunSubruns:
    """Keep what the sub-runs of one decision are started with."""
    raise NotImplementedError


@_entry
async def end_subruns(ask: EndSubruns) -> EndedSubruns:
    """Settle what sub-runs have spent, keep what they say, and take over their effects that stand."""
    raise NotImplementedError


@_entry
async def check_proof(ask: CheckProof) -> ProofCheck:
    """Verify who decided."""
    raise NotImplementedError


@_entry
async def hide_secrets(ask: HideSecrets) -> RedactedInput:
    """Put a handle in place of each secret in what a person typed."""
    raise NotImplementedError


@_entry
async def remember_lines(ask: RememberLines) -> RememberedLines:
    """Keep what a decision is to be remembered by beyond its run."""
    raise NotImplementedError


@_entry
async def resume_program(ask: ResumeProgram) -> Halt:
    """Run a program in a jail until it waits for calls or ends."""
    raise NotImplementedError


@_entry
async def verify_program(ask: VerifyProgram) -> Reproduction:
    """Run a program again from its journal, and compare."""
    raise NotImplementedError


@_entry
async def forget_program(ask: ForgetProgram) -> int:
    """End the jail in which a program waits; return how many there were."""
    raise NotImplementedError


@_entry
async def digest(ask: DigestPayload) -> ToolResult:
    """Store a payload that is not a tool's answer, as a digest."""
    raise NotImplementedError


@_entry
async def review(ask: ReviewWork) -> Review:
    """Check what a plan has done, and weigh the checks."""
    raise NotImplementedError


@_entry
async def carry_over(ask: CarryOver) -> CarriedOver:
    """Keep the state of a run for its next execution."""
    raise NotImplementedError


@_entry
async def load_carried(ask: LoadCarried) -> LoadedState:
    """Read the state that the execution before has kept."""
    raise NotImplementedError


@_entry
async def announce(ask: Announce) -> int:
    """Announce that a request waits; return how many receivers accepted it."""
    raise NotImplementedError


@_entry
async def close_run(ask: CloseRun) -> ClosingFigures:
    """Store how the run ended."""
    raise NotImplementedError
