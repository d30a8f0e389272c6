"""The steps that the commands of schedules and of triggers have in common."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backstay.budgets.budget import Budget
from backstay.errors import TaskInvalid
from backstay.settings import Settings
from backstay.task.standing import Kind
from gateways.terminal.flags import By, Output
from gateways.terminal.session import account_name, open_store, require_store, session
from gateways.terminal.terminal import Terminal

if TYPE_CHECKING:
    from people.standing.keeping import Keeping
    from people.standing.listing import ListedTask

Name = Annotated[str, Parameter(help="Small letters, digits and hyphens.")]
Limits = Annotated[Budget | None, Parameter(negative_none="no-")]
UsdPerDay = Annotated[
    float | None, Parameter(help="US dollars that the model calls of all its runs may cost on one day.")
]
RunsPerDay = Annotated[int | None, Parameter(help="Runs that it may start on one day.")]
Reason = Annotated[str, Parameter(help="Why; it is listed.")]
TimeZone = Annotated[str, Parameter(help="Time zone of its times and days, such as Europe/Berlin.")]
_SHOWN = 3


@asynccontextmanager
async def keeping(settings: Settings) -> "AsyncGenerator[Keeping]":
    """Open what schedules and triggers are kept in."""
    from opening import read_policy
    from people.standing.keeping import Keeping

    require_store(settings)
    policy = read_policy(settings.policy)
    async with session(settings) as backstay, open_store(settings) as store:
        yield Keeping(backstay, store, policy)


async def add(settings: Settings, asked: dict[str, Any], by: By) -> str:
    """Add a schedule or a trigger; return the key of a trigger. Raises TaskInvalid or SettingsInvalid."""
    fields: dict[str, Any] = {**asked, "by": by or account_name()}
    if fields["per_day"]["max_llm_cost_usd"] is None:
        raise TaskInvalid("--usd-per-day: required; say what all of its runs may cost on one day, such as 5")
    fields["per_day"] = {name: most for name, most in fields["per_day"].items() if most is not None}
    fields["task"] = {name: value for name, value in fields["task"].items() if value is not None}
    if fields.get("definition"):
        await _demand_definition(settings, fields)
    async with keeping(settings) as kept:
        return await kept.add(fields, settings.approver_key_bytes)


async def pause_standing(kind: Kind, name: str, reason: str) -> None:
    """Let one start nothing until it is resumed; raises TaskInvalid for a name that is not there."""
    async with keeping(Settings.load()) as kept:
        await kept.pause(kind, name, reason[:500] or "by an operator")
    Terminal().say(f"{kind} {name} is paused")


async def resume_standing(kind: Kind, name: str) -> None:
    """Let one start runs again; raises TaskInvalid for a name that is not there, or whose author may start none."""
    async with keeping(Settings.load()) as kept:
        await kept.resume(kind, name)
    Terminal().say(f"{kind} {name} goes on")


async def remove_standing(kind: Kind, name: str) -> None:
    """Forget one; raises TaskInvalid for a name that is not there."""
    async with keeping(Settings.load()) as kept:
        await kept.remove(kind, name)
    Terminal().say(f"{kind} {name} is removed")


def limits_of(budget: Limits) -> dict[str, Any]:
    """Return the budget of each run, with the most that it may cost named, since that is reserved."""
    given = {} if budget is None else budget.model_dump(mode="json", exclude_unset=True)
    return {"max_llm_cost_usd": Budget().max_llm_cost_usd, **given}


async def list_kind(kind: Kind, output: Output) -> None:
    """List all of one kind, with their next times and what the last runs led to."""
    from people.standing.listing import list_tasks

    settings, terminal = Settings.load(), Terminal()
    require_store(settings)
    async with session(settings) as backstay, open_store(settings) as store:
        from backstay.client.schedules import Schedules

        found = await list_tasks(store, Schedules(backstay.client, backstay.task_queue), kind)
    if not found:
        terminal.say(f"there is no {kind} yet; add one: backstay {kind} add --help", "dim")
    terminal.results(output, [row.plain() for row in found], [line for row in found for line in _lines(row)])


async def _demand_definition(settings: Settings, fields: dict[str, Any]) -> None:
    """Raise TaskInvalid for a definition that is not there, or that takes other input."""
    from activities.definitions import input_fault, read_definitions

    known = (await asyncio.to_thread(read_definitions, settings.definitions)).named(fields["definition"])
    if fields["kind"] == "trigger":
        return
    fault = await asyncio.to_thread(input_fault, known, fields["task"].get("input") or {})
    if fault is not None:
        raise TaskInvalid(f"--input: {fault}; see: backstay definitions show {known.id}")


def _lines(row: "ListedTask") -> list[str]:
    is_known = row.kind == "schedule" and not row.paused and not row.fault
    times = ", ".join(map(_moment, row.next)) or ("none" if is_known else "")
    budget = f"{row.spent_usd:g} of {row.per_day_usd:g} USD today"
    runs = f", {row.runs} of {row.per_day_runs} runs" if row.per_day_runs is not None else f", {row.runs} runs"
    lines = [f"{row.name}  {row.line}  ({row.when}, {row.time_zone})  by {row.by}  {budget}{runs}"]
    lines += [f"    paused: {row.paused}"] if row.paused else []
    lines += [f"    next: {times}"] if times else []
    lines += [f"    {row.missed} starts were missed and not made up for"] if row.missed else []
    lines += [f"    {row.skipped} starts were skipped, since the run before had not ended"] if row.skipped else []
    lines += [f"    {row.fault}"] if row.fault else []
    for start in row.last[:_SHOWN]:
        what = start.told or start.state
        lines.append(f"    {_moment(start.at)}  {what}  {start.workflow_id}".rstrip())
    return lines


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
