"""The commands `schedule ...`: start runs at set times."""

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from backstay.errors import TaskInvalid
from backstay.settings import Settings
from gateways.terminal.flags import By, Output, User, json_object
from gateways.terminal.standing.adding import (
    Limits,
    Name,
    Reason,
    RunsPerDay,
    TimeZone,
    UsdPerDay,
    keeping,
    limits_of,
    list_kind,
    pause_standing,
    remove_standing,
    resume_standing,
)
from gateways.terminal.standing.adding import add as add_standing
from gateways.terminal.terminal import Terminal

Overlap = Literal["skip", "buffer_one", "buffer_all", "cancel_other", "allow_all"]


async def add(
    name: Name,
    text: Annotated[str, Parameter(help="The task, in a sentence.")] = "",
    *,
    cron: Annotated[str | None, Parameter(help="Minute, hour, day of the month, month, day of the week.")] = None,
    every: Annotated[str | None, Parameter(help="A duration, such as 15m or 6h, instead of cron.")] = None,
    time_zone: TimeZone = "UTC",
    definition: Annotated[str | None, Parameter(help="Definition to carry out, instead of a sentence.")] = None,
    input: Annotated[str | None, Parameter(help="JSON object that the task may refer to.")] = None,  # noqa: A002 - the field's name
    usd_per_day: UsdPerDay = None,
    runs_per_day: RunsPerDay = None,
    budget: Limits = None,
    overlap: Annotated[Overlap, Parameter(help="How it goes on when the run before has not ended.")] = "skip",
    catch_up: Annotated[str, Parameter(help="Make up for what was due while Temporal was down, if no older.")] = "1h",
    jitter: Annotated[str | None, Parameter(help="Put each start off by a random time of so much at most.")] = None,
    user: User | None = None,
    profile: Annotated[str | None, Parameter(help="Profile that sets what the task leaves out.")] = None,
    model: Annotated[str | None, Parameter(help="Model to use instead of BACKSTAY_MODEL.")] = None,
    by: By = None,
    output: Output = "text",
) -> None:
    """Add a schedule: from now on it starts runs in your name, each within its budget and that of the day."""
    from gateways.terminal.flags import duration

    if text and definition is not None:
        raise TaskInvalid("--definition: a definition is what is to be done; leave the text out")
    times: dict[str, Any] = {"overlap": overlap, "catch_up": duration(catch_up, "--catch-up")}
    times |= {} if cron is None else {"cron": cron}
    times |= {} if every is None else {"every": duration(every, "--every")}
    times |= {} if jitter is None else {"jitter": duration(jitter, "--jitter")}
    given = None if input is None else json_object(input, "--input", '{"days": 60}')
    task = {"text": text or None, "input": given, "user_id": user, "profile": profile, "model": model}
    settings, terminal = Settings.load(), Terminal()
    asked: dict[str, Any] = {"kind": "schedule", "name": name, "time_zone": time_zone, "definition": definition or ""}
    asked |= {"task": task | {"budget": limits_of(budget)}, "times": times}
    asked |= {"per_day": {"max_llm_cost_usd": usd_per_day, "max_runs": runs_per_day}}
    await add_standing(settings, asked, by)
    terminal.results(output, {"name": name}, [f"schedule {name} is added; see: backstay schedule list"])


async def list_schedules(*, output: Output = "text") -> None:
    """List schedules, their next times, and what the last runs led to."""
    await list_kind("schedule", output)


async def pause(name: Name, *, reason: Reason = "by an operator") -> None:
    """Pause a schedule: it starts nothing until it is resumed; runs that it has started go on."""
    await pause_standing("schedule", name, reason)


async def resume(name: Name) -> None:
    """Resume a schedule that is paused."""
    await resume_standing("schedule", name)


async def remove(name: Name) -> None:
    """Remove a schedule; runs that it has started go on."""
    await remove_standing("schedule", name)


async def run_now(name: Name) -> None:
    """Start a run of a schedule now, within the budget of the day."""
    async with keeping(Settings.load()) as kept:
        await kept.run_now(name)
    Terminal().say(f"schedule {name} starts a run now, if its --overlap lets it; see: backstay schedule list")
