"""JobLane: carry out the jobs of one plugin one after another, in the order in which they came."""

import asyncio
from datetime import timedelta
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

from backstay.canonical import canonical
from backstay.task.lane import ADD, ASIDE, DROP, WORKFLOW, LaneJob
from workflows.dispatch.children import start_run

IDLE = timedelta(minutes=1)
"""How long a lane without jobs stays open; the next job opens it again."""
MOST_CARRIED = 512 * 1024
"""Bytes of waiting jobs with which a lane may continue as a new execution."""


@workflow.defn(name=WORKFLOW)
class JobLane:
    """Start a run for each job, and the next one when it has ended, waits for people, or its process has ended.

    That two calls of a plugin never run at once does not rest on this: the lock of its folder sees to it. A lane keeps
    the order, and lets what waits for its turn wait without a worker.
    """

    @workflow.init
    def __init__(self, waiting: Any = None) -> None:
        """Take over the jobs that the execution before has left."""
        self.waiting: list[LaneJob] = []
        self.aside: set[str] = set()
        self.begun = ""
        for job in waiting if isinstance(waiting, list) else ():
            self.add(job)

    @workflow.run
    async def run(self, waiting: Any = None) -> None:
        """Carry out jobs until none has come for a while."""
        while await self._some_wait():
            if workflow.info().is_continue_as_new_suggested() and self._size() <= MOST_CARRIED:
                workflow.continue_as_new([job.model_dump(mode="json") for job in self.waiting])
            await self._carry_out(self.waiting.pop(0))

    @workflow.signal(name=ADD)
    def add(self, job: Any = None) -> None:
        """Let a job wait for its turn; one that waits already, or is not a job, changes nothing."""
        try:
            admitted = LaneJob.model_validate(job)
        except ValidationError:
            workflow.logger.warning("lane.refused")
            return
        if admitted.workflow_id not in {self.begun, *(other.workflow_id for other in self.waiting)}:
            self.waiting.append(admitted)

    @workflow.signal(name=DROP)
    def drop(self, workflow_id: Any = None) -> None:
        """Let a job not begin."""
        self.waiting = [job for job in self.waiting if job.workflow_id != workflow_id]

    @workflow.signal(name=ASIDE)
    def step_aside(self, workflow_id: Any = None) -> None:
        """Let the next job begin, because this one waits for people, or to learn what became of its call."""
        self.aside.add(str(workflow_id))

    async def _some_wait(self) -> bool:
        try:
            await workflow.wait_condition(lambda: bool(self.waiting), timeout=IDLE, timeout_summary="no job")
        except TimeoutError:
            return bool(self.waiting)
        return True

    def _size(self) -> int:
        return sum(len(canonical(job.task)) for job in self.waiting)

    async def _carry_out(self, job: LaneJob) -> None:
        self.begun = job.workflow_id
        self.aside.clear()
        try:
            run = await start_run(job.workflow_id, job.task, job.summary, workflow.ParentClosePolicy.ABANDON)
        except WorkflowAlreadyStartedError:
            return  # an earlier lane has begun it, or another client; whoever asked for it follows that run
        run.add_done_callback(_look_at)
        await workflow.wait_condition(lambda: run.done() or job.workflow_id in self.aside)


def _look_at(run: "asyncio.Task[Any]") -> None:
    """Take note of how a run ended; its own result tells those who asked for it."""
    if not run.cancelled():
        run.exception()
