"""Everything a run carries: one model, so that it can be carried over whole."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backstay.budgets.budget import Budget, Ledger
from backstay.budgets.usage import Usage
from backstay.calls import NOT_OPENED, Opened
from backstay.effects.compensation import Undone, UndoStack
from backstay.task.context import ContextItem
from backstay.task.event import Event
from backstay.task.status import State
from backstay.task.task import Task

KEPT_EVENTS = 100
KEPT_ANSWERS = 500


class RunState(BaseModel):
    """Hold the state of one run; only workflow code changes it."""

    model_config = ConfigDict(extra="ignore")

    run: str
    task: Task
    opened: Opened = NOT_OPENED
    state: State = State.STARTING
    budget: Budget = Budget()
    usage: Usage = Usage()
    ledger: Ledger = Ledger(ceiling=None)
    undo: UndoStack = UndoStack()
    undone: list[Undone] = Field(default_factory=list)
    context: str = ""
    append: list[ContextItem] = Field(default_factory=list)
    next_effect: int = 1
    next_event: int = 1
    next_request: int = 1
    position: int = 0
    """The plan step that comes next."""
    step_results: dict[int, str] = Field(default_factory=dict)
    """Stored results of plan steps."""
    worst_micro: int = 0
    """Worst case of the last model call."""
    catalog: str = ""
    events: list[Event] = Field(default_factory=list)
    unwritten: list[Event] = Field(default_factory=list)
    answered: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Answers to updates by the sender's event id, the last 500."""
    active_seconds: float = 0
    """Wall time without the time in which only a person was awaited."""
    paused: str | None = None
    programs_fault: str = ""
    """What kept the last program from running; empty when it ran."""

    @property
    def programs_unavailable(self) -> str:
        """Return why programs cannot run; empty when they can, or when the run makes none."""
        if self.programs_fault or not self.opened.store or self.task.plan is not None or self.opened.sandbox_queue:
            return self.programs_fault
        return "no worker of the sandbox role answered when the run began"

    def record(self, name: str, text: str, at: datetime, *, written: bool = False, **data: Any) -> Event:
        """Add an event to the timeline; `written` says that the activity that acts writes it to the store itself."""
        event = Event(
            n=self.next_event,
            name=name,
            at=at.isoformat(timespec="milliseconds"),
            step=self.usage.steps,
            text=text,
            data=data,
        )
        self.next_event += 1
        self.events = [*self.events, event][-KEPT_EVENTS:]
        if not written:
            self.unwritten = [*self.unwritten, event][-KEPT_EVENTS:]
        return event

    def take_effect_number(self) -> int:
        """Return the number of a new effect."""
        self.next_effect += 1
        return self.next_effect - 1

    def count_free_call(self) -> None:
        """Count a call that no limit counts."""
        self.usage = self.usage.model_copy(update={"free_calls": self.usage.free_calls + 1})

    def take_unwritten(self) -> tuple[Event, ...]:
        """Hand over the events that the next activity must write."""
        taken, self.unwritten = tuple(self.unwritten), []
        return taken

    def remember_answer(self, event_id: str | None, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep the answer to a sender's event, so that a repeat gets the same one."""
        if event_id is not None:
            self.answered[event_id] = answer
            while len(self.answered) > KEPT_ANSWERS:
                del self.answered[next(iter(self.answered))]
        return answer
