"""Bring jobs to the engine, and follow their runs; all in one event loop, which the daemon's thread feeds."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any

from backstay.client import Backstay, Run, connect
from backstay.client.jobs import add_to_lane, cancel_job, digest_of_job, is_calling, lane_chain
from backstay.client.stored import in_clear
from backstay.errors import BackstayError, RunContinuing, RunNotFound, TaskInvalid, Unreachable
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.lane import METADATA, job_id
from backstay.task.plan import as_data
from backstay.task.result import Outcome, Result
from backstay.task.task import Task
from gateways.plugin_jobs.jobs import Jobs, PluginJob
from gateways.plugin_jobs.lanes import DaemonLane, size_of
from gateways.plugin_jobs.protocol import ID_CONFLICT, OUTCOME_UNKNOWN, REJECTED, TIMEOUT
from gateways.plugin_jobs.running import answer_of, reason_of, redactor, without_known
from gateways.served import place_of_temporal

_FIRST_LOOK_S = 0.05
_LAST_LOOK_S = 1.0
_SENT_AGAIN_S = 60.0
"""For how long a job is sent again whose sending the engine does not answer."""
_LONGEST_REASON = 500
_STOPPING_S = 1.0
_BY = "plugins-daemon"
"""Who is recorded as having been shown the secrets that a program printed."""


class JobFollower:
    """Carry jobs to the engine in the order in which they came, and tell of each run until it ends."""

    def __init__(self, jobs: Jobs, is_parallel: Callable[[str], bool], *, one_lane: bool = False) -> None:
        """Work in the loop that runs now. `is_parallel`: whether jobs of a plugin may run at the same time."""
        self._jobs = jobs
        self._is_parallel = is_parallel
        self._one_lane = one_lane
        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._new: asyncio.Queue[PluginJob] = asyncio.Queue()
        self._lanes: dict[str | None, DaemonLane] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._following: dict[str | int, asyncio.Task[None]] = {}
        self._backstay: Backstay | None = None
        self._page: str | None = None

    def submit(self, job: PluginJob) -> None:
        """Take a job that is new, from another thread."""
        self._loop.call_soon_threadsafe(self._new.put_nowait, job)

    async def cancel(self, job: PluginJob) -> None:
        """Take a job out of its lane, or cancel its run; one whose call is under way may still take effect."""
        self._jobs.fail(job, REJECTED)
        if (following := self._following.pop(job.id, None)) is not None:
            following.cancel()
        backstay, lane = self._backstay, self._lanes.get(self._lane_of(job))
        if backstay is None or lane is None:
            return
        # A job that is being sent must arrive before the word that withdraws it.
        async with lane.bringing:
            if not job.sent:
                return
        try:
            await cancel_job(backstay, lane.name, job_id(backstay.task_queue, job.id))
        except BackstayError as error:
            sys.stderr.write(f"backstay plugins: {one_line(str(error), _LONGEST_REASON)}\n")

    def stop(self) -> None:
        """Let go of everything, from another thread."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    async def run(self) -> None:
        """Work until told to stop."""
        async with contextlib.AsyncExitStack() as stack:
            taking = asyncio.ensure_future(self._take_all(stack))
            stopping = asyncio.ensure_future(self._stopping.wait())
            await asyncio.wait([taking, stopping], return_when=asyncio.FIRST_COMPLETED)
            left = [taking, stopping, *self._tasks]
            for task in left:
                task.cancel()
            await asyncio.wait(left, timeout=_STOPPING_S)

    async def _take_all(self, stack: contextlib.AsyncExitStack) -> None:
        while True:
            job = await self._new.get()
            try:
                if self._backstay is None:
                    self._backstay = await stack.enter_async_context(self._connected())
            except Exception as error:  # one job must not keep the others from being taken
                self._refuse(job, error)
                continue
            self._lane_for(self._backstay, job).new.put_nowait(job)

    def _lane_for(self, backstay: Backstay, job: PluginJob) -> DaemonLane:
        name = self._lane_of(job)
        if name not in self._lanes:
            self._lanes[name] = DaemonLane(name)
            self._spawn(self._bring_all(backstay, self._lanes[name]))
            self._spawn(self._follow_lane(backstay, self._lanes[name]))
        return self._lanes[name]

    async def _bring_all(self, backstay: Backstay, lane: DaemonLane) -> None:
        """Bring the jobs of a lane to the engine, one after another, as far as there is room for them."""
        while True:
            job = await lane.new.get()
            await lane.room()
            async with lane.bringing:
                try:
                    await self._queue(backstay, lane, job)
                except Exception as error:  # one job must not keep the others from being taken
                    self._refuse(job, error)

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Backstay]:
        settings = Settings.load()
        self._page = settings.url
        place = place_of_temporal(settings)
        async with connect(
            place.get("address"),
            namespace=place.get("namespace"),
            task_queue=settings.task_queue,
            page=settings.url,
        ) as backstay:
            yield backstay

    def _refuse(self, job: PluginJob, error: Exception) -> None:
        """Say that a job was not taken, or may have been, so that it may be sent again."""
        said = str(redactor()(one_line(str(error), _LONGEST_REASON)))
        sys.stderr.write(f"backstay plugins: {said}\n")
        self._jobs.fail(job, job.unanswered if isinstance(error, Unreachable | RunContinuing) else said)
        self._jobs.forget(job)

    async def _queue(self, backstay: Backstay, lane: DaemonLane, job: PluginJob) -> None:
        """Let a job wait for its turn, or attach to it. Raises BackstayError."""
        known: str | None = None
        with contextlib.suppress(RunNotFound):
            known = await digest_of_job(backstay, job_id(backstay.task_queue, job.id))
        if not job.is_open:
            return  # it was cancelled before anything was sent
        if known is not None and known != job.digest:
            self._jobs.fail(job, ID_CONFLICT)
            self._jobs.forget(job)
            return
        # This refuses a number that JSON cannot say, such as a NaN of a client of MCP, before the engine gets it.
        size = size_of(job)
        task, job.sent = task_of(job), True
        if known is None:
            await self._send(backstay, job, lane.name, task)
            if not job.is_open:
                return  # `cancel` withdraws it
        self._jobs.tell(job, "queued", {})
        if lane.name is None or known is not None:
            self._begin_following(backstay, job, asyncio.Event())
        else:
            lane.enter(job, size)

    async def _send(self, backstay: Backstay, job: PluginJob, lane: str | None, task: Task) -> None:
        """Start a run, or let it wait in a lane; where no answer comes, ask for the same again, which adds nothing."""
        name, ends, pause = job_id(backstay.task_queue, job.id), self._loop.time() + _SENT_AGAIN_S, _FIRST_LOOK_S
        while True:
            try:
                if lane is None:
                    await backstay.start(task, name, once=True)
                else:
                    await self._add(backstay, job, lane, task)
            except (Unreachable, RunContinuing):
                if not job.is_open:
                    return
                if self._loop.time() > ends:
                    raise
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, _LAST_LOOK_S)

    async def _add(self, backstay: Backstay, job: PluginJob, lane: str, task: Task) -> None:
        await add_to_lane(backstay, lane, job_id(backstay.task_queue, job.id), task)
        job.chain = ""
        with contextlib.suppress(BackstayError):  # it has the job
            job.chain = await lane_chain(backstay, lane) or ""

    def _lane_of(self, job: PluginJob) -> str | None:
        """Return the name of the lane that a job waits in; None for none."""
        if self._one_lane:
            return ""
        return None if self._is_parallel(job.plugin) else job.plugin

    async def _follow_lane(self, backstay: Backstay, lane: DaemonLane) -> None:
        """Follow the first job of a lane, and the next one when that has ended or waits for people."""
        while True:
            (job, size), passed = await lane.queued.get(), asyncio.Event()
            if job.is_open:
                self._begin_following(backstay, job, passed)
                await passed.wait()
            lane.leave(size)

    def _begin_following(self, backstay: Backstay, job: PluginJob, passed: asyncio.Event) -> None:
        self._following[job.id] = following = self._spawn(self._followed(backstay, job, passed))
        following.add_done_callback(lambda _: self._following.pop(job.id, None))
        following.add_done_callback(lambda _: passed.set())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _followed(self, backstay: Backstay, job: PluginJob, passed: asyncio.Event) -> None:
        """Tell of a job until it ends; `passed` is set as soon as the next one of its lane may have begun."""
        try:
            await self._follow(backstay, job, passed)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            # The job goes on; only this daemon does not know how.
            sys.stderr.write(f"backstay plugins: {one_line(str(error), _LONGEST_REASON)}\n")
            self._jobs.fail(job, OUTCOME_UNKNOWN)
            self._jobs.forget(job)

    async def _follow(self, backstay: Backstay, job: PluginJob, passed: asyncio.Event) -> None:
        run = backstay.run(job_id(backstay.task_queue, job.id))
        if await self._digest(backstay, job) != job.digest:
            self._jobs.fail(job, ID_CONFLICT)
            self._jobs.forget(job)
            return
        watching = asyncio.ensure_future(self._watch(backstay, job, run, passed))
        try:
            status, payload, began = await self._ended(run)
        finally:
            watching.cancel()
        if began and job.status == "queued":
            self._jobs.tell(job, "started", {})
        self._jobs.tell(job, status, payload)

    async def _digest(self, backstay: Backstay, job: PluginJob) -> str:
        """Wait until the run of a job has begun, and return the digest of its payload."""
        name, lane, pause = job_id(backstay.task_queue, job.id), self._lane_of(job), _FIRST_LOOK_S
        while True:
            with contextlib.suppress(Unreachable, RunContinuing):
                try:
                    return await digest_of_job(backstay, name)
                except RunNotFound:
                    chain = None if lane is None else await lane_chain(backstay, lane)
                    if lane is not None and (chain is None or chain != job.chain):
                        # The lane that had the job was ended from outside; another one may have come since.
                        await self._add(backstay, job, lane, task_of(job))
            await asyncio.sleep(pause)
            pause = min(pause * 1.3, _LAST_LOOK_S)

    async def _ended(self, run: Run) -> tuple[str, Any, bool]:
        """Wait for the end of a run; return what to tell of it, and whether its call was begun."""
        while True:
            try:
                return await told_of(run, await run.result())
            except Unreachable:
                await asyncio.sleep(_LAST_LOOK_S)
            except TaskInvalid as error:
                return "error", {"error": one_line(str(error), _LONGEST_REASON)}, False

    async def _watch(self, backstay: Backstay, job: PluginJob, run: Run, passed: asyncio.Event) -> None:
        """Tell when the call of a job begins, and when the run waits for people."""
        pause, asks = _FIRST_LOOK_S, False
        while True:
            with contextlib.suppress(BackstayError):
                if await is_calling(backstay.client, run.id):
                    self._jobs.tell(job, "started", {})
                elif waiting := await self._waits(run):
                    passed.set()
                    asks = True
                    self._jobs.tell(job, *waiting)
            await asyncio.sleep(_LAST_LOOK_S if asks else pause)
            pause = min(pause * 1.3, _LAST_LOOK_S)

    async def _waits(self, run: Run) -> tuple[str, Any] | None:
        """Return what to tell while a run waits for people, or does not know what became of its call."""
        status = await run.status()
        if (lost := _lost(status.last_events)) is not None:
            # The declared check may find out what became of it; where that cannot tell, people are asked.
            return ("started", {}) if lost.data.get("checked") and not status.pending else unknown_of(lost)
        if not status.pending:
            return None
        request = status.pending[0]
        told: dict[str, Any] = {"request": {"id": request.id, "question": one_line(request.question, 500)}}
        told["request"]["link"] = request.links.page or f"backstay show {run.id}"
        return "queued", told


def task_of(job: PluginJob) -> Task:
    """Return the task that carries out a job: a plan of its one call."""
    tool = f"{job.plugin}.{job.action}"
    step = {"tool": tool, "arguments": as_data(job.arguments), "timeout_s": job.timeout_s}
    return Task.admit(
        {
            "text": f"plugin job {tool}",
            "plan": {"title": tool, "steps": [step]},
            "metadata": {METADATA: job.digest},
            "on_failure": "keep",
        }
    )


def _lost(events: Sequence[Event]) -> Event | None:
    """Return what says that the answer of a call was lost, unless it was settled afterwards what became of it."""
    told = [event for event in events if event.name in {"effect.unknown", "effect.settled"}]
    return told[-1] if told and told[-1].name == "effect.unknown" else None


def unknown_of(event: Event) -> tuple[str, Any]:
    """Return what to tell of a call whose answer was lost."""
    if event.data.get("timed_out"):
        return "timeout", {"error": TIMEOUT}
    return "error", {"error": OUTCOME_UNKNOWN}


async def _printed(run: Run, ref: str) -> Any:
    """Return what a program printed, to the client that asked for the job; nothing else holds its secrets in clear."""
    said = await in_clear(run.id, run.client.namespace, await run.read(ref), _BY)
    return await asyncio.to_thread(without_known, answer_of(said))


async def told_of(run: Run, result: Result) -> tuple[str, Any, bool]:
    """Return the last status of a job, the payload of that, and whether its call was begun."""
    steps = (result.raw_outputs or {}).get("steps") if isinstance(result.raw_outputs, dict) else None
    step: dict[str, Any] = steps[0] if steps else {}
    if result.success and step.get("success"):
        return "success", await _printed(run, step["ref"]) if step.get("ref") else "", True
    # A step that has ended knows what became of its call, by an answer that came late, a check, or a person's word. One
    # of a run that was cancelled meanwhile ended with it.
    ended = bool(step.get("error")) and result.outcome is not Outcome.CANCELLED
    if not ended and (lost := _lost(result.events)) is not None:
        return (*unknown_of(lost), True)
    error = step.get("error") or (result.error.message if result.error is not None else result.final_summary)
    failed = [event for event in result.events if event.name == "action.failed"]
    if failed and failed[-1].data.get("timed_out"):
        return "timeout", {"error": TIMEOUT}, True
    is_rejected = result.outcome in {Outcome.REJECTED, Outcome.CANCELLED} or step.get("reason") == "rejected"
    if is_rejected:
        return "error", {"error": REJECTED}, False
    return "error", {"error": reason_of(error)}, bool(step.get("error"))
