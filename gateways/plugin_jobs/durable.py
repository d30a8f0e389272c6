"""Run jobs as runs of the engine, which survive this process, the worker and the server."""

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gateways.plugin_jobs.jobs import Jobs, PluginJob

if TYPE_CHECKING:
    from gateways.plugin_jobs.following import JobFollower

_CLOSING_S = 5.0
_LOOK_S = 0.02


class DurableJobs:
    """Start a run for each job, and follow it."""

    def __init__(self, jobs: Jobs, is_parallel: Callable[[str], bool], *, one_lane: bool) -> None:
        """Load nothing until the first job comes. `is_parallel`: whether jobs of a plugin may run at the same time."""
        self._jobs = jobs
        self._is_parallel = is_parallel
        self._one_lane = one_lane
        self._follower: JobFollower | None = None
        self._ready = threading.Event()
        self._working: threading.Thread | None = None

    def submit(self, job: PluginJob) -> None:
        """Take a job that is new."""
        if self._working is None:
            self._working = threading.Thread(target=self._work, name="jobs", daemon=True)
            self._working.start()
            self._ready.wait()
        if self._follower is not None:
            self._follower.submit(job)

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Wait until the engine has all jobs that were taken; they go on without this process."""
        self._wait_for_engine(is_over)

    def close(self) -> None:
        """Let go of the jobs that are open; they go on, and those that the engine does not take are told as failed."""
        if self._follower is None or self._working is None:
            return
        ends = time.monotonic() + _CLOSING_S
        self._wait_for_engine(lambda: time.monotonic() > ends)
        # Only then is it certain which jobs were never sent.
        self._follower.stop()
        self._working.join(_CLOSING_S)
        for job in self._jobs.unanswered():
            self._jobs.fail(job, job.unanswered)

    def _wait_for_engine(self, is_over: Callable[[], bool]) -> None:
        while self._jobs.unanswered() and self._working is not None and self._working.is_alive() and not is_over():
            time.sleep(_LOOK_S)

    def _work(self) -> None:
        import asyncio  # noqa: PLC0415 - loaded with the first job

        from gateways.plugin_jobs.following import JobFollower  # noqa: PLC0415 - loads the engine's client

        async def follow() -> None:
            self._follower = JobFollower(self._jobs, self._is_parallel, one_lane=self._one_lane)
            self._ready.set()
            await self._follower.run()

        try:
            asyncio.run(follow())
        finally:
            self._ready.set()
