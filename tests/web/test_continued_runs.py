"""Runs that have continued as new: Temporal knows each part of them by an id of its own."""

import asyncio

import pytest

from backstay.client import Backstay
from backstay.errors import TaskInvalid
from gateways.terminal import listing, session
from tests.e2e.sessions.test_continuing import continued
from tests.engine import Scripts, pending
from tests.requirements import promise
from tests.web.test_runs import ANA, page_of, send
from workflows.context import carrying


async def runs_of(person):
    return (await person.get("/api/runs")).json()["runs"]


@promise("page:continued")
async def test_a_run_that_has_continued_is_listed_as_it_stands_and_asked_and_awaited_by_its_first_id(
    open_engine, monkeypatch
):
    monkeypatch.setattr(carrying, "MOST_SIGNALS", 0)
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, _, ana):
        handle = await running.start(scripts.task(send("a"), user_id=ANA), "listed-as-one")
        await pending(handle)
        first = (await handle.describe()).run_id
        await continued(handle)
        await pending(handle)
        async with asyncio.timeout(150):
            # Temporal may have open runs of other tests, which this store does not know.
            while not (
                listed := [run for run in await runs_of(ana) if run["workflow_id"] == handle.id and run["waiting"]]
            ):
                await asyncio.sleep(0.2)
        backstay = Backstay(running.client, task_queue=running.settings.task_queue)
        rows = await listing._visible(running.client, 50)
        found = await session.find(backstay, "listed-as-")
        monkeypatch.setattr(session, "_MOST_BEGINNING", 1)
        with pytest.raises(TaskInvalid, match="give more of the id"):
            await session.find(backstay, "listed-as-")
        named = backstay.run(handle.id, first)
        asked = [request.id for request in await named.pending()]
        was_open = await named.is_open()
        waiting = asyncio.ensure_future(ana.get(f"/api/runs/{handle.id}/result", params={"wait": 60}))
        await asyncio.sleep(0.5)
        await handle.cancel()
        told = await waiting

    assert [(run["state"], run["waiting"]) for run in listed] == [("waiting for people", 1)]
    assert ([row["id"] for row in rows].count("listed-as-one"), found.id) == (1, "listed-as-one")
    assert (asked, was_open) == (["r1"], True)
    assert (told.status_code, told.json()["outcome"]) == (200, "cancelled")
