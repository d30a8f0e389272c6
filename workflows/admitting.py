"""Look at what a run is started with, before anything is done."""

from typing import Any

from temporalio import workflow

from backstay.errors import TaskInvalid
from backstay.shown import one_line
from backstay.task.task import Task, too_long


def admitted_task(task: Any) -> tuple[TaskInvalid | None, Task]:
    """Return why a task is not valid, if it is not, and the task or what stands for it."""
    try:
        return None, Task.admit(task)
    except TaskInvalid as error:
        return error, Task(text="invalid")


def names_as_sent(task: Any, admitted: Task) -> dict[str, str]:
    """Return the names of people in a task that were sent in another than their canonical form."""
    sent = {name: task.get(name) for name in ("by", "user_id")} if isinstance(task, dict) else {}
    return {name: said for name, said in sent.items() if isinstance(said, str) and said != getattr(admitted, name)}


def repeated(info: workflow.Info) -> TaskInvalid | None:
    """Refuse a run that Temporal would begin anew by itself: its effects bear the numbers of the first."""
    if info.cron_schedule:
        return TaskInvalid(f"cron_schedule: {one_line(info.cron_schedule, 80)!r} is refused; start a run each time")
    if info.retry_policy is not None:
        return TaskInvalid("retry_policy: a run is not retried as a whole; start it without a retry policy")
    return None


def out_of_bounds(info: workflow.Info, task: Any) -> TaskInvalid | None:
    """Refuse a run that the server would end by itself: its effects would stand, and nobody would be told."""
    for name, timeout in (("execution_timeout", info.execution_timeout), ("run_timeout", info.run_timeout)):
        if timeout:  # a run that a lane starts is given 0 by the server, which means none
            return TaskInvalid(f"{name}: refused, since it ends a run without undo; use budget.max_wall_seconds")
    return too_long(task) if isinstance(task, dict | str) else None
