"""How often a step waits for the disk: what an activity writes goes in as few transactions as its promises allow."""

import asyncio
import os
from collections import Counter

import pytest
import pytest_asyncio
from temporalio import activity

from activities.tools import effects
from backstay.errors import StoreUnavailable
from backstay.testing import Reply
from store.database.sqlite import SqliteDatabase
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import ended, engine
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nrepeated: allow\n"


class Commits:
    """Count the transactions that activities ask for, and the files that they wait for, by activity."""

    def __init__(self, monkeypatch):
        self.commits: Counter[str] = Counter()
        self.synced: Counter[str] = Counter()
        write, fsync = SqliteDatabase.write, os.fsync

        async def counted(database, work):
            if activity.in_activity():
                self.commits[activity.info().activity_type] += 1
            return await write(database, work)

        def synced(opened):
            if activity.in_activity():
                self.synced[activity.info().activity_type] += 1
            fsync(opened)

        monkeypatch.setattr(SqliteDatabase, "write", counted)
        monkeypatch.setattr(os, "fsync", synced)


@pytest_asyncio.fixture
async def desk(temporal, tmp_path):
    tools = [reads("look"), writes("pay"), writes("pay_back")]
    answers = {"look": {"data": "seen"}, "pay": {"data": {"id": "p1"}}, "pay_back": {"data": {}}}
    declared = {"pay": {"undo": {"tool": "desk.pay_back", "arguments": {"id": "${result.id}"}}}}
    server = ScriptedServer(tmp_path / "desk.json", tools, answers, declared)
    scripts = Labelled()
    toolbox = toolbox_of_servers(tmp_path, desk=server)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, toolbox=toolbox, transient_seconds=1) as made:
        made.scripts, made.server = scripts, server
        yield made


async def step_of(made, label, tool):
    """Let a run make one call of a tool."""
    made.scripts.scripts[label] = [Reply(calls=[(f"desk__{tool}", {})]), DONE]
    result = await ended(await made.start({"text": f"<{label}>"}))
    assert result["outcome"] == "completed", result


async def names_under_way(handle):
    described = (await handle.describe()).raw_description
    return [activity.activity_type.name for activity in described.pending_activities]


async def requests_of(handle):
    """Return what people are asked, unless the run ends without asking."""
    async with asyncio.timeout(150):
        while not (found := await handle.query("pending")):
            if (await handle.describe()).close_time is not None:
                break
            await asyncio.sleep(0.05)
    return found


@promise("runs:one-commit")
async def test_an_activity_writes_in_as_few_transactions_as_its_promises_allow(desk, monkeypatch):
    await step_of(desk, "first", "look")
    reading = Commits(monkeypatch)
    await step_of(desk, "reading", "look")
    assert reading.commits == {"open_run": 1, "ask_model": 1, "act_and_ask": 1, "close_run": 2}
    assert reading.synced == {}

    writing = Commits(monkeypatch)
    await step_of(desk, "writing", "pay")
    # The intent before the request leaves, its outcome before the model is asked, and what the model decides.
    assert writing.commits == {"open_run": 1, "ask_model": 1, "act_and_ask": 3, "close_run": 2}
    assert writing.synced == {}


@promise("runs:unwritten")
@pytest.mark.parametrize(("tool", "written"), [("look", 0), ("pay", 1), ("pay", 2)], ids=["read", "sent", "settled"])
async def test_what_was_done_is_not_lost_or_done_again_where_the_store_cannot_be_written_to_after_it(
    desk, monkeypatch, tool, written
):
    desk.scripts.scripts["cut off"] = [Reply(calls=[(f"desk__{tool}", {})]), DONE]
    began, write = Counter(), SqliteDatabase.write

    async def cut_off(database, work):
        if activity.in_activity() and activity.info().activity_type == "act_and_ask":
            began["writes"] += 1
            if began["writes"] > written:
                raise StoreUnavailable("store: disk I/O error")
        return await write(database, work)

    monkeypatch.setattr(effects, "_patience_s", lambda _left: 0)
    monkeypatch.setattr(SqliteDatabase, "write", cut_off)
    handle = await desk.start({"text": "<cut off>"})
    async with asyncio.timeout(150):
        while "act_and_ask" in await names_under_way(handle) or not began["writes"]:
            await asyncio.sleep(0.05)
    monkeypatch.undo()
    for request in await requests_of(handle):
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert len(desk.server.calls(tool)) == 1
    assert {"look": "seen", "pay": "p1"}[tool] in desk.scripts.heard["cut off"]
    assert [event["name"] for event in result["events"]].count("action.called") == 1
