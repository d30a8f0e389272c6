"""What schedules, triggers and jobs start takes turns as its user, and what schedules start comes last."""

import asyncio
from contextlib import suppress

import pytest
from temporalio.service import RPCError

from backstay.client import Backstay
from backstay.client.jobs import add_to_lane
from backstay.task.lane import lane_id
from backstay.task.task import LAST, Task
from tests.engine import ended
from tests.requirements import promise
from tests.schedules.office import ANA, some


async def priorities(client, *workflow_ids):
    """Return with which priority and fairness key workflows were started."""
    found = []
    for name in workflow_ids:
        begun = await anext(client.get_workflow_handle(name).fetch_history_events())
        priority = begun.workflow_execution_started_event_attributes.priority
        found.append((priority.priority_key, priority.fairness_key))
    return found


async def starts_of(client, run):
    """Return the workflow that started a run."""
    return (await client.get_workflow_handle(run).describe()).raw_description.workflow_execution_info.parent_execution


async def ended_of(client, run, within_s=60):
    """Wait until a run has begun and ended."""
    async with asyncio.timeout(within_s):
        while True:
            with suppress(RPCError):
                return await ended(client.get_workflow_handle(run))
            await asyncio.sleep(0.1)


@promise("schedules:priority")
@pytest.mark.parametrize(("user", "key"), [(None, ANA), ("bo@example.com", "bo@example.com")])
async def test_a_run_of_a_schedule_comes_last_and_takes_turns_as_its_user(office, user, key):
    name = some("nightly")
    await office.schedule(name, every=86_400, task={"user_id": user} if user else {})
    await office.keeping.run_now(name)
    row = await office.until(name, lambda row: row.last and row.last[0].state == "ended")
    run = row.last[0].workflow_id
    start = (await starts_of(office.engine.client, run)).workflow_id
    assert await priorities(office.engine.client, start, run) == [(LAST, key), (LAST, key)]


@promise("schedules:priority")
async def test_a_run_of_a_trigger_takes_turns_as_its_user_with_the_priority_of_others(office):
    name = some("tell")
    await office.trigger(name)
    run = (await office.send(name, {"to": "a@free.example", "subject": "x"}, "e1")).json()["workflow_id"]
    await office.until(name, lambda row: row.last and row.last[0].state == "ended")
    start = (await starts_of(office.engine.client, run)).workflow_id
    assert await priorities(office.engine.client, start, run) == [(0, ANA), (0, ANA)]


@promise("plugins:turns")
async def test_a_job_takes_turns_as_its_user_and_its_lane_as_nobody(office):
    client, queue, plugin = office.engine.client, office.engine.settings.task_queue, some("mail")
    jobs = {some("job"): user for user in ("cy@example.com", "bo@example.com")}
    for job, user in jobs.items():
        await add_to_lane(Backstay(client, task_queue=queue), plugin, job, Task(text="a job", user_id=user))
    lane = lane_id(queue, plugin)
    for job in jobs:
        await ended_of(client, job)
    (_, of_lane), *of_jobs = await priorities(client, lane, *jobs)
    assert of_jobs == [(0, user) for user in jobs.values()]
    assert of_lane
    assert of_lane not in jobs.values()
