"""Run a task with one call, and import packages of the engine by their own names."""

from typing import Any

from backstay.budgets.budget import Budget
from backstay.client import Run, connect
from backstay.errors import BackstayError
from backstay.rooms import house, open_house
from backstay.task.event import Event
from backstay.task.result import Result
from backstay.task.task import Task

__all__ = ["TaskResult", "execute_mcp_task", "house"]
OFFERED = ("toolbox", "sandbox")
"""Packages that programs may import by their own names after importing this module."""


class TaskResult(Result):
    """A Result that also answers to the names `budget_usage` and `logs`."""

    @property
    def budget_usage(self) -> dict[str, Any]:
        """Return what was used of the budget."""
        return self.usage

    @property
    def logs(self) -> list[dict[str, Any]]:
        """Return the events as plain JSON: all of them, or the last 20 where no worker could read the others."""
        return [event.plain() for event in self.events]


async def execute_mcp_task(
    task: str,
    user_id: str = "singleton",
    budget: Budget | dict[str, Any] | None = None,
    extra_context: dict[str, Any] | None = None,
) -> TaskResult:
    """Start a task as a durable run and wait for its Result; the run waits for people where it needs them.

    Raises TaskInvalid for what cannot be started, Unreachable when Temporal does not answer.
    """
    given: dict[str, Any] = {"text": task, "user_id": user_id}
    given |= {} if budget is None else {"budget": budget}
    given |= {} if extra_context is None else {"extra_context": extra_context}
    admitted = Task.admit(given)
    async with connect() as backstay:
        run = await backstay.start(admitted)
        result = await run.result()
        events = await _all_events(run, result)
    return TaskResult.model_validate(result.plain() | {"events": [event.plain() for event in events]})


async def _all_events(run: Run, result: Result) -> list[Event]:
    """Return every event of a run that has ended; those of the Result where no worker or store has the others."""
    try:
        return [event async for event in run.events()]
    except BackstayError:
        return list(result.events)


open_house(*OFFERED, "system")
