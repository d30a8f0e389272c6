"""Count what runs do, where their workflows learn of it: once, however often a call is tried or a run is replayed.

Gauges show how much waits: for people, for somebody to find out what happened, and for programs.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Any, ClassVar

import structlog
from temporalio import workflow
from temporalio.common import MetricMeter
from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    ExecuteWorkflowInput,
    HandleSignalInput,
    Interceptor,
    StartActivityInput,
    StartChildWorkflowInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)

from activities.telemetry.attributes import outcome_of
from backstay import calls
from backstay.budgets.budget import MICRO
from backstay.errors import BackstayError
from backstay.task.decision import Decision
from backstay.task.lane import WORKFLOW as LANE
from backstay.task.lane import is_job, plugin_of
from backstay.task.result import Outcome
from backstay.tools.execution import JailUse
from backstay.tools.own_server import OWN
from backstay.tools.program import Halt
from backstay.tools.tool import ToolResult
from store.store import Store

INVALID = "invalid"
RESERVED, OVERSHOT = "reserved", "overshot"
PROGRAM, COMMAND = "program", "command"
OUTCOMES = ("succeeded", "failed", "unknown")
ALL_PLUGINS = "all"
"""What the one lane is called in which the jobs of all plugins wait."""
OTHER = "other"
"""What all models are called that only a task names: each name would be kept for good, and is the text of a user."""
OWN_SERVERS = OWN.rstrip("-")
"""What all servers of users are called, for the same reason."""
EVERY_S = 5.0
_NO_ANSWER = ToolResult(success=False)
_COUNTED = calls.AskModel | calls.CallTool | calls.FollowTask | calls.CallTogether | calls.ResumeProgram
_log = structlog.get_logger("backstay.telemetry")


class Counts:
    """Hold the counters of one worker."""

    def __init__(self, meter: MetricMeter) -> None:
        """Make them, so that each is there before anything is counted."""
        self._runs = meter.create_counter("backstay_runs", "Runs that ended, by how they did")
        self._steps = meter.create_counter("backstay_steps", "Decisions of models")
        self._calls = meter.create_counter("backstay_tool_calls", "Calls of tools, by how they ended")
        self._cost = meter.create_gauge_float("backstay_cost_usd", "US dollars that models cost since the worker began")
        self._cpu = meter.create_gauge_float("backstay_jail_cpu_seconds", "Processor time of jails that ended")
        self._peak = meter.create_gauge_float("backstay_jail_peak_mb", "The most memory that one jail took")
        self._printed = meter.create_counter("backstay_jail_output_bytes", "Output printed in jails that ended")
        self._jobs = meter.create_counter("backstay_plugin_jobs", "Jobs of plugins whose call ended, by how it did")
        self._job_seconds = meter.create_gauge_float("backstay_plugin_seconds", "How long the calls of jobs took")
        self._queue = meter.create_gauge_float("backstay_plugin_queue", "Jobs of plugins that wait for their turn")
        self._took: dict[str, float] = {}
        self._spent: dict[tuple[str, str], float] = {}
        self._jails: dict[str, tuple[float, float]] = {}
        self._known: frozenset[str] = frozenset()
        self._turn = Lock()
        for outcome in (*Outcome, INVALID):
            self._runs.add(0, {"outcome": str(outcome)})
        for jail in (PROGRAM, COMMAND):
            self.confined(jail, JailUse(cpu_s=0, output_bytes=0))
        self.queued(ALL_PLUGINS, 0)
        for outcome in OUTCOMES:
            self._jobs.add(0, {"outcome": outcome, "plugin": ALL_PLUGINS})
        self._job_seconds.set(0, {"plugin": ALL_PLUGINS})

    def know(self, models: Iterable[str], providers: Iterable[str]) -> None:
        """Begin to count at zero for what the operator names, so that the first time is an increase."""
        self._known = frozenset(models)
        for model in (*self._known, OTHER):
            self._steps.add(0, {"model": model})
            for outcome in (RESERVED, OVERSHOT):
                self._spend(model, outcome, 0)
        for provider in providers:
            for outcome in OUTCOMES:
                self._calls.add(0, {"outcome": outcome, "provider": provider})

    def ran(self, outcome: str) -> None:
        """Count a run that ended."""
        self._runs.add(1, {"outcome": outcome})

    def asked(self, ask: calls.AskModel, decision: Decision) -> None:
        """Count an answer of a model, and what it cost within and above what was reserved for it."""
        model = ask.model if ask.model in self._known else OTHER
        if ask.purpose == "step":
            self._steps.add(1, {"model": model})
        billed = decision.usage.cost_micro
        reserved = decision.worst_case_micro if ask.micro is None else ask.micro
        over = max(0, billed - reserved)
        self._spend(model, RESERVED, billed - over)
        self._spend(model, OVERSHOT, over)

    def called(self, tool: str, outcome: str) -> None:
        """Count a call of a tool."""
        provider = tool.partition(".")[0]
        self._calls.add(1, {"outcome": outcome, "provider": OWN_SERVERS if provider.startswith(OWN) else provider})

    def queued(self, plugin: str, jobs: int) -> None:
        """Say how many jobs of a plugin wait for their turn in a lane that this worker serves."""
        self._queue.set(jobs, {"plugin": plugin or ALL_PLUGINS})

    def carried_out(self, plugin: str, outcome: str, seconds: float) -> None:
        """Count a job of a plugin, and how long its call took."""
        self._jobs.add(1, {"outcome": outcome, "plugin": plugin})
        with self._turn:
            took = self._took[plugin] = self._took.get(plugin, 0.0) + seconds
            self._job_seconds.set(took, {"plugin": plugin})

    def confined(self, jail: str, used: JailUse) -> None:
        """Count what a jail used that ended: `program` or `command`."""
        with self._turn:
            cpu_s, peak_mb = self._jails.get(jail, (0.0, 0.0))
            self._jails[jail] = cpu_s, peak_mb = cpu_s + used.cpu_s, max(peak_mb, used.memory_mb or 0.0)
            self._cpu.set(cpu_s, {"jail": jail})
            self._peak.set(peak_mb, {"jail": jail})
        self._printed.add(used.output_bytes, {"jail": jail})

    def _spend(self, model: str, outcome: str, micro: int) -> None:
        # Temporal's counters count whole numbers, so the sum is kept here.
        with self._turn:
            spent = self._spent[model, outcome] = self._spent.get((model, outcome), 0.0) + micro / MICRO
            self._cost.set(spent, {"model": model, "outcome": outcome})


class CountInterceptor(Interceptor):
    """Let a worker count what the runs do that it serves."""

    def __init__(self, counts: Counts) -> None:
        """Count here."""
        self._counts = counts

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - Temporal's
        """Return what stands between Temporal and a workflow."""

        class Counted(_Workflow):
            counts = self._counts

        return Counted


class _Workflow(WorkflowInboundInterceptor):
    counts: ClassVar[Counts]

    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        super().init(_Calls(outbound, self.counts))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - Temporal's name
        try:
            result = await super().execute_workflow(input)
        except asyncio.CancelledError:
            # Without a reason it is the worker that lets go of the run.
            if workflow.in_workflow() and workflow.cancellation_reason() is not None:
                self._ran(Outcome.CANCELLED)
            raise
        except ApplicationError as error:
            self._ran(INVALID if error.type == "TaskInvalid" else Outcome.FAILED)
            raise
        finally:
            _count_lane(self.counts, ended=True)
        self._ran(result.get("outcome", "") if isinstance(result, Mapping) else "")
        return result

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002 - Temporal's name
        await super().handle_signal(input)
        _count_lane(self.counts)

    def _ran(self, outcome: str) -> None:
        if workflow.info().workflow_type == "RunTask" and _is_new():
            self.counts.ran(str(outcome))


def _count_lane(counts: Counts, *, ended: bool = False) -> None:
    """Say how many jobs wait in a lane: at each change, also while it is replayed by a worker that takes it over."""
    if not workflow.in_workflow() or workflow.info().workflow_type != LANE:
        return
    lane: Any = workflow.instance()
    counts.queued(plugin_of(workflow.info().workflow_id), 0 if ended else len(lane.waiting))


class _Calls(WorkflowOutboundInterceptor):
    def __init__(self, next: WorkflowOutboundInterceptor, counts: Counts) -> None:  # noqa: A002 - Temporal's name
        super().__init__(next)
        self._counts = counts

    def start_activity(self, input: StartActivityInput) -> workflow.ActivityHandle[Any]:  # noqa: A002 - Temporal's
        handle, began = super().start_activity(input), workflow.time()
        ask = calls.asked(input.args)
        if isinstance(ask, _COUNTED):
            handle.add_done_callback(lambda done: self._answered(ask, done, began))
        return handle

    async def start_child_workflow(self, input: StartChildWorkflowInput) -> workflow.ChildWorkflowHandle[Any, Any]:  # noqa: A002 - Temporal's
        _count_lane(self._counts)
        return await super().start_child_workflow(input)

    def _answered(self, ask: Any, done: "asyncio.Task[Any]", began: float) -> None:
        if done.cancelled() or not workflow.in_workflow() or not _is_new():
            return
        answer = None if done.exception() is not None else done.result()
        match ask, answer:
            case calls.ActAndAsk(), calls.StepOutcome():
                for call, result in zip(ask.calls, answer.results, strict=True):
                    self._called(call, result)
                self._asked(ask.ask, answer.decision)
            case calls.CallTogether(), calls.CallOutcomes():
                for call, result in zip(ask.calls, answer.results, strict=True):
                    self._called(call, result)
            case calls.AskModel(), _:
                self._asked(ask, answer)
            case calls.ResumeProgram(), Halt(used=JailUse() as used):
                self._counts.confined(PROGRAM, used)
            case calls.FollowTask(purpose="call"), ToolResult(task=None):
                self._counts.called(ask.tool, outcome_of(answer))
            case calls.CallTool(), _:
                self._called(ask, answer if isinstance(answer, ToolResult) else _NO_ANSWER, began)
            case _:
                pass  # a call that was not made is made again

    def _asked(self, ask: calls.AskModel, answer: Any) -> None:
        if isinstance(answer, Decision):
            self._counts.asked(ask, answer)

    def _called(self, ask: calls.CallTool, answer: ToolResult | None, began: float | None = None) -> None:
        if answer is not None and answer.used is not None:
            self._counts.confined(COMMAND, answer.used)
        if ask.purpose != "call" or ask.rehearsal is not None or answer is None:
            return
        if (outcome := outcome_of(answer)) not in {"asked", "working"}:
            self._counts.called(ask.tool, outcome)
            if began is not None and is_job(workflow.info().workflow_id, workflow.info().task_queue):
                self._counts.carried_out(ask.tool.partition(".")[0], outcome, workflow.time() - began)


def _is_new() -> bool:
    """Return whether this happens now; a replayed call was counted by the worker that saw it first."""
    return not workflow.unsafe.is_replaying_history_events()


class StoreGauges:
    """Show what the store knows; all workers of a store show the same."""

    def __init__(self, meter: MetricMeter, store: Store) -> None:
        """Make the gauges."""
        self._store = store
        self._waiting = meter.create_gauge("backstay_approvals_waiting", "Open requests")
        self._age = meter.create_gauge_float("backstay_approval_age_seconds", "Age of the oldest open request")
        self._unknown = meter.create_gauge("backstay_effects_unknown", "Effects of which nobody knows the outcome")
        self._parked = meter.create_gauge("backstay_undos_parked", "Effects whose undo failed and waits for a person")

    async def keep_up(self) -> None:
        """Look again and again; while the store cannot be reached, the last figures stay."""
        reached = True
        while True:
            try:
                await self._look()
                reached = True
            except BackstayError as error:
                if reached:
                    _log.warning("metrics.stale", reason=str(error))
                reached = False
            await asyncio.sleep(EVERY_S)

    async def _look(self) -> None:
        oldest = await self._store.requests.oldest_open()
        self._waiting.set(await self._store.requests.count_open())
        self._age.set(0.0 if oldest is None else max(0.0, time.time() - oldest))
        self._unknown.set(await self._store.effects.count_unknown())
        self._parked.set(await self._store.parked.count())
