"""A worker dies amid reads that travel together: only those without a recorded answer are made again."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from tests.crash.case import open_case
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
STEPS = [
    {"tool": "desk.look", "arguments": {"n": 1}},
    {"tool": "shelf.fetch", "arguments": {}},
    {"tool": "desk.look", "arguments": {"n": 2}},
]


def recorded(home):
    """Return how many answers the store keeps for the next attempt of an activity."""
    with sqlite3.connect(f"file:{home}/backstay.db?mode=ro", uri=True, timeout=10) as database:
        return database.execute("SELECT count(*) FROM events WHERE outcome IS NOT NULL").fetchone()[0]


@promise("runs:reads-together")
@pytest.mark.thorough
async def test_a_worker_that_dies_amid_reads_repeats_only_those_without_a_recorded_answer(temporal, nursery, tmp_path):
    desk = ScriptedServer(tmp_path / "desk.json", [reads("look")], {"look": {"data": "seen"}})
    shelf = ScriptedServer(tmp_path / "shelf.json", [reads("fetch")], {"fetch": {"data": "late", "until": "go"}})
    toolbox = toolbox_of_servers(tmp_path, desk=desk, shelf=shelf)
    policy = tmp_path / "reads.yaml"
    policy.write_text(POLICY, encoding="utf-8")
    settings = {"BACKSTAY_TOOLBOX": str(toolbox), "BACKSTAY_POLICY": str(policy)}
    settings["BACKSTAY_REQUEST_DEADLINE_SECONDS"] = "60"
    async with open_case(temporal, nursery, tmp_path, shape="plan", **settings) as case:
        doomed = await case.worker()
        handle = await case.start(plan={"steps": STEPS})
        async with asyncio.timeout(150):
            while not shelf.calls() or recorded(Path(case.environment["BACKSTAY_HOME"])) < 2:
                await asyncio.sleep(0.05)
        doomed.kill()
        await asyncio.wait_for(asyncio.shield(doomed.died), 150)
        (tmp_path / "go").touch()
        await case.worker()
        result = await asyncio.wait_for(handle.result(), 150)

        assert_no_task_failure(await handle.fetch_history())
        assert result["outcome"] == "completed", result
        assert sorted(call["arguments"]["n"] for call in desk.calls()) == [1, 2]
        assert len(shelf.calls()) == 2
        told = [(event["step_index"], event["data"]["tool"]) for event in result["events"] if "tool" in event["data"]]
        assert told == [(1, "desk.look"), (2, "shelf.fetch"), (3, "desk.look")]
        assert recorded(Path(case.environment["BACKSTAY_HOME"])) == 0
