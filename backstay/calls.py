"""The menu: everything the engine can do to the world, in the order an auditor would ask.

Each entry is a typed activity without a body; `activities/` implements it under the same Temporal name. Workflows call
`workflow.execute_activity(calls.call_tool, CallTool(...), ...)` and never see a body.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError
from temporalio import activity
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter, ToJsonOptions, pydantic_data_converter

from backstay.effects.effect import Effect
from backstay.program import Halt
from backstay.requests import (
    Announce,
    AskModel,
    CallTool,
    CheckCall,
    CheckProof,
    CloseRun,
    DigestPayload,
    FindTools,
    ForgetProgram,
    LoadEffects,
    OfRun,
    OpenRun,
    PreviewCalls,
    PreviewedCall,
    ReadStored,
    ResumeProgram,
    SettleEffect,
    VerifyProgram,
)
from backstay.responses import (
    NOT_OPENED,
    CheckedCall,
    Closed,
    Found,
    LoadedEffects,
    Opened,
    Previewed,
    Proven,
    Reproduced,
)
from backstay.task.decision import Decision
from backstay.tools.tool import ToolResult

__all__ = [
    "DATA_CONVERTER",
    "MENU",
    "NOT_OPENED",
    "Announce",
    "AskModel",
    "CallTool",
    "CheckCall",
    "CheckProof",
    "CheckedCall",
    "CloseRun",
    "Closed",
    "DigestPayload",
    "FindTools",
    "ForgetProgram",
    "Found",
    "LoadEffects",
    "LoadedEffects",
    "OfRun",
    "OpenRun",
    "Opened",
    "PreviewCalls",
    "Previewed",
    "PreviewedCall",
    "Proven",
    "ReadStored",
    "Reproduced",
    "ResumeProgram",
    "SettleEffect",
    "VerifyProgram",
]


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
async def preview_calls(ask: PreviewCalls) -> Previewed:
    """Say what calls would change, without making them."""
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
async def resume_program(ask: ResumeProgram) -> Halt:
    """Run a program in a jail until it waits for calls or ends."""
    raise NotImplementedError


@activity.defn
async def verify_program(ask: VerifyProgram) -> Reproduced:
    """Run a program again from its journal, and compare."""
    raise NotImplementedError


@activity.defn
async def forget_program(ask: ForgetProgram) -> int:
    """End the jail in which a program waits; return how many there were."""
    raise NotImplementedError


@activity.defn
async def digest(ask: DigestPayload) -> ToolResult:
    """Store a payload that is no tool's answer, as a digest."""
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
    preview_calls,
    call_tool,
    settle_effect,
    load_effects,
    check_proof,
    resume_program,
    verify_program,
    forget_program,
    digest,
    announce,
    close_run,
)
