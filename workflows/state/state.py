"""Everything a run carries: one model, so that it can be carried over whole."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from backstay.approvals.approval import RecordedDecision
from backstay.approvals.notice import NoticeDraft
from backstay.budgets.budget import Budget, Ledger
from backstay.budgets.usage import Usage
from backstay.canonical import digest_of
from backstay.effects.compensation import Undone, UndoOutcome, UndoStack, newest
from backstay.frozen import Frozen
from backstay.plans.plan_run import PlanRun
from backstay.policies.accepted import MOST_LINES, AcceptedLine
from backstay.requests import OfRun
from backstay.responses import NOT_OPENED, OpenedRun
from backstay.shown import one_line
from backstay.task.context import ContextItem
from backstay.task.decision import Decision
from backstay.task.event import MOST_DRAFTS, Event, EventDraft, NumberedDraft, milliseconds, moment
from backstay.task.result import RESULT_EVENTS
from backstay.task.status import State, StepProgress
from backstay.task.task import Task
from backstay.tools.tool import ToolCall
from workflows.state.work import Work

KEPT_EVENTS = 100
MOST_UNWRITTEN = 1000
KEPT_ANSWERS = 500
KEPT_WRITES = 300
KEPT_PLANS = 20
KEPT_REFUSALS = 20
KEPT_VOTES = 20
KEPT_PROGRESS = 20
SAMPLED_REFUSALS = 1000


class Write(Frozen):
    """Hold one write of a run, for when the model decides on the same one again."""

    key: str
    """Digest of the tool and the arguments."""
    effect: int
    at: str
    said: str = "not answered yet"

    def told(self) -> str:
        """Return it in words."""
        return f"the same call was made at {self.at} as effect {self.effect}: {self.said}"


class RunState(BaseModel):
    """Hold the state of one run; only workflow code changes it."""

    model_config = ConfigDict(extra="ignore")

    run: str
    task: Task
    opened: OpenedRun = NOT_OPENED
    state: State = State.STARTING
    budget: Budget = Budget()
    usage: Usage = Usage()
    ledger: Ledger = Ledger(ceiling=None)
    undo: UndoStack = UndoStack()
    undone: list[Undone] = Field(default_factory=list)
    """The last 100."""
    undone_counts: dict[str, int] = Field(default_factory=dict)
    """How many effects ended compensated, kept or parked, all those included that are not in `undone` any more."""
    undos: int = 0
    """How often a person had effects undone while the run went on."""
    context: str = ""
    append: list[ContextItem] = Field(default_factory=list)
    recent_writes: list[Write] = Field(default_factory=list)
    """The writes that may have taken effect, the last 300."""
    next_effect: int = 1
    first_event: int = 1
    """The number of the first event of this timeline; an undo after the end goes on with the numbers of its run."""
    next_event: int = 1
    next_request: int = 1
    notices: list[NoticeDraft] = Field(default_factory=list)
    """What people are to be told, and no activity has written yet."""
    next_notice: int = 1
    step_results: dict[int, str] = Field(default_factory=dict)
    """Stored results of the steps of the plan under way."""
    plans: list[PlanRun] = Field(default_factory=list)
    """The plans of the run, the last 20 that have ended and those under way."""
    next_plan: int = 1
    next_subrun: int = 1
    worst_micro: int = 0
    """Worst case of the last model call."""
    model: str = ""
    """Which fallback is asked since the models before it have failed; empty: the model of the run."""
    catalog: str = ""
    events: list[Event] = Field(default_factory=list)
    unwritten: list[Event] = Field(default_factory=list)
    """Events that no activity has written to the store yet, the last 1,000."""
    numbered: list[NumberedDraft] = Field(default_factory=list)
    """Events that activities left in the store, and that have no number there yet."""
    next_draft: int = 1
    answered: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Answers to unverified senders by their event id, the last 500."""
    answered_verified: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Answers to verified senders by sender and event id, the last 500; nobody else can push them out."""
    closed: dict[str, str] = Field(default_factory=dict)
    """How requests were decided."""
    digests: dict[str, str] = Field(default_factory=dict)
    """The digests of requests, which proofs name; also of closed ones, since a decision can come twice."""
    votes: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Who has asked for a change that needs several persons, and when, by what was asked; the last 20."""
    proofs: int = 0
    """How many proofs of signals were checked."""
    refused: int = 0
    """How many signals and updates were refused."""
    decisions: list[RecordedDecision] = Field(default_factory=list)
    """Accepted decisions that no activity has written yet."""
    next_decision: int = 1
    active_seconds: float = 0
    """Wall time without the time in which only a person was awaited."""
    paused: str | None = None
    work: Work = Field(default_factory=Work)
    lines: tuple[AcceptedLine, ...] = ()
    """What people had remembered in this run."""
    progress: list[StepProgress] = Field(default_factory=list)
    """What the model's steps have called so far, the last 20 calls."""
    private: list[str] = Field(default_factory=list)
    """The providers that have answered something which not everybody may read."""
    programs_fault: str = ""
    """What kept the last program from running; empty when it ran."""

    @property
    def planning(self) -> bool:
        """Return whether the model may only plan, until people approve a plan."""
        return self.task.mode == "plan_first" and not self.work.planned

    @property
    def doubts_names(self) -> bool:
        """Return whether what people say counts as theirs only with a proof of who they are."""
        return self.task.doubts_names or self.opened.policy.vouches_by_name

    @property
    def may_plan(self) -> bool:
        """Return whether the model may propose plans: the task or its profile is about plans, or the run has one."""
        profile, wanted = self.opened.profile, self.task.mode == "plan_first" or self.task.rehearse
        return wanted or profile.plans or profile.review is not None or bool(self.plans)

    @property
    def offers(self) -> dict[str, bool]:
        """Return what the model is offered beside tools and programs."""
        opened, profile = self.opened, self.opened.profile
        return {
            "planning": self.planning,
            "plans": self.may_plan,
            "memory": bool(opened.memory_of) and profile.memory.read,
            "delegation": profile.delegation and len(opened.above) < opened.policy.delegating.max_depth,
        }

    @property
    def searched(self) -> str:
        """Return what tools are searched by: the task, without its secrets."""
        return self.opened.searched or self.task.text

    @property
    def programs_unavailable(self) -> str:
        """Return why programs cannot run; empty when they can, or when the run makes none."""
        if self.programs_fault or not self.opened.store or self.task.plan is not None or self.opened.sandbox_queue:
            return self.programs_fault
        return "no worker of the sandbox role answered when the run began"

    def record(self, name: str, text: str, at: datetime, **data: Any) -> None:
        """Add an event to the timeline."""
        self.record_draft(EventDraft(name=name, step_index=self.usage.step, text=text, data=data), at)

    def record_draft(self, draft: EventDraft, at: datetime, *, kept_as: int = 0) -> None:
        """Add an event to the timeline; `kept_as` is the number under which an activity left it in the store."""
        event = Event(n=self.next_event, at=moment(milliseconds(at)), **draft.model_dump())
        self.next_event += 1
        self.events = [*self.events, event.of(self.run, self.task.user_id, self.task.session_id)][-KEPT_EVENTS:]
        if kept_as:
            self.numbered.append(NumberedDraft(event.n, kept_as, milliseconds(at)))
        else:
            self.unwritten = [*self.unwritten, event][-MOST_UNWRITTEN:]

    def last_events(self) -> dict[str, Any]:
        """Return the fields of a Result that tell what happened last, and how much there was."""
        return {"events": tuple(self.events[-RESULT_EVENTS:]), "events_total": self.next_event - self.first_event}

    def take_context(self, decision: Decision, sent: int) -> None:
        """Go on from what the model was told with a decision; messages added meanwhile are told with the next one."""
        self.context, self.append = decision.context, self.append[sent:]
        self.note_private(decision.private)

    def note_private(self, providers: Iterable[str]) -> None:
        """Remember which providers have answered something that not everybody may read; until the run ends."""
        self.private = sorted({*self.private, *providers})

    def record_progress(self, tool: str, *, success: bool) -> None:
        """Remember how a call of the model ended."""
        progress = StepProgress(step=self.usage.step, tool=one_line(tool, 80), status="ok" if success else "failed")
        self.progress = [*self.progress, progress][-KEPT_PROGRESS:]

    def take_draft_number(self) -> int:
        """Return the first number under which an activity may leave its events in the store."""
        self.next_draft += MOST_DRAFTS
        return self.next_draft - MOST_DRAFTS

    def lines_at(self, now: float) -> tuple[AcceptedLine, ...]:
        """Return the lines that the run obeys now: those it was opened with, and its own."""
        return tuple(line for line in (*self.opened.accepted, *self.lines) if line.in_time(now))

    def obey(self, lines: Sequence[AcceptedLine]) -> None:
        """Obey lines from now on, the last ones that there is room for."""
        known = {line.id: line.bare for line in (*self.lines, *lines)}
        self.lines = tuple(known.values())[-MOST_LINES:]

    def plan_run(self, plan_id: str) -> PlanRun:
        """Return a plan of the run as it is now."""
        return next(run for run in self.plans if run.id == plan_id)

    def keep_plan_run(self, run: PlanRun) -> None:
        """Keep a plan, in place of what it was before, and forget the oldest that has ended."""
        known = {kept.id: kept for kept in self.plans} | {run.id: run}
        while len(known) > KEPT_PLANS and (oldest := next((kept for kept in known.values() if kept.ended), None)):
            del known[oldest.id]
        self.plans = list(known.values())

    def take_plan_number(self) -> str:
        """Return the id of a new plan."""
        known = {run.id for run in self.plans}
        while True:
            self.next_plan += 1
            if (plan_id := f"p{self.next_plan - 1}") not in known:
                return plan_id

    def take_effect_number(self) -> int:
        """Return the number of a new effect."""
        self.next_effect += 1
        return self.next_effect - 1

    def record_write(self, call: ToolCall, effect: int, at: datetime) -> None:
        """Remember a write that is about to be made."""
        write = Write(key=write_key(call), effect=effect, at=at.isoformat(timespec="seconds"))
        self.recent_writes = [*self.recent_writes, write][-KEPT_WRITES:]

    def renumber_write(self, effect: int, number: int) -> None:
        """Remember a write under another number."""
        self.recent_writes = [
            write.model_copy(update={"effect": number}) if write.effect == effect else write
            for write in self.recent_writes
        ]

    def record_write_ended(self, effect: int, said: str | None) -> None:
        """Remember what a write answered; None when it did not take place, or was undone."""
        self.recent_writes = [
            write if write.effect != effect else write.model_copy(update={"said": said})
            for write in self.recent_writes
            if write.effect != effect or said is not None
        ]

    def same_write(self, key: str) -> Write | None:
        """Return the latest write of that tool and arguments that may have taken effect."""
        return next((write for write in reversed(self.recent_writes) if write.key == key), None)

    def record_undone(self, undone: Undone) -> None:
        """Count what became of an effect that was to be undone, and keep the last ones."""
        self.undone_counts[undone.state] = self.undone_counts.get(undone.state, 0) + 1
        self.undone = newest([*self.undone, undone])
        self.plans = [run.after_undo(undone.effect, undone.state) for run in self.plans]

    @property
    def undo_outcome(self) -> UndoOutcome:
        """Return what became of all effects that were to be undone."""
        return UndoOutcome(**self.undone_counts, last=tuple(self.undone))

    def count_free_call(self) -> None:
        """Count a call that no limit counts."""
        self.usage = self.usage.model_copy(update={"free_calls": self.usage.free_calls + 1})

    def keep_votes(self, what: str, votes: dict[str, float]) -> None:
        """Keep who has asked for a change, and forget the oldest changes that people asked for."""
        self.votes.pop(what, None)
        self.votes[what] = votes
        while len(self.votes) > KEPT_VOTES:
            del self.votes[next(iter(self.votes))]

    def keep_digest(self, request_id: str, digest: str) -> None:
        """Keep the digest of a request, and forget the oldest requests."""
        self.digests[request_id] = digest
        while len(self.digests) > KEPT_ANSWERS:
            oldest = next(iter(self.digests))
            del self.digests[oldest]
            self.closed.pop(oldest, None)

    def record_refusal(self, text: str, at: datetime, kind: str) -> None:
        """Count a refused signal; only a sample of many becomes events."""
        self.refused += 1
        if self.refused <= KEPT_REFUSALS or self.refused % SAMPLED_REFUSALS == 0:
            self.record("approval.refused", text, at, type=kind, count=self.refused)

    def record_decision(self, update: str, by: str, at: datetime, *, verified: bool, **more: Any) -> None:
        """Add an accepted decision to those that the next activity writes."""
        decision = RecordedDecision(
            n=self.next_decision, at=at.isoformat(timespec="milliseconds"), update=update, by=by, verified=verified
        )
        self.next_decision += 1
        self.decisions.append(decision.model_copy(update=more))

    def confirm_decisions(self, written: tuple[RecordedDecision, ...]) -> None:
        """Drop decisions that an activity has written."""
        numbers = {decision.n for decision in written}
        self.decisions = [decision for decision in self.decisions if decision.n not in numbers]

    def take_events(self) -> dict[str, Any]:
        """Hand over what the next activity must write of the timeline, as fields of its request."""
        taken = {"events": tuple(self.unwritten), "numbered": tuple(self.numbered)}
        self.unwritten, self.numbered = [], []
        return taken

    def withdraw_events(self, ask: OfRun) -> None:
        """Keep for another activity what one has not written."""
        self.unwritten = [*ask.events, *self.unwritten]
        self.numbered = [*ask.numbered, *self.numbered]

    def answer_to(self, sender: str, event_id: str | None) -> dict[str, Any] | None:
        """Return the answer that a sender's event got before, or None; an unverified sender is empty."""
        if event_id is None:
            return None
        return self.answered_verified.get(f"{sender}\n{event_id}") if sender else self.answered.get(event_id)

    def remember_answer(self, sender: str, event_id: str | None, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep the answer to a sender's event, so that a repeat gets the same one."""
        if event_id is not None:
            kept, key = (self.answered_verified, f"{sender}\n{event_id}") if sender else (self.answered, event_id)
            kept[key] = answer
            while len(kept) > KEPT_ANSWERS:
                del kept[next(iter(kept))]
        return answer


def write_key(call: ToolCall) -> str:
    """Return what two equal calls have in common."""
    return call.resolved_key or digest_of([call.tool.name, call.arguments])[:16]
