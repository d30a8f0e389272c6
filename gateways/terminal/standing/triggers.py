"""The commands `trigger ...`: let other programs start runs by a signed request."""

from typing import Annotated, Any

from cyclopts import Parameter

from backstay.settings import Settings
from gateways.terminal.flags import By, Output, User
from gateways.terminal.standing.adding import (
    Limits,
    Name,
    Reason,
    RunsPerDay,
    TimeZone,
    UsdPerDay,
    limits_of,
    list_kind,
    pause_standing,
    remove_standing,
    resume_standing,
)
from gateways.terminal.standing.adding import add as add_standing
from gateways.terminal.terminal import Terminal


async def add(
    name: Name,
    *,
    definition: Annotated[str, Parameter(help="Definition that is carried out with what is sent as its input.")],
    time_zone: TimeZone = "UTC",
    usd_per_day: UsdPerDay = None,
    runs_per_day: RunsPerDay = None,
    budget: Limits = None,
    max_bytes: Annotated[int, Parameter(help="Bytes that one request may carry.")] = 65_536,
    per_minute: Annotated[int, Parameter(help="Runs that it starts in one minute.")] = 30,
    user: User | None = None,
    by: By = None,
    output: Output = "text",
) -> None:
    """Add a trigger, and print the key that requests to it are signed with; the key is shown this once."""
    settings, terminal = Settings.load(), Terminal()
    task: dict[str, Any] = {"user_id": user, "budget": limits_of(budget)}
    asked: dict[str, Any] = {"kind": "trigger", "name": name, "time_zone": time_zone, "definition": definition}
    asked |= {"task": task, "door": {"max_bytes": max_bytes, "per_minute": per_minute}}
    asked |= {"per_day": {"max_llm_cost_usd": usd_per_day, "max_runs": runs_per_day}}
    key = await add_standing(settings, asked, by)
    terminal.say(f"trigger {name} is added; it takes POST /triggers/{name} at the page, signed with this key")
    terminal.results(output, {"name": name, "path": f"/triggers/{name}", "key": key}, [key])


async def list_triggers(*, output: Output = "text") -> None:
    """List triggers, and what the last runs led to."""
    await list_kind("trigger", output)


async def pause(name: Name, *, reason: Reason = "by an operator") -> None:
    """Pause a trigger: requests to it are refused until it is resumed."""
    await pause_standing("trigger", name, reason)


async def resume(name: Name) -> None:
    """Resume a trigger that is paused."""
    await resume_standing("trigger", name)


async def remove(name: Name) -> None:
    """Remove a trigger, and its key; runs that it has started go on."""
    await remove_standing("trigger", name)
