"""An undo is ruled on, shown and decided as the call that is then made."""

import asyncio
import json
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from activities.tools.declared import DeclaredActivities
from backstay.approvals.approval import RequestedCall
from backstay.approvals.undo_words import undo_told
from backstay.approvals.view import call_view
from backstay.policies.policy import Policy
from backstay.testing import Reply
from backstay.tools.tool import Tool
from tests.e2e.scripted_server import ScriptedServer, toolbox_of_servers, writes
from tests.engine import Engine, Scripts, ended, engine, pending
from tests.requirements import promise

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
ask: ["bank.write_*"]
undo: {deny: [bank.purge], ask: [bank.erase, bank.refund]}
"""
RECALL = {"tool": "recall", "arguments": {"id": "{{ result.id }}"}}
LONG = {"note": "x" * 400, "to": "eve@evil.example", "amount": 999_999}
"""What the bank answers: a long value first, and after it what people must see."""


class Bank(NamedTuple):
    """An engine whose bank loses the answers of payments, and what arrived at the bank."""

    opened: Engine
    server: ScriptedServer
    scripts: Scripts

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
    declared["write_kept"] = {"undo": {"tool": "purge", "arguments": {"id": "{{ result.id }}"}}}
    declared["write_asked"] = {"undo": {"tool": "refund", "arguments": {"id": "{{ result.id }}"}}}
    declared["write_by_id"] = {"undo_by_effect_id": {"tool": "cancel", **by_id}}
    answers |= {name: {"data": {"id": "p1"}} for name in ("write_kept", "write_asked", "write_by_id", "cancel")}
    answers["pay_known"] = {"data": LONG}
    server = ScriptedServer(folder / "bank.json", [writes(name) for name in answers], answers, declared)
    options = {"policy": POLICY, "toolbox": toolbox_of_servers(folder, bank=server)}
    options |= {"request_deadline_seconds": 2, "step_timeout_seconds": 2}
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(engine(temporal, folder, scripts := Scripts(), **options))
        yield Bank(opened, server, scripts)


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


@promise("undo:by-id-known")
async def test_an_effect_that_is_undone_by_its_id_alone_is_shown_and_undone_so_though_its_answer_is_known(bank):
    handle = await bank.opened.start({"plan": {"steps": [{"tool": "bank.write_by_id", "arguments": {}}]}})
    (asked,) = await pending(handle)
    (call,) = asked["calls"]
    assert (call["undoable"], call["undo_how"]) == (True, "cancel(key=effect.id)")
    await handle.execute_update("decide", {"request_id": asked["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)
    (undone,) = (await ended(await bank.opened.undo(handle.id)))["undone"]
    assert undone["state"] == "compensated"
    (sent,) = await bank.calls("cancel")
    assert set(sent["arguments"]) == {"key"}


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


DENIED = "denied by the policy: undo.deny[0]: bank.purge"
ASKED = "refund(id=result.id); people must agree by undo.ask[1]: bank.refund"


@promise("undo:told-ruled")
@pytest.mark.parametrize("planned", [True, False])
async def test_a_request_says_what_the_policy_says_of_an_undo(bank, planned):
    steps = [{"tool": f"bank.{name}", "arguments": {}} for name in ("write_kept", "write_asked")]
    calls = Reply(calls=[("bank__write_kept", {}), ("bank__write_asked", {})])
    handle = await bank.opened.start({"plan": {"steps": steps}} if planned else bank.scripts.task(calls))
    (asked,) = await pending(handle)
    expected = [(False, DENIED), (True, ASKED)]
    assert [(call["undoable"], call["undo_how"]) for call in asked["calls"]] == expected
    if planned:
        assert [(step["undoable"], step["undo_how"]) for step in asked["proposal"]["steps"]] == expected
    whole = await handle.query("request", {"id": "r1", "index": asked["calls"][0]["index"]})
    assert (whole["call"]["undoable"], whole["call"]["undo"]) == expected[0]
    said = [line.text for call in asked["calls"] for line in call_view(RequestedCall.model_validate(call)).lines()]
    assert f"CANNOT BE UNDONE: {DENIED}" in said
    assert "can be undone: refund, with id from its answer; people must agree by undo.ask[1]: bank.refund" in said
    await handle.terminate()


@promise("undo:told-ruled")
@pytest.mark.parametrize(
    ("undo", "undoable", "how"),
    [
        ({"default": "deny"}, False, "denied by the policy: undo.default: deny"),
        ({"deny": ["chat.*"]}, False, "denied by the policy: undo.deny[0]: chat.* (talk.post_undo calls chat.delete)"),
        ({"ask": ["chat.*"]}, False, "denied by the policy: undo.ask[0]: chat.* (talk.post_undo calls chat.delete)"),
        (
            {"deny": ["talk.post"]},
            False,
            "denied by the policy: undo.deny[0]: talk.post (talk.post_undo undoes talk.post)",
        ),
        ({"default": "allow"}, True, "post_undo(id=result.id)"),
    ],
)
def test_an_undo_that_would_be_refused_is_not_said_to_be_possible(undo, undoable, how):
    tool = Tool(
        name="talk.post", undo="post_undo(id=result.id)", undo_tool="talk.post_undo", undo_calls=("chat.delete",)
    )
    assert undo_told(tool, Policy.admit({"undo": undo})) == (undoable, how)
