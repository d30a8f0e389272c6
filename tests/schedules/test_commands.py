"""The commands `schedule ...` and `trigger ...`: what is wrong names field and fix, with exit code 2."""

import asyncio
import itertools
import json

import pytest
from temporalio.client import ScheduleOverlapPolicy

from tests.cli.commands import environment_of, forked
from tests.requirements import promise
from tests.schedules.office import KEY, some


@pytest.fixture
def run(office, nursery, tmp_path):
    async def run(*arguments, key=KEY, **more):
        known = {"BACKSTAY_DEFINITIONS": str(office.engine.settings.definitions), "BACKSTAY_APPROVER_KEY": key}
        return await forked(
            nursery, *arguments, environment=environment_of(office.engine, **known, **more), folder=tmp_path
        )

    return run


@promise("schedules:commands")
async def test_a_schedule_is_added_listed_started_paused_and_removed(run, office):
    name = some("report")
    added = await run(
        "schedule",
        "add",
        name,
        "write the report",
        "--cron",
        "0 7 * * 1",
        *("--usd-per-day", "1"),
        *("--time-zone", "Europe/Berlin", "--by", "Ana@Example.com", "--budget.max-llm-cost-usd", "0.2"),
    )
    assert (added.code, added.err) == (0, "")
    assert (await run("schedule", "run-now", name)).code == 0
    await office.until(name, lambda row: row.last and row.last[0].told == "completed")
    (row,) = [row for row in json.loads((await run("schedule", "list", "--output", "json")).out) if row["name"] == name]
    assert (row["by"], row["when"], row["time_zone"]) == ("ana@example.com", "cron 0 7 * * 1", "Europe/Berlin")
    assert (len(row["next"]), row["per_day_usd"], row["runs"]) == (3, 1.0, 1)
    assert (await run("schedule", "pause", name, "--reason", "holidays")).code == 0
    listed = (await run("schedule", "list")).out
    assert "paused: holidays" in listed
    refused = await run("schedule", "run-now", name)
    assert (refused.code, refused.err) == (2, f"backstay: name: {name} is paused (holidays); resume it first\n")
    assert (await run("schedule", "resume", name)).code == 0
    assert (await run("schedule", "remove", name)).code == 0
    assert name not in (await run("schedule", "list")).out
    again = await run("schedule", "remove", name)
    assert (again.code, again.err) == (
        2,
        f"backstay: name: there is no schedule {name}; see `backstay schedule list`\n",
    )


@promise("schedules:listed-counts")
async def test_the_list_counts_skipped_starts_and_calls_no_times_none_that_nobody_knows(run, office):
    name = some("often")
    await office.schedule(name, every=3600)
    handle = office.engine.client.get_schedule_handle(f"{office.engine.settings.task_queue}-schedule-{name}")
    async with asyncio.timeout(60):
        while not (await office.listed(name)).skipped:
            await handle.trigger(overlap=ScheduleOverlapPolicy.SKIP)
    await office.until(name, lambda row: row.last and all(start.told == "completed" for start in row.last))
    (counted,) = [line for line in lines_of(await run("schedule", "list"), name) if "skipped" in line]
    assert (
        counted == f"    {(await office.listed(name)).skipped} starts were skipped, since the run before had not ended"
    )
    await handle.delete()
    lost = lines_of(await run("schedule", "list"), name)
    assert lost[0] == "    Temporal does not know this schedule any more; remove it, and add it again"


def lines_of(done, name):
    """Return what a list says below the line of a schedule."""
    rows = done.out.splitlines()
    rest = rows[next(at for at, row in enumerate(rows) if row.startswith(f"{name} ")) + 1 :]
    return list(itertools.takewhile(lambda row: row.startswith("    "), rest))


@promise("schedules:bad-input")
async def test_what_is_wrong_with_a_schedule_is_told_by_its_field_and_leaves_nothing(run, office):
    name, usd = some("bad"), ("--usd-per-day", "1")
    add = ("schedule", "add", name, "text")
    cases = {
        ("--cron", "0 7 * *", *usd): "cron:",
        ("--cron", "61 7 * * *", *usd): "cron:",
        ("--cron", "0 0 7 * * *", *usd): "cron: needs five fields",
        (
            "--cron",
            "0 9 1 * 1",
            *usd,
        ): "times.cron: restricts both the day of the month (1) and the day of the week (1)",
        ("--cron", "0 9 1-31 * mon-fri", *usd): "add two schedules, each with * in place of one of them",
        ("--cron", "CRON_TZ=UTC 0 7 * * *", *usd): "cron: holds more than fields",
        ("--cron", "0 7 * * *", "--time-zone", "Europe/Nowhere", *usd): "time_zone: no time zone of that name",
        ("--every", "soon", *usd): "--every: 'soon' is not a duration",
        ("--every", "1h", "--catch-up", "1s", *usd): "times.catch_up:",
        usd: "times: say when: either cron or every",
        ("--cron", "0 7 * * *"): "--usd-per-day: required",
        ("--cron", "0 7 * * *", "--usd-per-day", "0.1"): "per_day.max_llm_cost_usd: 0.1 is less than one run may cost",
        ("--cron", "0 7 * * *", "--budget.no-max-llm-cost-usd", *usd): "task.budget.max_llm_cost_usd: none",
        ("--cron", "0 7 * * *", "--definition", "nothing", *usd): "--definition: a definition is what is to be done",
    }
    for given, said in cases.items():
        done = await run(*add, *given)
        assert (done.code, said in done.err) == (2, True), (given, done)
    unknown = await run("schedule", "add", name, "--definition", "nothing", "--every", "1h", *usd)
    assert (unknown.code, "definition: there is no 'nothing'" in unknown.err) == (2, True), unknown
    short = await run("schedule", "add", name, "--definition", "tell_customer", "--every", "1h", *usd)
    assert (short.code, "--input:" in short.err) == (2, True), short
    keyless = await run(*add, "--every", "1h", *usd, key="")
    assert (keyless.code, "BACKSTAY_APPROVER_KEY: required" in keyless.err) == (2, True), keyless
    assert await office.store.standing.get("schedule", name) is None


@promise("schedules:trigger-key")
async def test_the_key_of_a_trigger_is_shown_once_and_stands_nowhere_in_the_store(run, office):
    name = some("hook")
    more = ("--definition", "tell_customer", "--usd-per-day", "1", "--output", "json")
    made = json.loads((await run("trigger", "add", name, *more)).out)
    assert made["path"] == f"/triggers/{name}"
    office.keys[name] = made["key"]
    assert (await office.send(name, {"to": "a@free.example", "subject": "x"})).status_code == 202
    assert made["key"] not in (await run("trigger", "list", "--output", "json")).out
    # A process that opens the file beside SQLite drops the locks on it when it closes it.
    files = sorted(map(str, office.engine.settings.home.glob("backstay.db*")))
    found = await asyncio.create_subprocess_exec("grep", "-qaF", made["key"], *files)
    assert await found.wait() == 1
    assert (await run("trigger", "add", name, *more)).code == 2
    assert (await run("trigger", "pause", name)).code == 0
    assert (await office.send(name, {"to": "a@free.example", "subject": "y"})).status_code == 409
    assert (await run("trigger", "remove", name)).code == 0
    assert (await office.send(name, {"to": "a@free.example", "subject": "z"})).status_code == 403
