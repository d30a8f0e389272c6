"""The budget of a day: reserved before a run starts, settled when it has ended, and never exceeded."""

import asyncio

import pytest
from sqlalchemy import delete, update
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError

from activities.runs.starting import Starting
from backstay.errors import StoreUnavailable
from store.database.schema import standing_tasks
from store.standing.starts import Starts
from tests import engine
from tests.requirements import promise
from tests.schedules.office import ANA, some

ASKS = {"to": "a@asks.example", "subject": "x"}
FREE = {"to": "a@free.example", "subject": "x"}


@promise("schedules:day-budget")
async def test_ten_at_once_over_two_workers_start_no_more_than_the_day_allows(office):
    name = some("ten")
    await office.trigger(name, usd=0.4, budget=0.1)
    async with office.second_worker():
        answers = await asyncio.gather(*(office.send(name, ASKS | {"subject": f"x{n}"}, f"e{n}") for n in range(10)))
        assert {answer.status_code for answer in answers} == {202}
        row = await office.until(name, lambda row: all(start.state != "accepted" for start in row.last))
        starts = await office.store.starts.newest("trigger", name, 20)
        while any(start.state == "accepted" for start in starts):
            await asyncio.sleep(0.1)
            starts = await office.store.starts.newest("trigger", name, 20)
        row = await office.listed(name)
        begun = [start for start in starts if start.state == "reserved"]
        refused = [start for start in starts if start.state == "refused"]
        assert (len(begun), len(refused)) == (4, 6)
        assert round(row.spent_usd, 6) == 0.4
        assert all("per_day.max_llm_cost_usd: 0.4 of 0.4 USD" in start.told for start in refused)
        # Each of them waits for its approval as ever; a run that ends gives back what it did not need.
        for start in begun:
            handle = await office.asking(start.run)
            await engine.update(handle, "decide", {"request_id": "r1", "verdict": "reject", "by": "bo", "stop": True})
        row = await office.until(name, lambda row: row.spent_usd == 0)
    assert (await office.send(name, FREE, "later")).status_code == 202
    await office.until(name, lambda row: row.last[0].event == "later" and row.last[0].told == "completed")


@promise("schedules:day-runs")
async def test_runs_of_a_day_are_counted(office):
    name = some("once")
    await office.schedule(name, every=1, runs=1)
    row = await office.until(name, lambda row: len(row.last) > 1)
    await office.keeping.remove("schedule", name)
    assert row.last[0].told == "per_day.max_runs: 1 of 1 runs were started today (UTC)"
    assert [start.told for start in row.last if start.state == "ended"] == ["completed"]


@promise("schedules:killed-amid-start")
async def test_what_was_reserved_by_a_worker_that_died_is_reserved_once_and_started_once(office, monkeypatch):
    name, reserve, deaths = some("dies"), Starts.reserve.work, []

    def dies(self, connection, start, *args):
        deaths.append(start)
        return reserve(self, connection, start, *args)

    def lost(_owner, _answer):
        if len(deaths) == 1:
            # The reservation is committed, and its worker says nothing more.
            raise StoreUnavailable("lost")

    monkeypatch.setattr(Starts.reserve, "work", dies)
    monkeypatch.setattr(Starts.reserve, "afterwards", lost)
    await office.trigger(name)
    answer = (await office.send(name, ASKS, "e1")).json()
    await office.asking(answer["workflow_id"])
    row = await office.listed(name)
    assert len(deaths) > 1
    assert (row.runs, round(row.spent_usd, 6)) == (1, 0.1)


@promise("schedules:killed-and-stopped")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (update(standing_tasks).values(paused="holidays"), "paused: holidays"),
        (delete(standing_tasks), "this store knows no trigger of that name"),
    ],
    ids=["paused", "removed"],
)
async def test_what_was_reserved_for_a_start_that_may_begin_no_more_is_given_back(office, monkeypatch, change, why):
    name, reserve, deaths = some("stuck"), Starts.reserve.work, []

    def dies(self, connection, start, *args):
        answer = reserve(self, connection, start, *args)
        connection.execute(change.where(standing_tasks.c.name == name))
        deaths.append(answer.state)
        return answer

    def lost(_owner, _answer):
        raise StoreUnavailable("lost")

    monkeypatch.setattr(Starts.reserve, "work", dies)
    monkeypatch.setattr(Starts.reserve, "afterwards", lost)
    await office.trigger(name)
    workflow_id = (await office.send(name, ASKS, "e1")).json()["workflow_id"]
    told = await office.engine.client.get_workflow_handle(f"start-{workflow_id}").result()
    assert (deaths, told) == (["reserved"], {"refused": why})
    (start,) = await office.store.starts.newest("trigger", name)
    assert (start.state, start.told, start.micro) == ("ended", why, 0)


@promise("schedules:killed-and-replaced")
@pytest.mark.parametrize("kind", ["trigger", "schedule"])
async def test_what_was_reserved_for_a_start_starts_nothing_of_another_that_takes_its_name(office, monkeypatch, kind):
    name, reserve, deaths = some("replaced"), Starts.reserve, []

    async def add(by):
        await (office.trigger(name, by=by) if kind == "trigger" else office.schedule(name, by=by, cron="0 7 1 1 *"))

    async def lost(self, *args):
        answer = await reserve(self, *args)
        if not deaths:
            deaths.append(answer.state)
            await office.keeping.remove(kind, name)
            await add("bo@example.com")
            raise StoreUnavailable("lost")
        return answer

    monkeypatch.setattr(Starts, "reserve", lost)
    await add(ANA)
    if kind == "trigger":
        start = f"start-{(await office.send(name, ASKS, 'e1')).json()['workflow_id']}"
    else:
        start, queue = f"start-{name}", office.engine.settings.task_queue
        await office.engine.client.start_workflow("StartRun", {"kind": kind, "name": name}, id=start, task_queue=queue)
    told = await office.engine.client.get_workflow_handle(start).result()
    assert (deaths, told) == (["reserved"], {"refused": f"the {kind} was removed"})
    (found,) = await office.store.starts.newest(kind, name)
    assert (found.state, found.told, found.micro) == ("ended", f"the {kind} was removed", 0)


@promise("schedules:own-budget")
async def test_each_run_has_its_own_budget_and_its_author_as_its_starter(office):
    name = some("own")
    await office.schedule(name, every=1, budget=0.000001, task={"metadata": {"desk": "news"}})
    row = await office.until(name, lambda row: any(start.state == "ended" for start in row.last))
    await office.keeping.remove("schedule", name)
    start = next(start for start in row.last if start.state == "ended")
    assert start.told == "budget_exceeded"
    kept = await office.store.runs.get(start.workflow_id)
    assert kept.opened["started_by"] == kept.user_id == ANA
    assert kept.metadata == {"desk": "news", "schedule": name}


@promise("schedules:lost-run")
async def test_a_run_that_was_terminated_counts_with_all_that_was_reserved(office):
    name = some("lost")
    await office.trigger(name)
    answer = (await office.send(name, ASKS, "e1")).json()
    handle = await office.asking(answer["workflow_id"])
    await handle.terminate()
    row = await office.until(name, lambda row: row.last[0].state == "ended")
    assert row.last[0].told == "terminated"
    assert round(row.spent_usd, 6) == 0.1


@promise("schedules:cancelled-amid-start")
async def test_a_start_that_is_cancelled_while_it_reserves_starts_nothing_and_gives_all_back(office, monkeypatch):
    demand, reached, goes_on = Starting._demand_right, asyncio.Event(), asyncio.Event()

    async def waits(self, kept):
        reached.set()
        await goes_on.wait()
        await demand(self, kept)

    monkeypatch.setattr(Starting, "_demand_right", waits)
    await office.trigger(name := some("stopped"))
    workflow_id = (await office.send(name, ASKS, "e1")).json()["workflow_id"]
    start = office.engine.client.get_workflow_handle(f"start-{workflow_id}")
    async with asyncio.timeout(60):
        await reached.wait()
        await start.cancel()
        while not await heard(start):
            await asyncio.sleep(0.05)
        goes_on.set()
        with pytest.raises(WorkflowFailureError) as ended:
            await start.result()
    assert isinstance(ended.value.cause, CancelledError)
    row = await office.listed(name)
    assert (row.last[0].state, row.last[0].told, row.spent_usd) == ("ended", "cancelled before it began", 0)
    with pytest.raises(RPCError, match="not found"):
        await office.engine.client.get_workflow_handle(workflow_id).describe()


async def heard(start):
    """Return whether a workflow has been told of its cancellation."""
    events = [event.event_type async for event in start.fetch_history_events()]
    asked = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED
    return asked in events and EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED in events[events.index(asked) :]
