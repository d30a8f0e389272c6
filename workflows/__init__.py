"""Decide what a run does next. Deterministic: only activities touch the outside world.

May import: backstay.
"""

from workflows.jobs.lane import JobLane
from workflows.read_run import ReadRun
from workflows.run_task import RunTask
from workflows.start_run import StartRun
from workflows.undo_run import UndoRun

WORKFLOWS = [RunTask, UndoRun, ReadRun, StartRun, JobLane]

__all__ = ["WORKFLOWS", "JobLane", "ReadRun", "RunTask", "StartRun", "UndoRun"]
