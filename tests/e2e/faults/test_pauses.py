"""An endpoint that asks to wait is left alone by all workers, not only by the run that it told."""

import asyncio
import time

import pytest
from sqlalchemy import text
from temporalio.client import Client

from activities.endpoints import pausing
from activities.endpoints.pausing import Pausing
from backstay.client.connecting import DATA_CONVERTER
from backstay.errors import ModelUnavailable, StoreUnavailable
from backstay.testing import Reply
from store.opening import open_store
from store.pauses import Pauses
from tests.engine import ended, engine
from tests.requirements import promise
from workflows.calls.model_calls import WAITS

RUNS = 12
PAUSE_S = 5
PART_S = 0.2
PAUSED = text("SELECT endpoint FROM endpoint_pauses")


@promise("models:pause-of-all")
@pytest.mark.thorough
@pytest.mark.timeout(300)
async def test_what_one_worker_is_told_holds_up_the_runs_of_all_until_it_is_over(temporal, tmp_path):
    asked = []

    def rules(conversation):
        asked.append(time.monotonic())
        if len(asked) == 1:
            return Reply(status=429, headers={"retry-after": str(PAUSE_S)})
        return Reply(calls=[("finish", {"summary": "done"})])

    # One client serves a task queue once.
    other = await Client.connect(temporal.service_client.config.target_host, data_converter=DATA_CONVERTER)
    shared = {"task_queue": "queue-of-two-workers", "home": tmp_path / "home"}
    async with (
        engine(temporal, tmp_path / "first", rules, **shared) as first,
        engine(other, tmp_path / "second", rules, openai_base_url=first.model.base_url, **shared),
    ):
        runs = [await first.start({"text": "first"})]
        async with open_store(database_url=None, home=shared["home"]) as store, asyncio.timeout(60):
            while not await store._database.read(lambda connection: connection.execute(PAUSED).all()):
                await asyncio.sleep(0.05)
        runs += [await first.start({"text": str(number)}) for number in range(RUNS)]
        results = await asyncio.gather(*(ended(run) for run in runs))
    assert {result["outcome"] for result in results} == {"completed"}
    assert len(asked) == 1 + len(runs), "a request was refused"
    assert min(asked[1:]) - asked[0] > PAUSE_S - 0.5


@promise("models:pause-of-all")
async def test_a_run_waits_for_what_others_were_told_for_as_long_as_its_time_lasts_and_asks_nobody(
    temporal, tmp_path, monkeypatch
):
    held = iter([PART_S] * (WAITS + 2))

    async def left(*_):
        return next(held, 0.0)

    for name in ("LOOK_S", "LONGEST_WAIT_S"):
        monkeypatch.setattr(pausing, name, 0.0)
    monkeypatch.setattr(Pauses, "left", left)
    async with engine(temporal, tmp_path, lambda _: Reply(calls=[("finish", {"summary": "done"})])) as opened:
        result = await ended(await opened.start("held"))
        held = iter(lambda: PART_S, None)
        late = {"text": "late", "budget": {"max_wall_seconds": 2, "on_exhausted": "fail"}}
        out_of_time = await ended(await opened.start(late))
        asked = len(opened.model.requests)

    assert result["outcome"] == "completed"
    names = [event["name"] for event in result["events"]]
    assert (names.count("model.held"), names.count("model.failed")) == (1, 0)
    assert (out_of_time["outcome"], asked) == ("budget_exceeded", 1)
    assert "max_wall_seconds" in out_of_time["error"]["message"]


@promise("models:pause-of-all")
async def test_a_pause_is_waited_for_here_where_it_is_short_and_by_the_run_where_it_is_long(tmp_path, monkeypatch):
    monkeypatch.setattr(pausing, "LOOK_S", 0.0)
    async with open_store(database_url=None, home=tmp_path) as store:
        here, there = (Pausing(store.pauses, dice=lambda: 1.0) for _ in range(2))
        await here.wait("m at e")
        await here.note("m at e", 0.4)
        begun = time.monotonic()
        await there.wait("other at e")
        await there.wait("m at e")
        assert time.monotonic() - begun >= 0.4
        await here.note("m at e", 3600)
        await there.note("m at e", 1)
        for each in (here, there):
            with pytest.raises(ModelUnavailable) as waiting:
                await each.wait("m at e")
            assert waiting.value.facts["unbilled"] is True
            assert pausing.LONGEST_PAUSE_S - 2 < waiting.value.facts["retry_after"] <= pausing.LONGEST_PAUSE_S + 5


@promise("models:pause-of-all")
async def test_who_asks_while_another_looks_waits_for_what_that_one_finds(tmp_path, monkeypatch):
    asked = asyncio.Event()

    async with open_store(database_url=None, home=tmp_path) as store:

        async def slow(endpoint):
            asked.set()
            await asyncio.sleep(0.05)
            return await found(endpoint)

        found = store.pauses.left
        await Pausing(store.pauses).note("m at e", 3600)
        monkeypatch.setattr(store.pauses, "left", slow)
        here = Pausing(store.pauses)
        async with asyncio.TaskGroup() as group:
            first = group.create_task(waited(here))
            await asked.wait()
            second = group.create_task(waited(here))
    assert (first.result(), second.result()) == ("held up", "held up")


async def waited(pausing):
    try:
        await pausing.wait("m at e")
    except ModelUnavailable:
        return "held up"
    return "sent"


@promise("models:pause-of-all")
async def test_where_the_store_is_away_a_worker_keeps_to_what_it_was_told_itself(tmp_path, monkeypatch):
    async def away(*_):
        raise StoreUnavailable("away")

    async with open_store(database_url=None, home=tmp_path) as store:
        alone = Pausing(store.pauses)
        monkeypatch.setattr(store.pauses.database, "write", away)
        monkeypatch.setattr(store.pauses.database, "read", away)
        await alone.wait("m at e")
        await alone.note("m at e", 3600)
        with pytest.raises(ModelUnavailable):
            await alone.wait("m at e")
