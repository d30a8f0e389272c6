"""Run jobs in the daemon itself, one after another in one thread; they do not survive it."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from gateways.plugin_jobs.jobs import Jobs, PluginJob
from gateways.plugin_jobs.protocol import ENGINE_UNAVAILABLE, OUTCOME_UNKNOWN, internal

if TYPE_CHECKING:
    from gateways.plugin_jobs.running import LocalPlugins

_CLOSING_S = 10.0
_LOOK_S = 0.2


class LocalJobs:
    """Run jobs one after another."""

    def __init__(self, jobs: Jobs) -> None:
        """Start the one thread."""
        self._jobs = jobs
        self._waiting: queue.SimpleQueue[PluginJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._closed = False
        self._plugins: LocalPlugins | None = None
        self._working = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._working.start()

    def submit(self, job: PluginJob) -> None:
        """Take a job that is new."""
        self._jobs.tell(job, "queued", {})
        self._waiting.put(job)

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Carry out the jobs that wait, too."""
        self._waiting.put(None)
        while self._working.is_alive() and not is_over():
            self._working.join(_LOOK_S)

    def close(self) -> None:
        """End the job that runs, and start no other."""
        with self._lock:
            self._closed = True
            if self._cancel is not None:
                self._cancel()
        self._waiting.put(None)
        self._working.join(_CLOSING_S)

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            while (job := self._waiting.get()) is not None:
                if self._closed:
                    self._jobs.fail(job, ENGINE_UNAVAILABLE)  # it was never started
                    continue
                try:
                    runner.run(self._stoppable(self._run(job)))
                except asyncio.CancelledError:
                    self._jobs.fail(job, OUTCOME_UNKNOWN if job.status == "started" else ENGINE_UNAVAILABLE)
                except Exception as error:  # one job must not end the thread that all others wait for
                    self._jobs.fail(job, internal(error))

    async def _run(self, job: PluginJob) -> None:
        if self._plugins is None:
            from gateways.plugin_jobs.running import LocalPlugins  # noqa: PLC0415 - the first job loads the engine

            self._plugins = LocalPlugins()
        status, payload = await self._plugins.run(job, lambda: self._jobs.tell(job, "started", {}))
        self._jobs.tell(job, status, payload)

    async def _stoppable(self, work: Coroutine[Any, Any, None]) -> None:
        task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
        with self._lock:
            self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
            if self._closed:
                task.cancel()
        try:
            await task
        finally:
            with self._lock:
                self._cancel = None
