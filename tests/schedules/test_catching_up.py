"""What was due while everything was down is made up for once, as far back as the schedule says."""

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import ScheduleBackfill

from backstay.testing import Reply
from store.opening import open_store
from tests.crash.temporal_server import client_of, server
from tests.engine import pending
from tests.ports import own_port
from tests.requirements import promise
from tests.schedules.office import DONE, open_office, some


@asynccontextmanager
async def everything(port, folder):
    """Start Temporal, a worker and the page on what they have kept; all of them are gone afterwards."""
    async with server(port, folder / "temporal.db"):
        client = await client_of(port)
        async with open_office(client, folder, task_queue="kept", replayed=False) as office:
            yield office


def due(start):
    """Return when a start was due, as Temporal names it."""
    return datetime.fromisoformat(start.workflow_id[-len("2026-11-29T07:00:00Z") :]).timestamp()


async def down_for(port, folder, seconds, **times):
    """Let a schedule start a run, and everything be down for so long; return what came of it afterwards."""
    async with everything(port, folder) as office:
        await office.schedule("news", **times)
        # A run that is open when everything goes down would be skipped for.
        row = await office.until("news", lambda row: row.last and row.last[0].told == "completed")
        last = due(row.last[0])
    async with asyncio.timeout(seconds + 60):
        while time.time() < last + seconds:
            await asyncio.sleep(0.1)
    up = time.time()
    async with everything(port, folder) as office:
        row = await office.until("news", lambda row: due(row.last[0]) > up and row.last[0].told == "completed")
        starts = await office.store.starts.newest("schedule", "news", 100)
        await office.keeping.remove("schedule", "news")
    made_up = [start for start in starts if last < due_of(start) < up]
    return made_up, row


def due_of(start):
    return datetime.fromisoformat(start.id[-len("2026-11-29T07:00:00Z") :]).timestamp()


@promise("schedules:catch-up")
async def test_what_was_due_while_everything_was_down_is_made_up_for_once(tmp_path):
    made_up, row = await down_for(own_port(), tmp_path, 7, every=3)
    assert [start.told for start in made_up] == ["completed"]
    assert row.missed == 0


@pytest.mark.soak
@promise("schedules:catch-up-window")
async def test_what_was_due_longer_ago_than_the_schedule_says_is_left_out_and_counted(tmp_path):
    made_up, row = await down_for(own_port(), tmp_path, 27, every=15, catch_up=10)
    assert made_up == []
    assert row.missed >= 1


@promise("store:retention-restored-due")
async def test_what_was_due_before_temporal_was_restored_is_asked_about_and_not_sent(temporal, tmp_path):
    name, mail = some("news"), {"to": "a@free.example", "subject": "s", "body": "b"}
    async with open_store(database_url=None, home=tmp_path / "home") as store:
        await store.new_epoch(temporal_restored=True)
    rules = [Reply(calls=[("mail__send_email", mail)]), *DONE]
    async with open_office(temporal, tmp_path, rules, task_queue=some("queue")) as office:
        await office.schedule(name, every=3600)
        schedule = temporal.get_schedule_handle(f"{office.engine.settings.task_queue}-schedule-{name}")
        now = datetime.now(UTC)
        await schedule.backfill(ScheduleBackfill(start_at=now - timedelta(hours=2), end_at=now - timedelta(hours=1)))
        row = await office.until(name, lambda row: row.last)
        (request,) = await pending(await office.asking(row.last[0].workflow_id))
        await office.keeping.remove("schedule", name)
        assert (request["kind"], office.engine.mailbox.requests("send_email")) == ("outcome", 0)
