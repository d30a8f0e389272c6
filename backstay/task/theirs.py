"""The values that others gave for a step of a task's own plan."""

from typing import Any, Self

from backstay.frozen import Message
from backstay.task.plan import references_in
from backstay.task.task import Task


class Theirs(Message):
    """Hold what a step of the task's plan says by itself, and what others gave for it to be filled in with."""

    written: dict[str, Any]
    """The arguments as the plan has them."""
    given: dict[str, Any]
    """The fields of the input that they name."""

    @classmethod
    def of(cls, task: Task, arguments: dict[str, Any]) -> Self | None:
        """Return it for the arguments of a step of the task's plan; None where nothing of others is filled in."""
        if task.input_from == "task":
            return None
        named = {path.split(".")[1] for path in references_in(arguments) if path.startswith("input.")}
        given = {name: task.input[name] for name in sorted(named) if name in task.input}
        return cls(written=arguments, given=given) if given else None
