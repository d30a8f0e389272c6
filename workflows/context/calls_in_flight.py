"""Calls between their intent and their outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from backstay.authority import Authority
from backstay.bounds import size_of
from backstay.plans.rehearsal import RehearsedCall
from backstay.requests import CallTool
from backstay.task.result import Failure
from backstay.tools.server_task import TaskProgress
from backstay.tools.stages import Purpose
from backstay.tools.tool import ToolCall, ToolResult
from backstay.tools.trying import TOGETHER
from workflows.asking.reminders import never
from workflows.state.work import BegunBatch, BegunCall

MOST_TOGETHER = TOGETHER
"""How many calls share one activity at most; all of them are under way at the same time."""
MOST_BYTES = 250_000
"""The arguments of calls that share an activity, as history holds them; a single call may have more."""


@dataclass
class CallInFlight:
    """Hold one call from its intent to its outcome."""

    purpose: Purpose
    call: ToolCall
    deadline_s: float
    step: int
    """The step of the run that it belongs to."""
    effect: int | None = None
    """The number of the effect that it makes, checks or undoes; None for a read."""
    send: int = 1
    """Counts deliberate sends."""
    ordered: bool = False
    """Whether it waits for the calls to the same provider that were decided before it."""
    unless: Callable[[], bool] = never
    """Whether questions about it are no longer needed."""
    authority: Authority | None = None
    """Who may decide about the effect: that of the rules that the call falls under."""
    asked_again: bool = False
    """Whether a person allowed it after the tool was found changed."""
    rehearsal: RehearsedCall | None = None
    """Set for a call of a rehearsal."""
    results: dict[int, str] | None = None
    """The stored results that its arguments refer to; None for those of the plan under way."""
    most_s: float | None = None
    """How long it may take as a whole, where somebody chose that."""
    progress: TaskProgress | None = None
    """How far the task is by which its server answers."""
    result: ToolResult | None = None
    """The answer to its last send; None while that is under way."""
    question: str = ""
    """Ref of the sealed question of its server that the send under way answers."""
    reply: Any = None
    """The answer to that question; None declines it."""
    raised: Failure | None = None
    """What ended it without a result."""
    told: tuple[CallTool, ToolResult] | None = None
    """The last request, and its answer, whose event the activity left in the store."""
    done: bool = False
    tried: bool = False
    """Whether another activity may have tried it: one for several calls, or that of the execution before."""
    begun_before: bool = False
    """Whether it was begun elsewhere, such as by the execution before, and goes on with its last answer."""

    def begun(self) -> BegunCall:
        """Return what the next execution needs to go on."""
        return BegunCall(
            call=self.call,
            effect=self.effect,
            send=self.send,
            authority=self.authority,
            result=self.result,
            question=self.question,
            reply=self.reply,
            raised=self.raised,
            progress=self.progress,
            done=self.done,
        )

    def go_on(self, begun: BegunCall) -> "CallInFlight":
        """Go on where the execution before stood."""
        self.begun_before = self.tried = True
        self.effect, self.send, self.authority = begun.effect, begun.send, begun.authority
        self.result, self.raised, self.done = begun.result, begun.raised, begun.done
        self.question, self.reply, self.progress = begun.question, begun.reply, begun.progress
        return self

    def go_on_with(self, ask: CallTool, result: ToolResult | None) -> None:
        """Go on with the answer that an activity for several calls brought; without one the call is made by itself."""
        self.tried = True
        if result is not None:
            self.result, self.told, self.begun_before = result, (ask, result), True

    def answer_before(self) -> ToolResult | None:
        """Return, once, the last answer that the execution before got."""
        answer, self.begun_before = self.result if self.begun_before else None, False
        return answer


@dataclass
class BatchInFlight:
    """Hold the calls that were decided together."""

    refused: dict[int, ToolResult]
    """By index in the batch: why a call is not made."""
    calls: list[CallInFlight] = field(default_factory=list)
    """The others, in order."""

    def begun(self) -> BegunBatch:
        """Return what the next execution needs to go on."""
        return BegunBatch(refused=self.refused, calls=tuple(call.begun() for call in self.calls))


def may_travel(flight: CallInFlight) -> bool:
    """Return whether a call may share an activity with others: it only reads, waits for none, and is new."""
    is_new = not (flight.tried or flight.begun_before or flight.done or flight.raised)
    return is_new and flight.rehearsal is None and not (flight.call.effectful or flight.call.tool.serial)


def parts_of(flights: Sequence[CallInFlight]) -> list[list[int]]:
    """Return the places of calls by the activity that makes them, each part in order: reads travel together."""
    parts: list[list[int]] = []
    open_part: list[int] = []
    filled = 0
    for place, flight in enumerate(flights):
        if not may_travel(flight):
            parts.append([place])
            continue
        size = size_of(flight.call.arguments)
        if not open_part or len(open_part) == MOST_TOGETHER or filled + size > MOST_BYTES:
            open_part, filled = [], 0
            parts.append(open_part)
        open_part.append(place)
        filled += size
    return parts
