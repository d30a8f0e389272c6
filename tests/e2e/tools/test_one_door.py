"""What a call of each purpose goes through, seen from outside: requests, usage, rows, the server, events."""

import asyncio
import sqlite3
from dataclasses import dataclass

import pytest
import pytest_asyncio
from temporalio.client import WorkflowHandle

from backstay.testing import Conversation, Reply
from backstay.tools.stages import READS, TABLE, Purpose, Stage
from store.opening import open_store
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import Engine, assert_no_task_failure, engine, sandbox_role
from tests.histories import activities_in
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
deny: ["bank.find*"]
ask: ["bank.*"]
undo: {ask: ["bank.*"]}
"""
LOST = {"die": True}
GIVE_UP = ("finish", {"summary": "I cannot", "outputs": {}, "success": False})
DONE = ("finish", {"summary": "done", "outputs": {}, "success": True})
SCRIPTS = {
    "decide": [[("bank__look", {}), ("bank__pay", {})], [("bank__pay_unheard", {})], [GIVE_UP]],
    "program": [[("run_program", {"code": "return await bank.pay_from_program()"})], [DONE]],
}


def answer_of(tool):
    """What a tool answers, so that it can be recognised wherever it is kept."""
    return {"answered_by": tool, "id": "p1"}


def bank(folder):
    """A bank that loses two answers: of a payment, and of what takes that payment back."""
    found = {"applied_if": "{{ result.id == 'p1' }}"}
    declared = {
        "pay": {"undo": {"tool": "reclaim", "arguments": {"id": "{{ result.id }}"}}},
        "pay_unheard": {
            "undo": {"tool": "reclaim_unheard", "arguments": {"id": "{{ result.id }}"}},
            "verify": {"tool": "find", **found},
        },
        "pay_from_program": {"undo": {"tool": "reclaim", "arguments": {"id": "{{ result.id }}"}}},
        "pay_from_plan": {"undo": {"tool": "reclaim", "arguments": {"id": "{{ result.id }}"}}},
        "reclaim_unheard": {"verify": {"tool": "find_reclaimed", "arguments": {"id": "{{ arguments.id }}"}, **found}},
    }
    names = [*declared, "reclaim", "look", "find", "find_reclaimed"]
    tools = [(reads if name in {"look", "find", "find_reclaimed"} else writes)(name) for name in names]
    answers = {name: LOST if name.endswith("unheard") else {"data": answer_of(name)} for name in names}
    return ScriptedServer(folder / "bank.json", tools, answers, declared)


def rules(talk: Conversation) -> Reply:
    if "finish" not in talk.tools:
        return Reply(text="closing words")
    said = sum(1 for message in talk.messages if message["role"] == "assistant")
    return Reply(calls=SCRIPTS[talk.task.partition("\n")[0]][said])


@dataclass
class Seen:
    """What was seen of one run from outside."""

    engine: Engine
    server: ScriptedServer
    handle: WorkflowHandle
    requests: dict[str, dict]

    @property
    def run(self) -> str:
        return f"{self.handle.id}/{self.handle.first_execution_run_id}"

    async def stages(self, tool: str) -> set[Stage]:
        """Return the stages of which a call of this tool has left a trace."""
        asked = [request for request in self.requests.values() for call in request["calls"] if call["tool"] == tool]
        rows = [row for row in self.rows() if row["tool"] == tool]
        events = await self.handle.query("timeline", {"after": 0})
        usage = (await self.handle.query("budget"))["usage"]
        traces = {
            Stage.RULE: any("ask[" in request["rule"] for request in asked),
            Stage.ASK: bool(asked),
            Stage.RESERVE: usage["calls_by_tool"].get(tool) == 1,
            Stage.INTENT: len(rows) == 1,
            Stage.CALL: len(await asyncio.to_thread(self.server.calls, tool.removeprefix("bank."))) == 1,
            Stage.SETTLE: any(row["state"] in {"applied", "compensated"} for row in rows),
            Stage.BIND_UNDO: any(row["undo_tool"] for row in rows),
            Stage.DIGEST: tool.removeprefix("bank.") in await self.digested(),
            Stage.EVENT: any(
                event["name"] == "action.called" and event["data"]["tool"] == tool for event in events["events"]
            ),
        }
        return {stage for stage, seen in traces.items() if seen}

    def rows(self) -> list[sqlite3.Row]:
        with sqlite3.connect(self.engine.settings.home / "backstay.db", timeout=10) as connection:
            connection.row_factory = sqlite3.Row
            return connection.execute("SELECT * FROM effects WHERE run = ?", (self.run,)).fetchall()

    async def digested(self) -> set[str]:
        """Return the tools whose answers calls of this run have digested."""
        found = set()
        async with open_store(database_url=None, home=self.engine.settings.home) as store:
            for ref in await self.refs():
                digest = (await store.blobs.of(self.run).get_json(ref))["digest"]
                found.add(digest["data"].get("answered_by"))
        return found

    async def refs(self) -> list[str]:
        """Return the refs that the activity `call_tool` has answered."""
        made = activities_in((await self.handle.fetch_history()).events)
        refs = [answer.get("ref") for name, _, answer in made if name == "call_tool" and answer is not None]
        return [ref for ref in refs if ref is not None]


async def approved(handle, within_s=150):
    """Approve whatever is asked until the run ends; return the requests."""
    requests = {}
    async with asyncio.timeout(within_s):
        while not (await handle.query("result")):
            for request in await handle.query("pending"):
                requests[request["id"]] = request
                decision = {"request_id": request["id"], "verdict": "approve", "by": "ana", "event_id": request["id"]}
                await handle.execute_update("decide", decision)
            await asyncio.sleep(0.1)
        await handle.result()
    assert_no_task_failure(await handle.fetch_history())
    return requests


@pytest_asyncio.fixture(scope="module")
async def seen(temporal, sandbox, tmp_path_factory):
    """Runs in which calls of every purpose are made, by the name of the run."""
    folder = tmp_path_factory.mktemp("one-door")
    server = bank(folder)
    options = {"policy": POLICY, "toolbox": toolbox_of_servers(folder, bank=server), "request_deadline_seconds": 2}
    async with engine(temporal, folder, rules, **options) as opened:
        tasks = {
            "decide": {"text": "decide"},
            "program": {"text": "program"},
            "plan": {"plan": {"steps": [{"tool": "bank.pay_from_plan", "arguments": {}}]}},
        }
        async with sandbox_role(opened.client, opened.settings, sandbox):
            handles = {name: await opened.start(task) for name, task in tasks.items()}
            asked = await asyncio.gather(*(approved(handle) for handle in handles.values()))
        yield {
            name: Seen(opened, server, handle, requests)
            for (name, handle), requests in zip(handles.items(), asked, strict=True)
        }


@promise("runs:traces")
@pytest.mark.parametrize(
    ("purpose", "run", "tool"),
    [
        (Purpose.CALL, "decide", "bank.pay"),
        pytest.param(Purpose.PROGRAM, "program", "bank.pay_from_program", marks=pytest.mark.thorough),
        (Purpose.PLAN_STEP, "plan", "bank.pay_from_plan"),
        (Purpose.VERIFY, "decide", "bank.find"),
        (Purpose.UNDO, "decide", "bank.reclaim"),
        pytest.param(Purpose.VERIFY_UNDO, "decide", "bank.find_reclaimed", marks=pytest.mark.thorough),
    ],
    ids=lambda value: value if isinstance(value, Purpose) else "",
)
async def test_a_call_passes_the_stages_that_the_table_names_for_its_purpose(seen, purpose, run, tool):
    assert await seen[run].stages(tool) == {stage for stage, why in TABLE[purpose].items() if why is None}


@promise("runs:traces")
async def test_a_read_passes_the_stages_that_the_table_leaves_it(seen):
    assert await seen["decide"].stages("bank.look") == set(Stage) - set(READS)


@promise("undo:lost")
async def test_a_payment_and_its_compensation_whose_answers_are_lost_are_settled_each_by_its_own_check(seen):
    result = await seen["decide"].handle.query("result")

    assert result["outcome"] == "rolled_back", result
    assert [(effect["tool"], effect["state"]) for effect in result["undone"]] == [
        ("bank.pay_unheard", "compensated"),
        ("bank.pay", "compensated"),
    ]
    states = {row["effect_id"].partition("/")[2].partition("/")[2]: row["state"] for row in seen["decide"].rows()}
    assert states == {"1": "compensated", "1/undo": "applied", "2": "compensated", "2/undo": "applied"}
