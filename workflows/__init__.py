"""Decide, deterministically; the world is reached through the activities only."""

from workflows.run_task import RunTask
from workflows.undo_run import UndoRun

WORKFLOWS = [RunTask, UndoRun]

__all__ = ["WORKFLOWS", "RunTask", "UndoRun"]
