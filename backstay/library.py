"""Run a task with one call, and import the engine's own packages of an installed backstay."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from backstay.budgets.budget import Budget
from backstay.client import connect
from backstay.errors import SettingsInvalid
from backstay.task.result import Result
from backstay.task.task import Task

_PACKAGE = Path(__file__).resolve().parent
OFFERED = ("toolbox", "sandbox")
"""Packages that programs may import by their own names after importing this module."""


def house() -> Path:
    """Return the folder that holds worker.py and its packages: `_app` in an installed package, else the checkout."""
    installed = _PACKAGE / "_app"
    return installed if installed.is_dir() else _PACKAGE.parent


def open_house(*names: str) -> Path:
    """Put the packages on the path; raises SettingsInvalid when a foreign module of one of the names was imported."""
    place = house()
    for name in names:
        known = sys.modules.get(name)
        if known is not None and place not in _home_of(known).parents:
            raise SettingsInvalid(
                f"{name!r} was imported from {_home_of(known)}, not from {place}; import backstay.library first, "
                "or uninstall the package that provides it"
            )
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))
    return place


def room(name: str) -> ModuleType:
    """Import an engine module by its name when it is needed; importing `backstay` alone loads none of them."""
    open_house(name)
    return importlib.import_module(name)


class TaskResult(Result):
    """A Result that also answers to the names `budget_usage` and `logs`."""

    @property
    def budget_usage(self) -> dict[str, Any]:
        """Return what was used of the budget."""
        return self.usage

    @property
    def logs(self) -> list[dict[str, Any]]:
        """Return the events as plain JSON, at most the last 100."""
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
    return TaskResult.model_validate(result.plain())


def _home_of(module: ModuleType) -> Path:
    places = [module.__file__] if module.__file__ else [*getattr(module, "__path__", ["?"])]
    return Path(str(places[0])).resolve()


open_house(*OFFERED, "system")
