"""How often a step waits for the disk: what an activity writes goes in as few transactions as its promises allow."""

from collections import Counter

import pytest_asyncio
from temporalio import activity

from backstay.testing import Reply
from store.database.sqlite import SqliteDatabase
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import ended, engine
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\nrepeated: allow\n"


class Commits:
    """Count the transactions that activities ask for, by activity."""

    def __init__(self, monkeypatch):
        self.commits: Counter[str] = Counter()
        write = SqliteDatabase.write

        async def counted(database, work):
            if activity.in_activity():
                self.commits[activity.info().activity_type] += 1
            return await write(database, work)

        monkeypatch.setattr(SqliteDatabase, "write", counted)


@pytest_asyncio.fixture
async def desk(temporal, tmp_path):
    tools = [reads("look"), writes("pay"), writes("pay_back")]
    answers = {"look": {"data": "seen"}, "pay": {"data": {"id": "p1"}}, "pay_back": {"data": {}}}
    declared = {"pay": {"undo": {"tool": "desk.pay_back", "arguments": {"id": "${result.id}"}}}}
    server = ScriptedServer(tmp_path / "desk.json", tools, answers, declared)
    scripts = Labelled()
    toolbox = toolbox_of_servers(tmp_path, desk=server)
    async with engine(temporal, tmp_path, scripts, policy=POLICY, toolbox=toolbox) as made:
        made.scripts = scripts
        yield made


async def step_of(made, label, tool):
    """Let a run make one call of a tool."""
    made.scripts.scripts[label] = [Reply(calls=[(f"desk__{tool}", {})]), DONE]
    result = await ended(await made.start({"text": f"<{label}>"}))
    assert result["outcome"] == "completed", result


@promise("runs:one-commit")
async def test_an_activity_writes_in_as_few_transactions_as_its_promises_allow(desk, monkeypatch):
    await step_of(desk, "first", "look")
    reading = Commits(monkeypatch)
    await step_of(desk, "reading", "look")
    assert reading.commits == {"open_run": 1, "ask_model": 1, "act_and_ask": 1, "close_run": 2}

    writing = Commits(monkeypatch)
    await step_of(desk, "writing", "pay")
    # The intent before the request leaves, its outcome before the model is asked, and what the model decides.
    assert writing.commits == {"open_run": 1, "ask_model": 1, "act_and_ask": 3, "close_run": 2}
