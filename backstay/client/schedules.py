"""Keep schedules at Temporal: when each of them starts a run, and what it knows of that."""

from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
)
from temporalio.common import Priority, WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from backstay.client.failures import error_from_rpc, translated_errors
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.standing import StandingTask, Times, start_id
from backstay.task.task import LAST, fairness_key

START_RUN = "StartRun"
"""The workflow that starts one run of a schedule or a trigger."""
_WITHIN = timedelta(seconds=10)
_NEXT = 3


class ScheduleTimes(Frozen):
    """Hold what Temporal knows of a schedule; all times are unix seconds."""

    next: tuple[float, ...] = ()
    """The times of the next starts."""
    paused: bool = False
    note: str = ""
    """Why it is paused."""
    missed: int = 0
    """How many starts were due while Temporal was down, and were not made up for."""
    skipped: int = 0
    """How many starts were left out because the run before had not ended."""


class Schedules:
    """Create, pause and remove the schedules of one task queue at Temporal."""

    def __init__(self, client: Client, task_queue: str) -> None:
        """Use the namespace of the client."""
        self._client = client
        self._queue = task_queue

    async def create(self, standing: StandingTask) -> None:
        """Let a schedule begin; raises TaskInvalid for times that Temporal cannot read, and for a name in use."""
        times = standing.times or Times(every=60)
        about = {"kind": standing.kind, "name": standing.name}
        action = ScheduleActionStartWorkflow(
            START_RUN,
            about,
            id=start_id(self._queue, standing.kind, standing.name),
            task_queue=self._queue,
            static_summary=f"start {standing.name}: {standing.line}"[:200],
            # The run that it starts has the same.
            priority=Priority(priority_key=LAST, fairness_key=fairness_key(standing.user_id)),
        )
        policy = SchedulePolicy(
            overlap=ScheduleOverlapPolicy[times.overlap.upper()], catchup_window=timedelta(seconds=times.catch_up)
        )
        schedule = Schedule(action=action, spec=_spec(standing, times), policy=policy)
        try:
            await self._client.create_schedule(self._id(standing.name), schedule, rpc_timeout=_WITHIN)
        except ScheduleAlreadyRunningError:
            raise TaskInvalid(
                f"name: Temporal has a schedule {self._id(standing.name)} already; choose another name, or remove it"
            ) from None
        except RPCError as error:
            if error.status is RPCStatusCode.INVALID_ARGUMENT:
                said = one_line(error.message, 300)
                given = "cron" if times.cron else "every"
                field = "time_zone" if "zone" in said.lower() else given
                raise TaskInvalid(f"{field}: Temporal does not understand it: {said}; correct it") from None
            raise error_from_rpc(error, "") from None

    async def times(self, name: str) -> ScheduleTimes | None:
        """Return what Temporal knows of a schedule; None where it does not know it. Raises Unreachable."""
        try:
            found = await self._handle(name).describe(rpc_timeout=_WITHIN)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise error_from_rpc(error, "") from None
        state, info = found.schedule.state, found.info
        return ScheduleTimes(
            next=() if state.paused else tuple(at.timestamp() for at in info.next_action_times[:_NEXT]),
            paused=state.paused,
            note=(state.note or "") if state.paused else "",
            missed=info.num_actions_missed_catchup_window,
            skipped=info.num_actions_skipped_overlap,
        )

    async def pause(self, name: str, note: str) -> bool:
        """Start nothing from now on; return whether Temporal knows the schedule."""
        with _known() as known:
            await self._handle(name).pause(note=note, rpc_timeout=_WITHIN)
        return not known.missing

    async def resume(self, name: str) -> bool:
        """Start runs again; return whether Temporal knows the schedule."""
        with _known() as known:
            await self._handle(name).unpause(note="", rpc_timeout=_WITHIN)
        return not known.missing

    async def run_now(self, name: str) -> bool:
        """Start a run now, if none of this schedule is open; return whether Temporal knows the schedule."""
        with _known() as known:
            await self._handle(name).trigger(rpc_timeout=_WITHIN)
        return not known.missing

    async def remove(self, name: str) -> bool:
        """Forget a schedule; return whether Temporal knew it. Runs that it has started go on."""
        with _known() as known:
            await self._handle(name).delete(rpc_timeout=_WITHIN)
        return not known.missing

    async def start(self, start: str, standing: StandingTask) -> None:
        """Start the run of an event that the store has accepted; a repeat changes nothing."""
        with translated_errors(start):
            try:
                await self._client.start_workflow(
                    START_RUN,
                    {"kind": standing.kind, "name": standing.name},
                    id=start,
                    task_queue=self._queue,
                    id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
                    id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                    static_summary=f"start {standing.name}: {standing.line}"[:200],
                    # Not the last: whoever sent the event may wait for what comes of it.
                    priority=Priority(fairness_key=fairness_key(standing.user_id)),
                    rpc_timeout=_WITHIN,
                )
            except WorkflowAlreadyStartedError:
                return

    def _id(self, name: str) -> str:
        return f"{self._queue}-schedule-{name}"

    def _handle(self, name: str) -> ScheduleHandle:
        return self._client.get_schedule_handle(self._id(name))


class _Presence:
    """Say whether Temporal knew what it was asked about."""

    missing = False


@contextmanager
def _known() -> Generator[_Presence]:
    known = _Presence()
    try:
        yield known
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise error_from_rpc(error, "") from None
        known.missing = True


def _spec(standing: StandingTask, times: Times) -> ScheduleSpec:
    return ScheduleSpec(
        cron_expressions=[] if times.cron is None else [times.cron],
        intervals=[] if times.every is None else [ScheduleIntervalSpec(every=timedelta(seconds=times.every))],
        jitter=timedelta(seconds=times.jitter) if times.jitter else None,
        time_zone_name=standing.time_zone,
    )
