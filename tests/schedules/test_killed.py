"""A worker that is killed amid the start of a run, or as it settles, and a store that is away for long meanwhile."""

import uuid
from datetime import timedelta

import pytest
from temporalio.exceptions import ApplicationError

import opening
from activities.runs.starting import Starting
from backstay.client import Backstay
from backstay.settings import Settings
from backstay.testing import ScriptedModel
from people.standing.keeping import Keeping
from store.standing.starts import Starts
from store.standing.tasks import StartState
from tests.crash.points import Point
from tests.nursery.nursery import worker_environment
from tests.requirements import promise
from tests.schedules.office import DONE, asked_schedule, some
from tests.web.pages import KEY
from workflows.dispatch import activity_calls

POINTS = [Point("after", "starts.reserve"), Point("before", "starts.settle"), Point("after", "starts.settle")]


@promise("schedules:store-away")
async def test_a_run_is_started_and_settled_however_long_the_store_is_away(office, monkeypatch):
    away = [2, 2]

    def once_more(place, method):
        async def tried(*args):
            if away[place]:
                away[place] -= 1
                raise ApplicationError("away for longer than it is tried", type="StoreUnavailable", non_retryable=True)
            return await method(*args)

        return tried

    monkeypatch.setattr(activity_calls, "AGAIN", timedelta(seconds=0.1))
    monkeypatch.setattr(Starting, "_demand_right", once_more(0, Starting._demand_right))
    monkeypatch.setattr(Starts, "settle", once_more(1, Starts.settle))
    await office.trigger(name := some("away"))
    assert (await office.send(name, {"to": "a@free.example", "subject": "x"}, "e1")).status_code == 202
    row = await office.until(name, lambda row: bool(row.last) and row.last[0].state == "ended")
    assert (row.last[0].told, away) == ("completed", [0, 0])


@promise("schedules:killed-amid-start")
@pytest.mark.thorough
async def test_a_run_is_reserved_for_started_and_settled_once_however_often_its_worker_is_killed(
    temporal, nursery, tmp_path
):
    queue = f"queue-{uuid.uuid4()}"
    async with ScriptedModel(DONE * 3) as model:
        shared = {"home": tmp_path / "home", "task_queue": queue}
        told = {f"BACKSTAY_{name.upper()}": str(value) for name, value in shared.items()}
        told |= {name: str(tmp_path / "none") for name in ("KILL_MAILBOX", "KILL_WITNESS")}
        environment = worker_environment(temporal, model, BACKSTAY_APPROVER_KEY=KEY, **told)
        settings = Settings.load(None, **shared, approver_key=KEY)
        doomed = await nursery.worker(environment | {"KILL_AT": POINTS[0].spec}, tmp_path / "0.log")
        await doomed.ready()
        async with opening.open_store(settings) as store:
            signing = Backstay(temporal, task_queue=queue, approver_key=KEY)
            keeping = Keeping(signing, store, opening.read_policy(settings.policy))
            await keeping.add(asked_schedule("killed", cron="0 7 1 1 *"), KEY.encode())
            ask, start = {"kind": "schedule", "name": "killed"}, f"start-killed-{uuid.uuid4()}"
            handle = await temporal.start_workflow("StartRun", ask, id=start, task_queue=queue)
            for number, point in enumerate([*POINTS[1:], None], 1):
                assert await doomed.died == -9, doomed.said()
                if number == 1:
                    assert [(each.state, each.micro) for each in await store.starts.newest("schedule", "killed")] == [
                        (StartState.RESERVED, 100_000)
                    ]
                kill = {} if point is None else {"KILL_AT": point.spec}
                doomed = await nursery.worker(environment | kill, tmp_path / f"{number}.log")
            assert (await handle.result())["workflow_id"] == start.removeprefix("start-")
            (ended,) = await store.starts.newest("schedule", "killed")
            assert (ended.state, ended.told, ended.micro < 100_000) == (StartState.ENDED, "completed", True)
            assert (await store.runs.get(ended.run)).result["usage"]["steps"] == 1
            await keeping.remove("schedule", "killed")
        await doomed.end()
