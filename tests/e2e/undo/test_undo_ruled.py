"""An undo is ruled on, shown and decided as the call that is then made."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from activities.tools.declared import DeclaredActivities
from backstay.client import Backstay
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import Engine, Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
undo: {deny: [bank.purge], ask: [bank.erase, bank.refund]}
"""
RECALL = {"tool": "recall", "arguments": {"id": "{{ result.id }}"}}
LONG = {"note": "x" * 400, "to": "eve@evil.example", "amount": 999_999}
"""What the bank answers: a long value first, and after it what people must see."""


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
    undoing = ("recall", "purge", "erase", "refund")
    answers = {name: {"die": True} for name in declared} | {name: {"data": {"id": "p1"}} for name in undoing}
    declared["pay_known"] = {
        "undo": {"tool": "refund", "arguments": {name: f"{{{{ result.{name} }}}}" for name in LONG}}
    }
    answers["pay_known"] = {"data": LONG}
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


@promise("undo:arguments-shown")
async def test_people_see_all_arguments_of_an_undo_that_they_decide_about(bank):
    handle = await bank.opened.start({"plan": {"steps": [{"tool": "bank.pay_known", "arguments": {}}]}})
    await ended(handle)
    undo = await bank.opened.undo(handle.id)
    (asked,) = await pending(undo)
    (call,) = asked["calls"]
    assert call["arguments"]["arguments"] == LONG
    assert (call["clipped"], call["left_out"]) == (0, 0)
    whole = await undo.query("request", {"id": "r1", "index": 0})
    assert json.loads(whole["text"])["arguments"] == LONG
    await undo.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    result = await ended(undo)
    assert [effect["state"] for effect in result["undone"]] == ["compensated"]
    (refund,) = await bank.calls("refund")
    assert refund["arguments"] == LONG


@promise("undo:arguments-shown")
async def test_an_undo_with_other_arguments_than_people_saw_is_refused(bank, monkeypatch):
    handle = await bank.opened.start({"plan": {"steps": [{"tool": "bank.pay_known", "arguments": {}}]}})
    await ended(handle)
    before = len(await bank.calls("refund"))
    undo = await bank.opened.undo(handle.id)
    await pending(undo)

    async def other(self, ask):
        return "bank.refund", LONG | {"to": "mallory@evil.example"}

    monkeypatch.setattr(DeclaredActivities, "compensation", other)
    await undo.execute_update("decide", {"request_id": "r1", "verdict": "approve", "by": "ana"})
    (undone,) = (await ended(undo))["undone"]
    assert undone["state"] == "parked"
    assert "bank.refund would be called with other arguments than people saw" in undone["detail"]
    assert len(await bank.calls("refund")) == before
