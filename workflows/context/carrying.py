"""Continue a long run as a new execution with a short history, and carry its state over."""

import asyncio
import base64
import json
import zlib
from typing import Any

from pydantic import Field, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.bounds import size_of
from backstay.canonical import canonical, longer_than
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.task.status import State
from workflows.context.run_context import RunContext
from workflows.state.state import RunState

MOST_EVENTS = 4_000
"""The server ends a run at 51,200 events; replaying even 10,000 takes longer than a workflow task may."""
MOST_BYTES = 4_000_000
"""The server ends a run at 50 MiB of history; a stranger can send 2 MB in one signal."""
MOST_SIGNALS = 2_000
"""The server refuses every further signal to an execution that has received 10,000."""
MOST_UPDATES = 400
"""The server refuses every further update to an execution that has accepted 2,000."""
URGENT_EVENTS, URGENT_BYTES, URGENT_SIGNALS, URGENT_UPDATES = 8_000, 12_000_000, 6_000, 1_000
"""From here on the run waits for no answer before it continues."""
LAST_EVENTS, LAST_BYTES = 30_720, 31_457_280
"""60 % of what the server allows; a run that cannot continue pauses here and asks."""
MOST_CARRIED = 1_000_000
"""Characters of the carried state; the server refuses payloads of 2 MiB."""
CARRIED_EVENTS = 40
"""How many events the next execution still shows by itself; the store has all of them."""
KEPT_SLOTS = 20
"""How many effects stay in the undo stack, and how many writes are remembered; the store knows the older ones."""
MOST_LATE = 200_000
"""Bytes of what changed while the state was written."""
LATER_EVENTS, LATER_BYTES = 1_000, 2_000_000
"""How much longer the history gets before the run tries again to continue, when it could not."""


class CarriedState(Frozen):
    """Name the state that an execution gives to the next one."""

    ref: str
    seal: str
    """What the store vouches with that this execution of this run wrote it."""
    late: dict[str, Any] = Field(default_factory=dict)
    """Fields that changed while it was written."""


def carried_by(more: tuple[Any, ...]) -> CarriedState | TaskInvalid | None:
    """Return what the execution before gave to this one, None for a first execution, or why it is refused."""
    info = workflow.info()
    given = next(iter(more), None)
    if not more:
        return None
    # Only the server says which execution this one continues; nobody can start a run with that.
    if len(more) > 1 or info.continued_run_id is None or info.run_id == info.first_execution_run_id:
        return TaskInvalid(f"Task: {1 + len(more)} arguments were given; give one JSON object")
    try:
        return CarriedState.admit(given)
    except (TaskInvalid, ValidationError) as error:
        return TaskInvalid(f"carried: {error}")


async def take_over(context: RunContext, carried: CarriedState) -> None:
    """Take over the state of the execution before; raises TaskInvalid when the store does not vouch for it."""
    info, state = workflow.info(), context.state
    ask = calls.LoadCarried(ref=carried.ref, seal=carried.seal, written_by=info.continued_run_id or "")
    ask = ask.model_copy(update={"workflow_run_id": info.run_id})
    # Nobody can be asked about a fault before: requests are part of the state.
    summary = "take over the state of the run"
    loaded = await context.activities.execute_patiently(calls.load_carried, ask, summary=summary)
    before = RunState.model_validate({"run": state.run, "task": state.task, **unpacked(loaded.packed), **carried.late})
    for data in state.work.held:
        before.work.hold(data, len(canonical(data)))
    for name in RunState.model_fields:
        setattr(state, name, getattr(before, name))
    state.state = State.STARTING
    for held in state.ledger.open:
        # Nobody knows the cost of a model call that was under way.
        state.ledger = state.ledger.charge(held)
    context.approvals.reopen(state.work.requests)
    context.agreed_before, state.work.agreed = state.work.agreed, {}
    context.stopwatch.add(state.active_seconds)
    context.taken_over = True
    context.record("run.continued", f"continued as execution {info.run_id}")


def packed(state: dict[str, Any]) -> str:
    """Return a state in a form that takes little of the history, which holds it twice; the order of keys stays."""
    return base64.b64encode(zlib.compress(json.dumps(state, separators=(",", ":")).encode(), 9)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Return a state from its packed form."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


class Carrying:
    """Decide when a run continues as a new execution, and write its state for that."""

    def __init__(self, context: RunContext, *, with_task: bool = False) -> None:
        """Watch over one execution; `with_task`: the next one is not given the same task anyway."""
        self.context = context
        self.with_task = with_task
        self._watching: asyncio.Task[CarriedState] | None = None
        self.signals = self.updates = 0
        self.closing = False
        """Whether the run is about to continue, so that it takes no new updates and signals now."""
        self._not_before = (0, 0)
        """The events and bytes before which it is not tried again."""
        context.approvals.closing = lambda: self.closing

    @property
    def wanted(self) -> bool:
        """Return whether the history is long."""
        if not self.context.taken_over or not self.context.state.opened.store:
            return False
        info = workflow.info()
        events, size = info.get_current_history_length(), info.get_current_history_size()
        if events < self._not_before[0] and size < self._not_before[1]:
            return False
        many = self.signals > MOST_SIGNALS or self.updates > MOST_UPDATES
        return many or events > MOST_EVENTS or size > MOST_BYTES or info.is_continue_as_new_suggested()

    @property
    def urgent(self) -> bool:
        """Return whether the server would soon end the run."""
        info = workflow.info()
        many = self.signals > URGENT_SIGNALS or self.updates > URGENT_UPDATES
        return many or (
            info.get_current_history_length() > URGENT_EVENTS or info.get_current_history_size() > URGENT_BYTES
        )

    @property
    def _could(self) -> bool:
        """Return whether the run could continue now, but for handlers that are still at work."""
        return self.wanted and (self.urgent or self._resting) and not self._held_up

    @property
    def _resting(self) -> bool:
        """Return whether nothing is under way that the next execution would have to begin again."""
        context = self.context
        waits = bool(context.at_gate) or context.approvals.waiting
        return waits and not context.activities.under_way and not context.approvals.announcing

    @property
    def _due(self) -> bool:
        # A decision that was held back is looked at outside of any handler.
        return self._could and workflow.all_handlers_finished() and not self.context.approvals.checking

    @property
    def _held_up(self) -> bool:
        context = self.context
        # The next execution would be told nothing of the ends of sub-runs.
        delegated = bool(context.state.work.subruns)
        undoing = context.undoing or bool(context.bound_undos)
        return undoing or delegated or context.activities.stopping or context.state.state is State.DONE

    async def wait(self, work: "asyncio.Future[Any]", given: Any) -> None:
        """Wait for the work; raises ContinueAsNewError, with what this execution was given, when that comes first."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        await workflow.wait([work, self._watching], return_when=asyncio.FIRST_COMPLETED)
        if self._watching.done() and not work.done():
            workflow.continue_as_new(args=[given, self._watching.result().plain()])

    async def _watch(self) -> CarriedState:
        """Wait until the run is to continue as a new execution, and return what it needs."""
        while True:
            await workflow.wait_condition(lambda: self._could)
            # Set only here: after an update that a validator refuses, the server lets no condition of the run be
            # checked, so a validator must not decide by itself that the run is about to continue.
            self.closing = True
            await workflow.wait_condition(lambda: self._due or not self._could)
            if self._due and (carried := await self._carried()) is not None:
                return carried
            self.closing = False

    async def _carried(self) -> CarriedState | None:
        """Return the state, kept in the store, or None when something has come between."""
        kept = self._kept()
        if longer_than(kept, MOST_CARRIED):
            return self._put_off(f"its state is longer than {MOST_CARRIED:,} characters")
        try:
            carry = calls.CarryOver(packed=packed(kept), written_by=workflow.info().run_id)
            written = await self.context.activities.execute_once(
                calls.carry_over, carry, summary="continue as a new execution", counted=False
            )
        except ApplicationError as error:
            return self._put_off(error.message)
        if not self._due or written.written_by != workflow.info().run_id:
            # After a reset, what was written is vouched for another execution.
            return None
        now = self._kept()
        late = {name: value for name, value in now.items() if value != kept[name]}
        if size_of(late) > MOST_LATE:
            return None
        return CarriedState(ref=written.ref, seal=written.seal, late=late)

    def _kept(self) -> dict[str, Any]:
        context, state = self.context, self.context.state
        state.active_seconds = round(context.stopwatch.seconds, 3)
        work = state.work.model_copy(
            update={
                "agreed": {**context.agreed_before, **state.work.agreed},
                "batch": context.batch.begun() if context.batch is not None else state.work.batch,
                "requests": context.approvals.open_requests(),
            }
        )
        in_flight = 0 if context.batch is None else len(context.batch.calls)
        update = {
            "work": work,
            "undo": state.undo.trimmed(KEPT_SLOTS + in_flight),
            "recent_writes": state.recent_writes[-KEPT_SLOTS:],
            "events": state.events[-CARRIED_EVENTS:],
            **context.activities.events_left(),
        }
        exclude = None if self.with_task else {"task"}
        return state.model_copy(update=update).model_dump(mode="json", by_alias=True, exclude=exclude)

    def _put_off(self, why: str) -> None:
        info = workflow.info()
        self._not_before = (
            info.get_current_history_length() + LATER_EVENTS,
            info.get_current_history_size() + LATER_BYTES,
        )
        self.context.record("run.not_continued", why)
        if info.get_current_history_length() > LAST_EVENTS or info.get_current_history_size() > LAST_BYTES:
            self.context.stuck = why
