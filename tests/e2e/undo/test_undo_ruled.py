"""An undo is ruled on, shown and decided as the call that is then made."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from backstay.client import Backstay
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import Engine, Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
undo: {deny: [bank.purge], ask: [bank.erase]}
"""
RECALL = {"tool": "recall", "arguments": {"id": "{{ result.id }}"}}


class Bank(NamedTuple):
    """An engine whose bank loses the answers of payments, and what arrived at the bank."""

    opened: Engine
    server: ScriptedServer
    backstay: Backstay

    async def paid(self, tool: str) -> Any:
        """Return a run whose payment stays unknown, when people are asked about it."""
        handle = await self.opened.start({"plan": {"steps": [{"tool": f"bank.{tool}", "arguments": {}}]}})
        (asked,) = await pending(handle)
        assert asked["kind"] == "outcome"
        return handle

    async def calls(self, tool: str) -> list[dict[str, Any]]:
        return await asyncio.to_thread(self.server.calls, tool)


@pytest_asyncio.fixture(scope="module")
async def bank(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ruled")
    by_id = {"arguments": {"key": "{{ effect.id }}"}}
    declared = {
        "pay_kept": {"undo": RECALL, "undo_by_effect_id": {"tool": "purge", **by_id}},
        "pay_asked": {"undo": RECALL, "undo_by_effect_id": {"tool": "erase", **by_id}},
    }
    undoing = ("recall", "purge", "erase")
    answers = {name: {"die": True} for name in declared} | {name: {"data": {"id": "p1"}} for name in undoing}
    server = ScriptedServer(folder / "bank.json", [writes(name) for name in answers], answers, declared)
    options = {"policy": POLICY, "toolbox": toolbox_of_servers(folder, bank=server)}
    options |= {"request_deadline_seconds": 2, "step_timeout_seconds": 2}
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(engine(temporal, folder, Scripts(), **options))
        yield Bank(opened, server, Backstay(temporal, task_queue=opened.settings.task_queue))


@promise("undo:by-id-ruled")
async def test_a_rule_about_the_tool_that_undoes_by_id_holds_while_the_answer_is_lost(bank):
    handle = await bank.paid("pay_kept")
    (seen,) = (await handle.query("undo_preview"))["effects"]
    assert seen["shown"] == "recall(id=result.id); if its answer is lost: purge(key=effect.id)"
    await handle.cancel()
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 150)
    result = await handle.query("result")
    (undone,) = result["undone"]
    assert (undone["state"], undone["shown"]) == ("parked", "purge(key=effect.id)")
    assert "denied by the policy: undo.deny[0]: bank.purge" in undone["detail"]
    assert await bank.calls("purge") == []


@promise("undo:by-id-ruled")
@pytest.mark.parametrize("happened", [False, True])
async def test_people_are_asked_about_the_tool_that_undoes_by_id(bank, happened):
    before = len(await bank.calls("erase"))
    handle = await bank.paid("pay_asked")
    if happened:
        await handle.execute_update("decide", {"request_id": "r1", "verdict": "happened", "by": "ana"})
        await ended(handle)
    else:
        await handle.terminate()
    undo = await bank.opened.undo(handle.id)
    (asked,) = await pending(undo)
    assert asked["calls"][0]["tool"] == "bank.erase"
    assert "erase(key=effect.id)" in asked["question"]
    await undo.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    result = await ended(undo)
    assert [effect["state"] for effect in result["undone"]] == ["compensated"]
    assert len(await bank.calls("erase")) == before + 1
    assert await bank.calls("recall") == []
